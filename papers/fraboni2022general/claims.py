"""Claims of Fraboni et al. 2022, judged by the rules in its ``paper.yaml``.

In c1 to c4 and c8, about training, a diverged run makes a comparison undecided; so do fewer than
three seeds, which give no interval.  Where a population was not run, or trained a smaller network,
the others decide.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.text import show
from fedsampling.evidence.rules import above, by_chance, equivalence, ordering, stated, verdict
from fedsampling.evidence.statistics import compare, difference, holm, show_estimate
from fedsampling.evidence.verdicts import Finding, Interval, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.samplers.clustered import allocate_by_size
from fedsampling.theory.weights import (
    check_population,
    clustered_covariance,
    statistics,
    sums,
)

from .runs import EXACT, comparisons, deviations, has, loss_pairs, our_choice, paired_losses

WEIGHTS_EQUAL = "weights equal in distribution"
ALL_ABOVE: Mapping[Verdict, str] = {"reproduced": "Every interval lies above zero."}


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Uniform is below MD sampling at every n, and less so for larger n."""
    quantity = "loss, MD − Uniform"
    pairs = loss_pairs(summaries, "md", "uniform", "equal")
    finding = ordering(holm(pairs, difference), claim.margin, quantity, ALL_ABOVE)
    first, *_, last = pairs
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
    equal_weights = stated(gap <= EXACT)
    return replace(finding, ours=ours, parts={**finding.parts, WEIGHTS_EQUAL: equal_weights})


def c4(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Clustered is below MD sampling at every n."""
    gaps = holm(loss_pairs(summaries, "md", "clustered", "samples"), difference)
    return ordering(gaps, claim.margin, "loss, MD − Clustered", ALL_ABOVE)


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the paper's standard deviations are in the range of random choices."""
    summary = summaries["clients"]
    spread, chosen = deviations(summary), our_choice(summary)
    parts, ours, drawn = {}, [], []
    for n in (10, 80):
        sd = spread[spread["n"] == n].set_index("seed")["sd"]
        low, high = sd.drop(chosen).quantile([claim.margin / 2, 1 - claim.margin / 2])
        theirs = paper.reported(f"deviation_{n}")
        parts[f"{n} clients"] = stated(bool(low <= theirs <= high))
        name = f"{n} clients: our choice, and the range of {len(sd) - 1} others"
        value, low, high = float(sd[chosen]), float(low), float(high)
        drawn.append(Interval(name, "standard deviation", value, low, high, paper=theirs))
        ours.append(f"{n} clients: {show(value)}, choices {show(low)} to {show(high)}")
    return verdict(
        parts,
        ours=f"{'; '.join(ours)} ({len(sd) - 1} choices)",
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
        if has(summary, case, "md", "uniform")
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


# Corollary 1 and Appendix B.7: when Uniform sampling has better guarantees than MD sampling.
#
# The bound of Theorem 1 grows with Σ and γ, so one scheme is better where both of its sums are
# smaller.


class Margins(NamedTuple):
    """The margin of each inequality of Corollary 1; the inequality holds if it is at least zero."""

    sigma: float  # Σ_MD − Σ_U
    gamma: float  # γ_MD − γ_U
    condition: float  # 1/(n − m + 1) − Σ_i p_i², eq. (13)


def margins(p: Array, m: int) -> Margins:
    """Evaluate both sides of Corollary 1; Σ and γ, eqs. (8) and (9), by Table 1's closed forms."""
    p = check_population(p, m)
    sigma_md, gamma_md = sums(statistics("md", p, m), p)
    sigma_u, gamma_u = sums(statistics("uniform", p, m), p)
    return Margins(
        sigma=sigma_md - sigma_u,
        gamma=gamma_md - gamma_u,
        condition=sigma_boundary(p.size, m) - float((p**2).sum()),
    )


def sigma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which Σ_U ≤ Σ_MD, eqs. (13) and (127).

    (127) and (129) print Σ_MD ≤ Σ_U and γ_MD ≤ γ_U; (126) and (128) imply the reverse.
    """
    return 1 / (n - m + 1)


def gamma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which γ_U ≤ γ_MD, eqs. (129) and (130); at least that of Σ."""
    return (n - 1) / (n * (n - m)) if m < n else float("inf")


def largest_importance(n: int, m: int) -> float:
    """Return the p_1 up to which Σ_U ≤ Σ_MD where the n − 1 other clients share the rest equally.

    It is the larger root of p_1² + (1 − p_1)²/(n − 1) = 1/(n − m + 1), eq. (13).
    """
    return float((1 + np.sqrt((n - 1) * (n * sigma_boundary(n, m) - 1))) / n)


def importances(p_1: float, n: int) -> Array:
    """Return p_1 for the first client, and equal shares of the rest for the others."""
    return np.array([p_1, *[(1 - p_1) / (n - 1)] * (n - 1)])


def populations(n: int, m: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Draw `count` importances of n clients, every second one close to the boundary.

    Each lies on the line from equal importance to a random point of the simplex (or to a vertex,
    where that point is too close), at a Σ p_i² that is either anywhere or within a relative 10⁻⁶
    to 10⁻¹ of 1/(n − m + 1).
    """
    equal = np.full(n, 1 / n)
    for index in range(count):
        target = rng.uniform(1 / n, 1)
        if index % 2:
            offset = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-6, -1)
            target = np.clip(sigma_boundary(n, m) * (1 + offset), 1 / n, 1)
        end = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1, 1)))
        if (end**2).sum() < target:
            end = np.eye(n)[end.argmax()]
        # Σ p_i² − 1/n grows with the square of the distance, because the cross term sums to zero.
        fraction = np.sqrt((target - 1 / n) / ((end**2).sum() - 1 / n))
        yield equal + fraction * (end - equal)
