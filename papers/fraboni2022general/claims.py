"""Claims of Fraboni et al. 2022, judged by the rules in its ``paper.yaml``.

In c1 to c4 and c8, about training, a diverged run makes a comparison undecided; so do fewer than
three seeds, which give no interval.  Where a population was not run, or trained a smaller network,
the others decide.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import above, by_chance, equivalence, ordering, stated, verdict
from fedsampling.evidence.statistics import compare, difference, holm, show_estimate
from fedsampling.evidence.verdicts import Finding, Interval, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.clustered import allocate_by_size
from fedsampling.theory.weights import clustered_covariance, statistics

from .client_draws import deviations, our_choice
from .corollary1 import margins, populations
from .losses import loss_pairs, paired_losses, was_run
from .monte_carlo import EXACT, comparisons

WEIGHTS_EQUAL = "weights equal in distribution"
ALL_ABOVE: Mapping[Verdict, str] = {"reproduced": "Every interval lies above zero."}


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Uniform is below MD sampling at every n, and less so for larger n."""
    quantity = "loss, MD − Uniform"
    pairs = loss_pairs(summaries, "md", "uniform", "equal")
    finding = ordering(holm(pairs, difference), claim.margin, quantity, ALL_ABOVE)
    first, last = next(iter(pairs)), next(reversed(pairs))
    if first == last:
        return finding
    (md_few, uniform_few), (md_many, uniform_many) = pairs[first], pairs[last]
    # Populations may have different numbers of seeds.
    few, many = (md_few - uniform_few).align(md_many - uniform_many, join="inner")
    shrinks = compare(few, many, difference)
    parts: dict[str, Part] = {**finding.parts, "the gap shrinks": above(shrinks, claim.margin)}
    step = f"{first} − {last}"
    return verdict(
        parts,
        f"{finding.ours}; {step}: {show_estimate(shrinks)}",
        contrary_decides=finding.verdict == "contradicted",
        drawn=finding.drawn + intervals({step: shrinks}, quantity, least=claim.margin),
    )


def c2(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether MD is below Uniform sampling at every n."""
    gaps = holm(loss_pairs(summaries, "uniform", "md", "samples"), difference)
    return ordering(gaps, claim.margin, "loss, Uniform − MD", ALL_ABOVE)


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Clustered sampling is equivalent to Uniform, in loss and in distribution."""
    finding = equivalence(
        loss_pairs(summaries, "clustered", "uniform", "equal"),
        claim.margin,
        "loss, Clustered − Uniform (90 %)",
        difference,
        level=0.9,
    )
    gap = covariance_gap(10, 5)
    ours = (
        f"{finding.ours}; covariances of the weights differ by up to {show(gap)} (5 of 10 clients)"
    )
    if finding.verdict == "reproduced" and gap > EXACT:
        why = (
            "The losses are the same within the margin; the distributions differ in closed form, "
            "so no run could reproduce the claim as stated."
        )
        finding = replace(finding, verdict="partly reproduced", reason=why)
    return replace(
        finding,
        ours=ours,
        parts={**finding.parts, WEIGHTS_EQUAL: stated(gap <= EXACT)},
        caveat=_width_of_the_margin(summaries, claim.margin, finding.drawn),
    )


def _width_of_the_margin(summaries: Summaries, margin: float, drawn: tuple[Interval, ...]) -> str:
    """Say where c3's rule finds MD equal to Uniform, too; empty if it is so nowhere."""
    pairs = loss_pairs(summaries, "md", "uniform", "equal")
    parts = equivalence(pairs, margin, "loss", difference).parts
    equal = [name.split()[0] for name, part in parts.items() if part == "holds"]
    if not equal:
        return ""
    largest = max(abs(end) for row in drawn for end in (row.low, row.high))
    return (
        "The margin is wide: by the same rule, MD and Uniform sampling are equal, too, with "
        f"{listed(equal)} clients. All intervals of Clustered − Uniform lie within "
        f"±{show(largest, 2)}."
    )


def c4(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Clustered is below MD sampling at every n."""
    gaps = holm(loss_pairs(summaries, "md", "clustered", "samples"), difference)
    return ordering(gaps, claim.margin, "loss, MD − Clustered", ALL_ABOVE)


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the paper's standard deviations are in the range of random choices."""
    summary = summaries["clients"]
    spread, chosen = deviations(summary), our_choice(paper)
    parts, ours, drawn = {}, [], []
    for n in (10, 80):
        sd = spread[spread["n"] == n].set_index("seed")["sd"]
        others = sd.drop(chosen, errors="ignore")
        low, high = others.quantile([claim.margin / 2, 1 - claim.margin / 2])
        theirs = paper.reported(f"deviation_{n}")
        parts[f"{n} clients"] = stated(bool(low <= theirs <= high))
        low, high = float(low), float(high)
        if chosen in sd:
            value, own = float(sd[chosen]), f"{show(float(sd[chosen]))}, "
            name = f"{n} clients: our choice, and the range of {len(others)} others"
        else:
            value, own = float(others.median()), ""
            name = f"{n} clients: median and range of {len(others)} choices"
        drawn.append(Interval(name, "standard deviation", value, low, high, paper=theirs))
        ours.append(f"{n} clients: {own}choices {show(low)} to {show(high)}")
    return verdict(
        parts,
        ours=f"{'; '.join(ours)} ({len(others)} choices)",
        why={
            "reproduced": "Both numbers are in the range of random choices of clients.",
            "partly reproduced": "One of the numbers is in the range of random choices.",
            "contradicted": "Neither number is in the range of random choices.",
        },
        contrary_decides=False,
        drawn=tuple(drawn),
    )


def c6(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether every closed form is within Monte Carlo error of its estimate."""
    table = comparisons(summaries["weights"])
    varies = table.error > EXACT
    finding = by_chance(float(table.z.abs().max()), int(varies.sum()), "estimates", claim.margin)
    return replace(
        finding,
        ours=f"{finding.ours}; {(~varies).sum():,} more do not vary",
        reason=f"{finding.reason} Quantities that do not vary must equal their closed form to "
        "1e-12.",
    )


def c7(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge Corollary 1 by looking for a population that satisfies one side and not the other."""
    tried = uniform_better = counterexamples = 0
    for n in range(2, 26):
        for m in range(1, n + 1):
            for p in populations(n, m, 40, np.random.default_rng([n, m])):
                sides = margins(p, m)
                tried += 1
                if abs(sides.condition) <= EXACT:  # on the boundary, where Σ_U = Σ_MD
                    counterexamples += abs(sides.sigma) > 1e-9
                    continue
                better = sides.sigma >= 0 and sides.gamma >= 0
                uniform_better += better
                counterexamples += better != (sides.condition >= 0)
    holds = counterexamples <= claim.margin
    return Finding(
        "reproduced" if holds else "contradicted",
        ours=f"{counterexamples} counterexamples in {tried:,} populations, "
        f"{uniform_better:,} of them with Uniform better",
        reason=f"{'No' if holds else 'Some'} population satisfies one side and not the other.",
    )


def c8(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether MD is below Uniform sampling on CIFAR-10 at every α."""
    summary = summaries["cifar"]
    pairs = {
        f"α = {summary.setting('dataset.partition.alpha', case):g}": paired_losses(
            summary, "uniform", "md", case
        )
        for case in summary.settings["cases"]
        if was_run(summary, case, "md", "uniform")
    }
    return ordering(holm(pairs, difference), claim.margin, "loss, Uniform − MD", ALL_ABOVE)


def covariance_gap(n: int, m: int) -> float:
    """Largest difference of the covariances of Clustered and Uniform weights, p_i = 1/n."""
    p = np.full(n, 1 / n)
    row = statistics("uniform", p, m)
    uniform = -row.alpha * np.outer(p, p)
    np.fill_diagonal(uniform, row.variance)
    clustered = clustered_covariance(allocate_by_size(np.ones(n, np.int64), m))
    return float(np.abs(clustered - uniform).max())
