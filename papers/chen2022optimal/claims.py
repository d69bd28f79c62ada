"""Claims of Chen et al. 2022 on training, judged by the rules in its ``paper.yaml``.

c1 to c3 are judged twice: on the authors' three datasets, and on MNIST by writer, which is
available.  Samplers share seeds and are compared in pairs.  ``claims_theory.py`` has c4 and c5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import (
    JOINT,
    above,
    ordering,
    over_choices,
    stated,
    verdict,
)
from fedsampling.evidence.statistics import (
    Estimate,
    compare,
    difference,
    holm,
    mean,
    percent,
    ratio,
    show_estimate,
)
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .courses import BITS, course, population, title

SCHEMES = ("full", "uniform", "optimal")
RIVALS = ("full", "uniform")
LATE = 30  # "at the end" is the mean of the measurements in this many last rounds
SINGLE = "single rounds are random."  # ends the reasons of c3
TUNED = "writers_tuned"  # uniform sampling at another step
OPPOSITE: Mapping[Part, Part] = {"holds": "fails", "fails": "holds", "open": "open"}
Sets = Mapping[str, tuple[Summary, str]]  # experiment and case of each dataset
Courses = Mapping[str, pd.DataFrame]  # the course of every run, by set


def c1(summaries: Summaries, claim: ClaimSpec, paper: Paper, late: float = LATE) -> Finding:
    """Judge uniform < optimal ≲ full, by rounds; the last `late` rounds are the end of a run."""
    sets = _sets(summaries, claim, paper)
    titles = {name: title(summary, case) for name, (summary, case) in sets.items()}
    return _over_steps(lambda runs: _order(runs, titles, claim, late), summaries, claim, paper)


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


def c2(
    summaries: Summaries,
    claim: ClaimSpec,
    paper: Paper,
    budget: float | None = None,
    limit: float | None = None,
) -> Finding:
    """Judge accuracy at a budget of bits, in 10^8, and bits to an accuracy, on Dataset 1."""
    bits = budget or paper.reported("budget")
    bound = limit or paper.reported("accuracy_of_others") / 100
    return _over_steps(
        lambda runs: _at_budget(runs, claim, paper, bits, bound), summaries, claim, paper
    )


@dataclass(frozen=True)
class BudgetNumbers:
    """What c2 compares, by sampler: accuracies at a budget of bits, and bits to an accuracy."""

    accuracy: Mapping[str, Estimate]  # at the budget
    leads: Mapping[str, Estimate]  # accuracy of optimal sampling minus that of each rival
    bits: Mapping[str, pd.Series]  # of each seed, to the accuracy
    full_over_optimal: Estimate  # ratio of these bits


def _at_budget(
    runs_of: Courses, claim: ClaimSpec, paper: Paper, budget: float, limit: float
) -> Finding:
    """Judge c2 by the courses of all samplers on each set."""
    if "dataset1" not in runs_of:
        return Finding("inconclusive", "no runs of Dataset 1", "Dataset 1 was left out.")
    runs = runs_of["dataset1"]
    if not set(SCHEMES) <= set(runs["sampler"]):
        return Finding("inconclusive", "a sampler has no runs", "A sampler was left out.")
    goal, bits_ratio = paper.reported("accuracy") / 100, paper.reported("bits_ratio")
    floor = goal - claim.margin
    numbers = _budget_numbers(runs, budget, goal)
    accuracy, times = numbers.accuracy, numbers.full_over_optimal
    order: dict[str, Part] = {
        **{
            f"optimal above {name} at that budget": above(numbers.leads[name], 0) for name in RIVALS
        },
        "optimal needs fewer bits than full": _needs_fewer_bits(numbers),
    }
    sizes: dict[str, Part] = {
        f"optimal sampling has at least {100 * floor:g} % at that budget": above(
            accuracy["optimal"], floor
        ),
        **{
            f"{name} has less than {100 * limit:g} %": OPPOSITE[above(accuracy[name], limit)]
            for name in RIVALS
        },
        f"full needs {bits_ratio:g} times its bits": above(times, bits_ratio),
    }
    words = {"holds": "yes", "fails": "no", "open": "undecided"}
    reason = "; ".join(f"{name}: {words[part]}" for name, part in sizes.items())
    shares = {name: percent(estimate) for name, estimate in accuracy.items()}
    at_budget = ", ".join(f"{name} {show_estimate(share, '%')}" for name, share in shares.items())
    return Finding(
        _order_and_sizes(order, sizes),
        f"at {budget:g}·10^8 bits: {at_budget}; median of the 10^8 bits to {100 * goal:g} %: "
        f"{_median_bits(runs, numbers)}; full over optimal {show_estimate(times)}",
        f"{reason[:1].upper()}{reason[1:]}.",
        drawn=(
            *intervals(
                {"optimal": shares["optimal"]}, "% accuracy", least=100 * floor, paper=100 * goal
            ),
            *intervals({name: shares[name] for name in RIVALS}, "% accuracy", most=100 * limit),
            *intervals({"full over optimal": times}, "times", least=bits_ratio, paper=bits_ratio),
        ),
        parts={**order, **sizes},
    )


def _budget_numbers(runs: pd.DataFrame, budget: float, goal: float) -> BudgetNumbers:
    """Compare the samplers at a budget, in 10^8 bits, and by their bits to the accuracy `goal`."""
    accuracies = {name: accuracy_at(runs, name, budget * BITS) for name in SCHEMES}
    bits = {name: bits_to(runs, name, goal) for name in SCHEMES}
    pairs = {name: (accuracies["optimal"], accuracies[name]) for name in RIVALS}
    return BudgetNumbers(
        accuracy={name: mean(values) for name, values in accuracies.items()},
        leads=holm(pairs, difference),
        bits=bits,
        full_over_optimal=compare(bits["full"], bits["optimal"], ratio),
    )


def _needs_fewer_bits(numbers: BudgetNumbers) -> Part:
    """Judge whether optimal sampling needs fewer bits than full participation."""
    full, optimal = numbers.bits["full"], numbers.bits["optimal"]
    if np.isinf(full).any() and np.isfinite(optimal).all():
        # Runs of full participation that miss the goal need infinitely many bits.
        return stated(bool((full > optimal).all()))
    return above(numbers.full_over_optimal, 1)


def _order_and_sizes(order: Mapping[str, Part], sizes: Mapping[str, Part]) -> Verdict:
    """Decide c2: the order decides; if it holds, the sizes too must hold."""
    if "fails" in order.values():
        return "contradicted"
    if "open" in order.values():
        return "inconclusive"
    return "reproduced" if set(sizes.values()) == {"holds"} else "partly reproduced"


def _median_bits(runs: pd.DataFrame, numbers: BudgetNumbers) -> str:
    """Write each sampler's median of the 10^8 bits to the accuracy, or the bits that it exceeds."""
    sent = runs.groupby(["sampler", "seed"], observed=True)["bits"].max()
    return ", ".join(
        f"{name} {show(float(values.median()) / BITS, last=float(sent[name].min()) / BITS)}"
        for name, values in numbers.bits.items()
    )


def accuracy_at(runs: pd.DataFrame, sampler: str, budget: float) -> pd.Series:
    """Interpolate each run's accuracy at a number of bits sent, by seed; NaN if it sent fewer."""
    accuracies = {}
    for seed, run in runs[runs["sampler"] == sampler].groupby("seed", observed=True):
        reached = run["bits"].max() >= budget
        accuracies[seed] = np.interp(budget, run["bits"], run["accuracy"]) if reached else np.nan
    return pd.Series(accuracies, dtype=np.float64)


def bits_to(runs: pd.DataFrame, sampler: str, goal: float) -> pd.Series:
    """Return the bits that each run had sent when its accuracy reached `goal`, or infinity."""
    rows = runs[runs["sampler"] == sampler]
    first = rows[rows["accuracy"] >= goal].groupby("seed", observed=True)["bits"].first()
    return first.reindex(sorted(rows["seed"].unique()), fill_value=np.inf)


def _misses(
    pairs: Mapping[str, tuple[str, str, str]],
    bits: Mapping[str, tuple[pd.Series, pd.Series]],
    goal: float,
) -> str:
    """Say how many runs miss an accuracy, by sampler and dataset; empty if none does."""
    misses = {
        f"{sampler} on {pairs[name][0].replace('dataset', 'Dataset ')}": (
            int(np.isinf(values).sum()),
            len(values),
        )
        for name, by_sampler in bits.items()
        for sampler, values in zip(pairs[name][1:], by_sampler, strict=True)
    }
    of = [f"{count} of {runs} runs of {name}" for name, (count, runs) in misses.items() if count]
    return f"{100 * goal:g} % is never reached by {listed(of)}." if of else ""


def _over_steps(
    judge: Callable[[Courses], Finding], summaries: Summaries, claim: ClaimSpec, paper: Paper
) -> Finding:
    """Judge a claim with each step of uniform sampling that was run; the tuned one is the main."""
    sets = _sets(summaries, claim, paper)
    courses = {name: course(summary, case) for name, (summary, case) in sets.items()}
    if not claim.transfer or TUNED not in summaries or not sets:
        return judge(courses)
    tuned = summaries[TUNED]
    with_tuned = {
        name: pd.concat([runs[runs["sampler"] != "uniform"], course(tuned, name)])
        for name, runs in courses.items()
        if name in tuned.settings["cases"]
    }
    first, second = (
        f"uniform sampling's learning rate {step:g}"
        for step in (_step(*next(iter(sets.values()))), _step(tuned))
    )
    readings = {first: judge(courses), second: judge({**courses, **with_tuned})}
    return over_choices(readings, main=second)


def _sets(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Sets:
    """Return a claim's datasets: one experiment each, or cases with the datasets' names."""
    return {
        name if case == "base" else case: (summaries[name], case)
        for name in claim.experiments or paper.artefacts[claim.artefact].experiments
        if name in summaries
        for case in summaries[name].settings["cases"]
    }


def _step(summary: Summary, case: str | None = None) -> float:
    """Return the step of uniform sampling in a case, by default the first."""
    case = case or next(iter(summary.settings["cases"]))
    scale = float(summary.setting("scale", sampler="uniform"))
    return scale * float(summary.setting("work.step", case))


def c3(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the share of the available clients that report under optimal sampling."""
    shares: list[pd.Series] = []
    largest = 0.0
    for summary, case in _sets(summaries, claim, paper).values():
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


c1_writers, c2_writers, c3_writers = c1, c2, c3


def c6_writers(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge the bits of uniform sampling over those of full participation, on Dataset 1."""
    pairs = {"uniform over full": ("dataset1", "uniform", "full")}
    return _bits_finding(pairs, summaries, claim, paper)


def c7_writers(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether optimal sampling needs fewer bits on Datasets 2 and 3, too."""
    pairs = {
        f"{rival} over optimal, Dataset {number}": (f"dataset{number}", rival, "optimal")
        for number in (2, 3)
        for rival in RIVALS
    }
    return _bits_finding(pairs, summaries, claim, paper)


def _bits_finding(
    pairs: Mapping[str, tuple[str, str, str]], summaries: Summaries, claim: ClaimSpec, paper: Paper
) -> Finding:
    """Judge ratios of bits to the paper's accuracy; each pair has a dataset and two samplers."""
    goal = paper.reported("accuracy") / 100

    def judge(runs_of: Courses) -> Finding:
        bits = {
            name: (bits_to(runs_of[data], first, goal), bits_to(runs_of[data], second, goal))
            for name, (data, first, second) in pairs.items()
            if data in runs_of
        }
        if unknown := _misses(pairs, bits, goal) or "A dataset was left out." * (not bits):
            return Finding("inconclusive", unknown, unknown)
        ratios = holm(bits, ratio, claim.margin)
        return ordering(ratios, claim.margin, f"times the bits to {100 * goal:g} %")

    return _over_steps(judge, summaries, claim, paper)
