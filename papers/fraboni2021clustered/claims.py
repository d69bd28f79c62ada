"""Claims of fraboni2021clustered, judged by the rules in its ``paper.yaml``.

Samplers of an experiment share seeds, and so initial models and batches: they are compared in
pairs.  A diverged run leaves a comparison open.
"""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from fedsampling.evidence.numbers import show, show_estimate, show_estimates
from fedsampling.evidence.statistics import Estimate, compare, difference, holm, mean, percent
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import (
    JOINT,
    Finding,
    Part,
    Verdict,
    above,
    close,
    equivalence,
    intervals,
    ordering,
    over_choices,
    stated,
    verdict,
)
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .shared import (
    CLUSTERED,
    LINES,
    all_clients_distinct,
    by_alpha,
    late,
    percent_of_rounds,
    probability_all_distinct,
)

METRICS = {"loss": "loss", "accuracy": "accuracy", "labels": "digits"}  # by their name in runs
Pairs = Mapping[str, tuple[pd.Series, pd.Series]]  # two samplers' numbers by seed


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often all sampled clients are different."""
    summary = summaries["mnist"]
    shares = {name: all_clients_distinct(summary, name) for name in ("md", *CLUSTERED)}
    md_share, expected = mean(shares["md"]), probability_all_distinct(summary)
    share = close(md_share, md_share, expected, claim.margin)
    always = bool(min(shares[name].min() for name in CLUSTERED) == 1)
    verdicts: dict[tuple[Part, bool], Verdict] = {
        ("holds", True): "reproduced",
        ("open", True): "inconclusive",
        ("fails", False): "contradicted",
    }
    position = {"holds": "lies within", "open": "crosses", "fails": "lies outside of"}[share]
    repeats = "never draw a client twice" if always else "draw a client twice in some rounds"
    ours = (
        f"MD {show_estimate(percent_of_rounds(md_share), '%')} "
        f"(closed form {100 * expected:.1f} %); "
        + "; ".join(f"{LINES[name].label} {100 * shares[name].mean():.4g} %" for name in CLUSTERED)
    )
    return Finding(
        verdicts.get((share, always), "partly reproduced"),
        ours,
        f"The interval of MD's share {position} the margin; Algorithms 1 and 2 {repeats}.",
        drawn=intervals(
            {"MD": percent_of_rounds(md_share)},
            "% of rounds",
            paper=100 * expected,
            within=100 * claim.margin,
        ),
    )


def c2(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often MD sampling selects clients with six to eight digits."""
    rounds = summaries["mnist"].select("md", "labels", since=1)
    usual = rounds["value"].between(paper.reported("least_digits"), paper.reported("most_digits"))
    share = mean(usual.groupby(rounds["seed"]).mean())
    return verdict(
        {"MD sampling": above(share, claim.margin)},
        f"in {show_estimate(percent_of_rounds(share), '%')} of the rounds",
        {
            "reproduced": "The interval lies above the margin.",
            "contradicted": "The interval lies below the margin.",
            "inconclusive": "The interval crosses the margin.",
        },
        drawn=intervals({"MD": percent_of_rounds(share)}, "% of rounds", least=100 * claim.margin),
    )


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Algorithm 2 is equivalent to target sampling."""
    summary = summaries["mnist"]
    pairs = {
        name: (late(summary, "algorithm2", metric), late(summary, "target", metric))
        for metric, name in METRICS.items()
    }
    quantity = "times target sampling's value"
    return equivalence(pairs, claim.margin, quantity, contrary_decides=False, partly=True)


def c4(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the order of the late losses over α, and whether it depends on α."""
    summary, quantity = summaries["alpha"], "loss, MD − Algorithm 2"
    cases, largest = by_alpha(summary), paper.reported("largest_alpha_better")
    losses = {
        alpha: [late(summary, name, "loss", case) for name in ("md", *CLUSTERED)]
        for alpha, case in cases.items()
    }
    pairs = {f"α = {alpha:g}": (md, second) for alpha, (md, _, second) in losses.items()}
    deciding = {f"α = {alpha:g}" for alpha in losses if alpha <= largest}
    gaps = holm({name: pairs[name] for name in pairs if name in deciding}, difference)
    further_gaps = {
        name: compare(*pair, difference) for name, pair in pairs.items() if name not in deciding
    }
    gains = {alpha: 1 - second / md for alpha, (md, _, second) in losses.items()}
    least, most = min(cases), max(cases)
    percent_gained = [show(100 * gains[alpha].mean(), 2) for alpha in (least, most)]
    reason = (
        f"Algorithm 2 is lower than MD for every α ≤ {largest:g}, and no two neighbours are "
        f"significantly reversed. Algorithm 2 gains {percent_gained[0]} % at α = {least:g} and "
        f"{percent_gained[1]} % at α = {most:g}."
    )
    finding = ordering(gaps, claim.margin, quantity, {"reproduced": reason})
    finding = replace(
        finding,
        ours=f"{quantity}: {show_estimates(gaps | further_gaps)}",
        drawn=finding.drawn + intervals(further_gaps, quantity, least=claim.margin),
    )
    neighbours: dict[str, tuple[pd.Series, pd.Series]] = {}
    for alpha, (md, first, second) in losses.items():
        neighbours |= {f"MD, {alpha}": (md, first), f"Algorithm 1, {alpha}": (first, second)}
    steps = holm(neighbours, difference).values()
    is_reversed = any(above(step, claim.margin) == "fails" for step in steps)
    has_trend = len(cases) > 1 and compare(gains[least], gains[most], difference).low > 0
    if finding.verdict == "reproduced" and (is_reversed or not has_trend):
        why = f"Algorithm 2 is lower for every α ≤ {largest:g}; the rest fails."
        return replace(finding, verdict="partly reproduced", reason=why)
    return finding


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms' late losses are equivalent to MD's for α = 10 and 0.1."""
    summary, cases = summaries["alpha"], by_alpha(summaries["alpha"])
    even = paper.reported("small_alpha_close"), paper.reported("large_alpha_close")
    pairs = {
        f"{LINES[name].label} at α = {alpha:g}": (
            late(summary, name, "loss", cases[alpha]),
            late(summary, "md", "loss", cases[alpha]),
        )
        for alpha in even
        if alpha in cases
        for name in CLUSTERED
    }
    return equivalence(pairs, claim.margin, "times MD sampling's late loss")


def c6(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the gain grows with local work and with fewer clients."""
    work, clients = summaries["work"], summaries["clients"]
    steps = {work.setting("work.steps", case): case for case in work.settings["cases"]}
    sampled = [sampler["m"] for sampler in clients.settings["samplers"].values()]
    case = by_alpha(clients)[paper.reported("alpha_of_figure8")]
    pairs = {
        "more work": (_gain(work, case=steps[max(steps)]), _gain(work, case=steps[min(steps)])),
        "fewer clients": (
            _gain(clients, f"-{min(sampled)}", case),
            _gain(clients, f"-{max(sampled)}", case),
        ),
    }
    points = {name: percent(gap) for name, gap in holm(pairs, difference).items()}
    return ordering(points, 100 * claim.margin, "points")


def _gain(summary: Summary, suffix: str = "", case: str = "base") -> pd.Series:
    """Return Algorithm 2's relative gain over MD in mean loss over all rounds, by seed."""
    md, ours = (
        summary.per_seed(f"{name}{suffix}", "loss", case, since=1) for name in ("md", "algorithm2")
    )
    return 1 - ours / md


def c7(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the late losses with L2 and L1 are equivalent to that with arccos."""
    summary = summaries["measures"]
    pairs = {name.upper(): (late(summary, name), late(summary, "arccos")) for name in ("l2", "l1")}
    return equivalence(pairs, claim.margin, "times the late loss with arccos")


def c8(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms' late losses are below MD's under FedProx."""
    md, *losses = (late(summaries["prox"], name) for name in ("md", *CLUSTERED))
    pairs = {LINES[n].label: (md, loss) for n, loss in zip(CLUSTERED, losses, strict=True)}
    return ordering(holm(pairs, difference), claim.margin, "loss, MD − algorithm")


def c9(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge Proposition 1 and the bounds on every allocation of every run."""
    summary = summaries["allocation_mnist"]
    # Sums (7), (8) and draws are whole numbers; variances and probabilities are rounded.
    rows, columns, variance, inclusion = (
        float(summary.select(CLUSTERED, name)["value"].max())
        for name in ("rows_off", "columns_off", "variance_above_md", "inclusion_below_md")
    )
    draws = float(summary.select("algorithm1", "draws_above_bound")["value"].max())
    ours = (
        f"{len(summary.select(CLUSTERED, 'rows_off'))} allocations: sums off by {rows:g} and "
        f"{columns:g}; largest Var[ω_i] − MD's {show(variance)}, largest MD's P(i ∈ S) − ours "
        f"{show(inclusion)}; draws of Algorithm 1 − bound {draws:g} at most"
    )
    parts = {
        "equations (7), (8)": stated(rows == columns == 0),
        "variances and probabilities": stated(max(variance, inclusion) <= claim.margin),
        "draws of Algorithm 1": stated(draws <= 0),
    }
    return verdict(
        parts,
        ours,
        {
            "reproduced": "Every sum is exact and no client exceeds a bound.",
            "contradicted": "A sum is not exact, or a client exceeds a bound.",
        },
    )


TIES = "ties broken at random"
BY_DIGIT = "ties broken by number, clients numbered digit by digit"


def c10(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge both algorithms against MD sampling, with either way to break Algorithm 1's ties.

    All clients have equal sizes here.  Numbered digit by digit, with ties broken by number, each
    of Algorithm 1's distributions consists of the clients of one digit.  This is target sampling,
    whose runs are used.
    """
    summary = summaries["mnist"]
    readings = {TIES: outperform(summary, claim)}
    if "target" in set(summary.rows["sampler"]):
        readings[BY_DIGIT] = outperform(renamed(summary, "target", "algorithm1"), claim)
    return over_choices(readings, main=TIES)


def outperform(summary: Summary, claim: ClaimSpec) -> Finding:
    """Judge loss, accuracy and digits of both algorithms against MD sampling."""
    return gains_finding(holm(gains_over_md(summary), difference), claim)


def gains_over_md(summary: Summary) -> Pairs:
    """Pair each quantity of both algorithms with MD sampling's, so that a gain is positive."""
    pairs = {}
    for name in CLUSTERED:
        for metric, quantity in METRICS.items():
            ours, md = late(summary, name, metric), late(summary, "md", metric)
            pair = (md, ours) if metric == "loss" else (ours, md)
            pairs[f"{LINES[name].label} {quantity}"] = pair
    return pairs


def gains_finding(gains: Mapping[str, Estimate], claim: ClaimSpec) -> Finding:
    """Judge c10 by the gains over MD sampling."""
    by_unit = (
        intervals(
            {name: gain for name, gain in gains.items() if name.endswith(unit)},
            f"{unit}, gain over MD{JOINT}",
            least=claim.margin,
        )
        for unit in METRICS.values()
    )
    return replace(ordering(gains, claim.margin, "gain over MD"), drawn=sum(by_unit, ()))


def renamed(summary: Summary, sampler: str, name: str) -> Summary:
    """Replace the runs of `name` with the runs of `sampler`."""
    rows = summary.rows[summary.rows["sampler"] != name]
    return replace(
        summary, rows=rows.assign(sampler=rows["sampler"].astype(str).replace({sampler: name}))
    )
