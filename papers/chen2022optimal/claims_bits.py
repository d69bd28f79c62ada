"""Claims of Chen et al. 2022 on bits: accuracy at a budget, and bits to an accuracy.

Judged by the rules in its ``paper.yaml``: c2 on the authors' Dataset 1 and on MNIST by writer, c6
and c7 on MNIST by writer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import above, ordering
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
from fedsampling.evidence.verdicts import Finding, Part, Verdict, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .courses import BITS
from .judged_runs import OPPOSITE, SCHEMES, Courses, over_steps

RIVALS = ("full", "uniform")
LEFT_OUT = "A dataset was left out."


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
    return over_steps(
        lambda runs: _at_budget(runs, claim, paper, bits, bound), summaries, claim, paper
    )


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
    at_least = f"optimal sampling has at least {100 * floor:g} % at that budget"
    below = {name: f"{name} has less than {100 * limit:g} %" for name in RIVALS}
    times_the_bits = f"full needs {bits_ratio:g} times its bits"
    sizes: dict[str, Part] = {
        at_least: above(accuracy["optimal"], floor),
        **{part: OPPOSITE[above(accuracy[name], limit)] for name, part in below.items()},
        times_the_bits: above(times, bits_ratio),
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
                {"optimal": shares["optimal"]},
                "% accuracy",
                least=100 * floor,
                paper=100 * goal,
                part=at_least,
            ),
            *(
                interval
                for name, part in below.items()
                for interval in intervals(
                    {name: shares[name]}, "% accuracy", most=100 * limit, part=part
                )
            ),
            *intervals(
                {"full over optimal": times},
                "times",
                least=bits_ratio,
                paper=bits_ratio,
                part=times_the_bits,
            ),
        ),
        parts={**order, **sizes},
    )


@dataclass(frozen=True)
class BudgetNumbers:
    """What c2 compares, by sampler: accuracies at a budget of bits, and bits to an accuracy."""

    accuracy: Mapping[str, Estimate]  # at the budget
    leads: Mapping[str, Estimate]  # accuracy of optimal sampling minus that of each rival
    bits: Mapping[str, pd.Series]  # of each seed, to the accuracy
    full_over_optimal: Estimate  # ratio of these bits


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
        return "holds" if (full > optimal).all() else "open"
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


def _bits_finding(
    pairs: Mapping[str, tuple[str, str, str]], summaries: Summaries, claim: ClaimSpec, paper: Paper
) -> Finding:
    """Judge how many times the bits of one sampler another needs for the paper's accuracy.

    `pairs`: for each ratio, a dataset, the sampler above and the sampler below the line.
    """
    goal = paper.reported("accuracy") / 100

    def judge(runs_of: Courses) -> Finding:
        bits = {
            name: (bits_to(runs_of[data], first, goal), bits_to(runs_of[data], second, goal))
            for name, (data, first, second) in pairs.items()
            if data in runs_of
        }
        if not bits:
            return Finding("inconclusive", LEFT_OUT, LEFT_OUT)
        if misses := _misses(pairs, bits, goal):
            return Finding("inconclusive", misses, misses)
        ratios = holm(bits, ratio, claim.margin)
        return ordering(ratios, claim.margin, f"times the bits to {100 * goal:g} %")

    return over_steps(judge, summaries, claim, paper)


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


c2_writers = c2
