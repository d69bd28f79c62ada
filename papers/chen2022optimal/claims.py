"""Claims c1 and c3 of Chen et al. 2022: accuracy of the samplers, and how many clients report.

Judged by the rules in its ``paper.yaml``, twice: on the authors' three datasets, and on MNIST by
writer, which is available.  Samplers share seeds and are compared in pairs.  ``claims_bits.py`` has
the claims on bits, ``claims_theory.py`` c4 and c5.
"""

from collections.abc import Mapping

import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import JOINT, above, stated, verdict
from fedsampling.evidence.statistics import difference, holm, mean, percent, show_estimate
from fedsampling.evidence.verdicts import Finding, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .courses import population, title
from .judged_runs import OPPOSITE, SCHEMES, Courses, datasets_of, over_steps

LATE = 30  # "at the end" is the mean of the measurements in this many last rounds
SINGLE = "single rounds are random."  # ends the reasons of c3


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper, late: float = LATE) -> Finding:
    """Judge uniform < optimal ≲ full, by rounds; the last `late` rounds are the end of a run."""
    sets = datasets_of(summaries, claim, paper)
    titles = {name: title(summary, case) for name, (summary, case) in sets.items()}
    return over_steps(lambda runs: _order(runs, titles, claim, late), summaries, claim, paper)


def _order(runs_of: Courses, titles: Mapping[str, str], claim: ClaimSpec, late: float) -> Finding:
    """Judge c1 by the courses of all samplers on each set: the least favourable set decides."""
    ours: list[str] = []
    verdicts: dict[str, Verdict] = {}
    gains, shortfalls = {}, {}
    for name, runs in runs_of.items():
        if missing := set(SCHEMES) - set(runs["sampler"]):
            verdicts[name] = "inconclusive"
            ours.append(f"{titles[name]}: no runs of {', '.join(sorted(missing))}")
        else:
            gains[name] = _accuracies(runs, "optimal", "uniform", since=0)
            shortfalls[name] = _accuracies(runs, "full", "optimal", since=runs["at"].max() - late)
    gain, shortfall = holm(gains, difference), holm(shortfalls, difference, claim.margin)
    parts: dict[str, Part] = {}
    for name in gains:
        is_better, is_short = above(gain[name], 0), above(shortfall[name], claim.margin)
        verdicts[name] = _order_verdict(is_better, is_short)
        parts[f"optimal above uniform, {titles[name]}"] = is_better
        parts[f"optimal close to full at the end, {titles[name]}"] = OPPOSITE[is_short]
        ours.append(
            f"{titles[name]}: optimal − uniform {show_estimate(gain[name])}, "
            f"full − optimal at the end {show_estimate(shortfall[name])}"
        )
    if len(set(verdicts.values())) > 1:
        reason = "; ".join(f"{verdicts[name]} on {titles[name]}" for name in verdicts)
    else:
        reason = f"{next(iter(verdicts.values()))} on {listed(list(titles.values()))}"
    worst_first: tuple[Verdict, ...] = (
        "contradicted", "inconclusive", "partly reproduced", "reproduced",
    )  # fmt: skip
    return Finding(
        min(verdicts.values(), key=worst_first.index),
        "; ".join(ours),
        f"{reason[:1].upper()}{reason[1:]}.",
        drawn=intervals(
            {f"optimal − uniform, {titles[name]}": gain[name] for name in gain},
            f"accuracy{JOINT}",
            least=0,
        )
        + intervals(
            {f"full − optimal at the end, {titles[name]}": shortfall[name] for name in shortfall},
            f"accuracy{JOINT}",
            most=claim.margin,
        ),
        parts=parts,
    )


def _order_verdict(is_better: Part, is_short_of_full: Part) -> Verdict:
    """Judge c1 on one set: whether optimal is above uniform sampling, and well below full."""
    if is_better == "fails":
        return "contradicted"
    if "open" in (is_better, is_short_of_full):
        return "inconclusive"
    return "partly reproduced" if is_short_of_full == "holds" else "reproduced"


def _accuracies(
    runs: pd.DataFrame, first: str, second: str, since: float
) -> tuple[pd.Series, pd.Series]:
    """Return the mean accuracies of two samplers over the rounds from `since` on, by seed."""
    late = runs[runs["at"] >= since]
    grouped = late.groupby(["sampler", "seed"], observed=True)["accuracy"]
    means = grouped.mean().mask(grouped.count() < grouped.size()).unstack("seed")  # diverged: NaN
    by_sampler = means.T
    return by_sampler[first], by_sampler[second]


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the share of the available clients that report under optimal sampling."""
    shares: list[pd.Series] = []
    largest = 0.0
    for summary, case in datasets_of(summaries, claim, paper).values():
        n, _ = population(summary)
        reports = summary.select("optimal", "reports", case)
        shares.append(reports.groupby("seed")["value"].mean() / n)
        largest = max(largest, float(reports["value"].max()) / n)
    share, limit = mean(pd.concat(shares, axis=1).mean(axis=1)), claim.margin
    margin = f"{100 * limit:g} %"
    decided = share.high < limit or share.low >= limit
    return verdict(
        {"the share": stated(share.high < limit if decided else None)},
        ours=f"{show_estimate(percent(share), '%')} on average, {show(100 * largest)} % in the "
        "fullest round",
        why={
            "reproduced": f"The interval of the mean over rounds lies below {margin}; {SINGLE}",
            "contradicted": f"The interval of the mean over rounds lies above {margin}; {SINGLE}",
            "inconclusive": f"The mean over rounds has no interval on one side of {margin}.",
        },
        drawn=intervals({"mean over rounds": percent(share)}, "% of clients", most=100 * limit),
    )


c1_writers, c3_writers = c1, c3
