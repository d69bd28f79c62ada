"""Claims of fraboni2021clustered, judged by the rules in its ``paper.yaml``.

Samplers of an experiment share seeds, and so initial models and batches: they are compared in
pairs.  A diverged run leaves a comparison open.
"""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from fedsampling.evidence.numbers import show, show_estimate, show_estimates
from fedsampling.evidence.statistics import (
    Estimate,
    compare,
    difference,
    holm,
    mean,
    percent,
    ratio,
)
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import (
    JOINT,
    Finding,
    Interval,
    Part,
    Verdict,
    above,
    alike,
    beyond,
    close,
    intervals,
    ordered,
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

CLOSE: Mapping[Verdict, str] = {
    "reproduced": "Every ratio lies within the margin.",
    "partly reproduced": "Some ratios lie within the margin, not all.",
    "contradicted": "A ratio lies outside of the margin.",
    "inconclusive": "A ratio crosses the margin.",
}
Pair = tuple[pd.Series, pd.Series]
Pairs = Mapping[str, Pair]  # compared losses, by label


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often all sampled clients are different."""
    summary = summaries["mnist"]
    shares = {name: all_clients_distinct(summary, name) for name in ("md", *CLUSTERED)}
    md_share, expected = mean(shares["md"]), probability_all_distinct(summary)
    ours = (
        f"MD {show_estimate(percent_of_rounds(md_share), '%')} "
        f"(closed form {100 * expected:.1f} %); "
        + "; ".join(f"{LINES[name].label} {100 * shares[name].mean():.4g} %" for name in CLUSTERED)
    )
    share = close(md_share, md_share, expected, claim.margin)
    always = bool(min(shares[name].min() for name in CLUSTERED) == 1)
    verdicts: dict[tuple[Part, bool], Verdict] = {
        ("holds", True): "reproduced",
        ("open", True): "inconclusive",
        ("fails", False): "contradicted",
    }
    lies = {"holds": "lies within", "open": "crosses", "fails": "lies outside of"}[share]
    reason = f"The interval of MD's share {lies} the margin; Algorithms 1 and 2 " + (
        "never draw a client twice." if always else "draw a client twice in some rounds."
    )
    drawn = intervals(
        {"MD": percent_of_rounds(md_share)},
        "% of rounds",
        paper=100 * expected,
        within=100 * claim.margin,
    )
    return Finding(verdicts.get((share, always), "partly reproduced"), ours, reason, drawn=drawn)


def c2(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge how often MD sampling shows six to eight digits."""
    rounds = summaries["mnist"].select("md", "labels", since=1)
    usual = rounds["value"].between(paper.reported("least_digits"), paper.reported("most_digits"))
    share = mean(usual.groupby(rounds["seed"]).mean())
    shown = percent_of_rounds(share)
    why: dict[Verdict, str] = {
        "reproduced": "The interval lies above the margin.",
        "contradicted": "The interval lies below the margin.",
        "inconclusive": "The interval crosses the margin.",
    }
    ours = f"in {show_estimate(shown, '%')} of the rounds"
    drawn = intervals({"MD": shown}, "% of rounds", least=100 * claim.margin)
    return verdict({"MD sampling": beyond(share, claim.margin)}, ours, why, drawn=drawn)


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether Algorithm 2 ends where target sampling does."""
    summary = summaries["mnist"]
    pairs = {
        name: (late(summary, "algorithm2", metric), late(summary, "target", metric))
        for metric, name in {"loss": "loss", "accuracy": "accuracy", "labels": "digits"}.items()
    }
    parts, shown, drawn = _ratios(pairs, claim, "Algorithm 2 over target")
    ours = f"Algorithm 2 over target: {shown}"
    return verdict(parts, ours, CLOSE, contrary_decides=False, drawn=drawn)


def c4(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the order of the late losses over α."""
    summary = summaries["alpha"]
    cases, largest = by_alpha(summary), paper.reported("largest_alpha_better")
    deciding: dict[str, Pair] = {}
    others: dict[str, Pair] = {}
    steps: dict[str, Pair] = {}
    for alpha, case in cases.items():
        md, first, second = (late(summary, name, "loss", case) for name in ("md", *CLUSTERED))
        (deciding if alpha <= largest else others)[f"α = {alpha:g}"] = md, second
        steps |= {f"MD at {alpha}": (md, first), f"Algorithm 1 at {alpha}": (first, second)}
    gaps = holm(deciding, difference)
    beside = {name: compare(*pair, difference) for name, pair in others.items()}
    reversed_ = [above(step, claim.margin) == "fails" for step in holm(steps, difference).values()]
    ours = f"MD − Algorithm 2: {show_estimates(gaps | beside, link=': ')}"
    whole = ordered(
        gaps,
        claim.margin,
        ours,
        intervals(gaps, f"loss, MD − Algorithm 2{JOINT}", least=claim.margin)
        + intervals(beside, "loss, MD − Algorithm 2", least=claim.margin),
        {"reproduced": "Ordered at every α, and more so at the smallest."},
    )
    more = len(cases) > 1 and _gains_more(summary, cases[min(cases)], cases[max(cases)])
    if whole.verdict == "reproduced" and (any(reversed_) or not more):
        why = f"Algorithm 2 is lower for every α ≤ {largest:g}; the rest fails."
        return replace(whole, verdict="partly reproduced", reason=why)
    return whole


def c5(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the late losses are close for α = 10 and 0.1."""
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
    return _close(pairs, claim, "over MD")


def c6(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the gain grows with local work and with fewer clients."""
    work, clients = summaries["work"], summaries["clients"]
    steps = {work.setting("work.steps", case): case for case in work.settings["cases"]}
    more = _gain(work, case=steps[max(steps)]), _gain(work, case=steps[min(steps)])
    sampled = [sampler["m"] for sampler in clients.settings["samplers"].values()]
    case = by_alpha(clients)[paper.reported("alpha_of_figure8")]
    fewer = _gain(clients, f"-{min(sampled)}", case), _gain(clients, f"-{max(sampled)}", case)
    gaps = holm({"more work": more, "fewer clients": fewer}, difference)
    points = {name: percent(each) for name, each in gaps.items()}
    return ordered(
        gaps,
        claim.margin,
        show_estimates(points, "points"),
        intervals(points, f"points{JOINT}", least=100 * claim.margin),
    )


def c7(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether the measures of similarity end at the same loss."""
    summary = summaries["measures"]
    arccos = late(summary, "arccos")
    pairs = {name.upper(): (late(summary, name), arccos) for name in ("l2", "l1")}
    return _close(pairs, claim, "over arccos")


def c8(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether both algorithms are below MD sampling under FedProx."""
    md, *losses = (late(summaries["prox"], name) for name in ("md", *CLUSTERED))
    pairs = {LINES[n].label: (md, loss) for n, loss in zip(CLUSTERED, losses, strict=True)}
    gaps = holm(pairs, difference)
    lower = {f"MD − {name}": each for name, each in gaps.items()}
    ours = show_estimates(lower, link=": ")
    return ordered(gaps, claim.margin, ours, intervals(lower, f"loss{JOINT}", least=claim.margin))


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
    why: dict[Verdict, str] = {
        "reproduced": "Every sum is exact and no client exceeds a bound.",
        "contradicted": "A sum is not exact, or a client exceeds a bound.",
    }
    return verdict(parts, ours, why)


def c10(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge both algorithms against MD sampling, with either way to break Algorithm 1's ties.

    All clients have equal sizes here.  Numbered digit by digit, with ties broken by number, each
    of Algorithm 1's distributions is the clients of one digit: target sampling, whose runs are
    taken.
    """
    summary = summaries["mnist"]
    readings = {TIES: outperform(summary, claim)}
    if "target" in set(summary.rows["sampler"]):
        readings[BY_DIGIT] = outperform(renamed(summary, "target", "algorithm1"), claim)
    return over_choices(readings, main=TIES)


TIES = "ties broken at random"
BY_DIGIT = "ties broken by number, clients numbered digit by digit"


def outperform(summary: Summary, claim: ClaimSpec) -> Finding:
    """Judge loss, accuracy and digits of both algorithms against MD sampling."""
    return gains_finding(holm(gains_over_md(summary), difference), claim)


def renamed(summary: Summary, sampler: str, name: str) -> Summary:
    """Let the runs of one sampler stand for another's."""
    rows = summary.rows[summary.rows["sampler"] != name]
    return replace(
        summary, rows=rows.assign(sampler=rows["sampler"].astype(str).replace({sampler: name}))
    )


def gains_over_md(summary: Summary) -> Pairs:
    """Pair each quantity of both algorithms with MD sampling's, so that a gain is positive."""
    pairs = {}
    for name in CLUSTERED:
        for metric, sign in {"loss": -1, "accuracy": 1, "labels": 1}.items():
            pair = late(summary, name, metric), late(summary, "md", metric)
            quantity = f"{LINES[name].label} {'digits' if metric == 'labels' else metric}"
            pairs[quantity] = pair if sign > 0 else pair[::-1]
    return pairs


def gains_finding(gains: Mapping[str, Estimate], claim: ClaimSpec) -> Finding:
    """Judge c10 by the gains over MD sampling."""
    ours = f"gain over MD: {show_estimates(gains)}"
    drawn = [
        each
        for unit in ("loss", "accuracy", "digits")
        for each in intervals(
            {name: gain for name, gain in gains.items() if name.endswith(unit)},
            f"{unit}, gain over MD{JOINT}",
            least=claim.margin,
        )
    ]
    return ordered(gains, claim.margin, ours, tuple(drawn))


def _close(pairs: Pairs, claim: ClaimSpec, quantity: str) -> Finding:
    """Judge whether all ratios lie within the margin about one."""
    parts, shown, drawn = _ratios(pairs, claim, quantity)
    ours = f"{quantity}: {shown}" if parts else "–"
    return verdict(parts, ours, CLOSE if parts else {}, partly=False, drawn=drawn)


def _ratios(
    pairs: Pairs, claim: ClaimSpec, quantity: str
) -> tuple[dict[str, Part], str, tuple[Interval, ...]]:
    """Say of each ratio whether it is one up to the margin, and show them all."""
    ratios = {name: compare(*pair, ratio) for name, pair in pairs.items()}
    drawn = intervals(ratios, f"times ({quantity})", paper=1, within=claim.margin)
    return alike(pairs, ratio, 1, claim.margin), show_estimates(ratios), drawn


def _gain(summary: Summary, suffix: str = "", case: str = "base") -> pd.Series:
    """Return Algorithm 2's relative gain over MD in mean loss over all rounds, by seed."""
    md, ours = (
        summary.per_seed(f"{name}{suffix}", "loss", case, since=1) for name in ("md", "algorithm2")
    )
    return 1 - ours / md


def _gains_more(summary: Summary, skewed: str, even: str) -> bool:
    """Whether Algorithm 2's relative gain in late loss is larger in the first of two cases."""
    first, second = (
        1 - late(summary, "algorithm2", "loss", case) / late(summary, "md", "loss", case)
        for case in (skewed, even)
    )
    return compare(first, second, difference).low > 0
