"""Costs of the benchmark's runs, from their scores in each round to speed-ups over MD.

An experiment is a dataset; a seed is a world, with its own clients, delays, availability and
starting model.  With 100 clients, all seeds share one world, as the column ``worlds`` says.

1. In each world, MD's run sets a target: :data:`TARGET` of the way from its first to its final
   score.  A run's cost is what it has spent when its smoothed score meets the target; a miss costs
   :data:`PENALTY` times the whole run (PAR2), so no cost is missing.
2. The speed-up in a world is MD's cost divided by the sampler's.  The relative area is the gain
   over the initial score, averaged over MD's budget, divided by MD's; it needs no target.
3. On a dataset: the geometric mean (areas: the mean) over worlds, with Student's interval.
4. Over datasets: :mod:`fedsampling.report.which_sampler.advice`, with families as the unit.

The tuned settings come from the trials on the holdout of world 0, or from ``chosen.csv``.
"""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from fedsampling.base.arrays import Array, Ints
from fedsampling.evidence.ranking import NO_ESTIMATE
from fedsampling.evidence.scores import COSTS, score_trials
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import MEASURES, REFERENCE
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.report.names import display_name

TARGET = 0.95  # part of the way from MD's first to its final score
PENALTY = 2.0  # cost of a miss, in units of the whole run
WINDOW = 3  # consecutive measurements whose mean must meet the target
KEYS = ["case", "sampler", "seed"]
UNTUNED = {  # cases of MD, and their learning rates
    "small": "a fifth of the pilot's rate",
    "default": "the pilot's rate",
    "large": "five times the pilot's rate",
}
UNEQUAL_FROM = 3.0  # largest importance of a client, in units of 1/n
SKEWED_FROM = 2.0  # largest share of a label on a client, in units of its share in all data


def compared_datasets(summaries: Summaries) -> list[str]:
    """Name the datasets that are tuned and run, with MD, in the order of the paper's file."""
    return [
        name
        for name, summary in summaries.items()
        if TUNING + name in summaries and REFERENCE in summary.settings["samplers"]
    ]


def shared_worlds(one: Summary, other: Summary) -> frozenset[int]:
    """Return the worlds that two experiments have in common."""
    seeds = [set(summary.select(REFERENCE, since=0)["seed"]) for summary in (one, other)]
    return frozenset(int(seed) for seed in seeds[0] & seeds[1])


@cache  # all artefacts share the table: never modify it
def trajectories(summary: Summary) -> pd.DataFrame:
    """Return each run's score and cumulative costs, by measurement.

    Returns columns ``case``, ``step``, ``sampler``, ``seed``, ``at``, ``score`` and MEASURES.  The
    score is the accuracy, or minus the logarithm of the test loss if there is no accuracy; NaN
    after a run has diverged.
    """
    rows = summary.categorised[summary.categorised["at"] >= 0]
    wide = rows.pivot(index=[*KEYS, "at"], columns="metric", values="value").sort_index()
    metric = "accuracy" if "accuracy" in wide else "test_loss"
    with np.errstate(invalid="ignore", divide="ignore"):
        score = wide[metric] if metric == "accuracy" else -np.log(wide[metric])
    charges = wide[[name for parts in COSTS.values() for name in parts if name in wide]]
    spent = charges.fillna(0.0).groupby(level=KEYS).cumsum()
    costs = {
        cost: spent[[name for name in parts if name in spent]].sum(axis=1)
        for cost, parts in COSTS.items()
    }
    rounds = wide.index.get_level_values("at").astype(np.float64)
    table = pd.DataFrame({"score": score, "rounds": rounds, **costs})
    measured = rows.loc[rows["metric"] == metric, "at"]  # costs are recorded for all rounds
    table = table[table.index.get_level_values("at").isin(measured)].reset_index()
    steps = {case: float(summary.setting("work.step", case)) for case in summary.settings["cases"]}
    table = table.astype({"case": "str", "sampler": "str"})
    return table.assign(step=table["case"].map(steps))


@cache
def grid_scores(tuning: Summary) -> pd.DataFrame:
    """Score each trial of each sampler on the holdout: the smallest step in case of a tie."""
    return score_trials(trajectories(tuning), ["sampler", "step", "case"])


def best_trials(evaluation: Summary, tuning: Summary) -> pd.DataFrame:
    """Return the :func:`trajectories` of the runs at each sampler's best trial.

    A sampler that was run with a single case keeps it: it is the case in ``chosen.csv``.
    """
    runs, grid = trajectories(evaluation), grid_scores(tuning)
    best = grid[grid["chosen"]].set_index("sampler")["case"]
    has_single_case = runs.groupby("sampler")["case"].transform("nunique") == 1
    return runs[has_single_case | (runs["case"] == runs["sampler"].map(best))]


@cache
def costs_on(evaluation: Summary, tuning: Summary) -> pd.DataFrame:
    """Return what each run at a best trial cost, in its own world, and the relative areas."""
    runs = best_trials(evaluation, tuning)
    return costs_in_worlds(runs, runs[runs["sampler"] == REFERENCE])


def costs_in_worlds(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Return the table of :func:`costs_on`; `reference` are MD's runs, which set the targets."""
    worlds = {seed: World.of(run) for (_, seed), run in _courses(reference).items()}
    rows = []
    for (sampler, seed), run in _courses(runs).items():
        if seed not in worlds:
            continue
        met, spent = cost(run, worlds[seed].target)
        areas = relative_areas(run, worlds[seed])
        rows.append(
            {"sampler": sampler, "seed": seed, "met": met}
            | dict(zip(MEASURES, spent.tolist(), strict=True))
            | {f"area_{measure}": area for measure, area in zip(MEASURES, areas, strict=True)}
        )
    return pd.DataFrame(rows)


class Course(NamedTuple):
    """The measurements of a run, in the order of rounds."""

    at: Array
    score: Array  # NaN after the run has diverged
    spent: Array  # cumulative costs: a row for each of MEASURES


def _courses(runs: pd.DataFrame) -> dict[tuple[str, int], Course]:
    """Split :func:`trajectories` by sampler and seed, in their order."""
    at, score = runs["at"].to_numpy(), runs["score"].to_numpy()
    spent = runs[[*MEASURES]].to_numpy().T
    places = cast("dict[tuple[str, int], Ints]", runs.groupby(["sampler", "seed"]).indices)
    return {
        (str(sampler), int(seed)): Course(at[of], score[of], spent[:, of])
        for (sampler, seed), of in sorted(places.items())
    }


class World(NamedTuple):
    """What MD's run sets in a world."""

    target: float  # score
    budgets: list[float]  # MD's cost in each of MEASURES
    gains: list[float]  # MD's gain over its initial score, averaged over each budget

    @classmethod
    def of(cls, of_md: Course) -> "World":
        """Return the target and the units of a world; MD's final score is the last quarter's."""
        first = of_md.score[of_md.at == 0][0]
        last_quarter = of_md.score[of_md.at > 0.75 * of_md.at.max()]
        budgets = of_md.spent.max(axis=1).tolist()
        return cls(
            float(first + TARGET * (np.nanmean(last_quarter) - first)),
            budgets,
            list(map(partial(mean_gain, of_md.score), of_md.spent, budgets)),
        )


def cost(run: Course, target: float) -> tuple[bool, Array]:
    """Return whether a run meets a target, and its cost in each of MEASURES."""
    if len(run.score) >= WINDOW:
        smooth = sliding_window_view(run.score, WINDOW).mean(axis=1)
        if len(above := np.flatnonzero(smooth >= target)):
            return True, run.spent[:, above[0] + WINDOW - 1]
    return False, run.spent.max(axis=1) * PENALTY


def relative_areas(run: Course, world: World) -> list[float]:
    """Return a run's mean gain over MD's budget, divided by MD's, for each of MEASURES.

    NaN if MD gains nothing.
    """
    gains = map(partial(mean_gain, run.score), run.spent, world.budgets)
    return [
        gain / unit if unit > 0 else np.nan for gain, unit in zip(gains, world.gains, strict=True)
    ]


def mean_gain(score: Array, spent: Array, budget: float) -> float:
    """Average the gain over the initial score; a score holds until the next measurement."""
    above = score - score[0]
    gain = np.where(np.isnan(above), 0.0, above)
    ends = np.append(np.minimum(spent, budget), budget)
    return float((gain * (ends[1:] - ends[:-1])).sum() / budget)


def speed_ups_by_dataset(summaries: Summaries, folder: Path) -> pd.DataFrame:
    """Return the speed-ups of all samplers on all datasets in all measures.

    Returns columns ``measure``, ``set``, ``family``, ``unequal``, ``skewed``, ``away``, ``worlds``,
    ``scheme``, ``cost`` (geometric mean), ``speed_up``, ``speed_up_low``, ``speed_up_high``,
    ``area``, ``area_low``, ``area_high``, ``reached`` and ``runs``.
    """
    parts = [speed_ups_on(name, name, summaries, folder) for name in compared_datasets(summaries)]
    return pd.concat(parts, ignore_index=True)


def speed_ups_on(
    name: str,
    experiment: str,
    summaries: Summaries,
    folder: Path,
    only: frozenset[int] = frozenset(),
) -> pd.DataFrame:
    """Return the speed-ups on the dataset `name` from the runs of an experiment on it.

    `only`: the worlds to use; empty: all.
    """
    table = _speed_ups(summaries[experiment], summaries[TUNING + name], only).copy()
    facts: dict[str, Any] = {"set": name, **dataset_facts(folder, name), "away": "away" in name}
    for place, (column, value) in enumerate(facts.items(), start=1):
        table.insert(place, column, value)
    return table


@cache
def _speed_ups(evaluation: Summary, tuning: Summary, only: frozenset[int]) -> pd.DataFrame:
    """Return the speed-ups in the runs of an experiment, without the facts about its dataset."""
    costs = costs_on(evaluation, tuning)
    if only:
        costs = costs[costs["seed"].isin(only)]
    worlds = costs["seed"].nunique() if evaluation.settings.get("worlds") else 1
    by_world = costs.pivot(index="seed", columns="sampler")
    counts = costs.groupby("sampler")["met"].agg(reached="sum", runs="size")
    rows = []
    for measure in MEASURES:
        spent, areas = by_world[measure], by_world[f"area_{measure}"].to_numpy()
        logs = np.log(spent.rdiv(spent[REFERENCE], axis=0).to_numpy())
        of_costs = np.log(spent.to_numpy())
        for column, (sampler, (reached, runs)) in enumerate(counts.iterrows()):
            speed_up = mean(_known(logs[:, column]))
            known = _known(areas[:, column])
            area = mean(known) if len(known) else NO_ESTIMATE
            rows.append(
                {
                    "measure": measure,
                    "worlds": worlds,
                    "scheme": str(sampler),
                    "cost": float(np.exp(_known(of_costs[:, column]).mean())),
                    "speed_up": float(np.exp(speed_up.value)),
                    "speed_up_low": float(np.exp(speed_up.low)),
                    "speed_up_high": float(np.exp(speed_up.high)),
                    **area.columns("area", "area_"),
                    "reached": int(reached),
                    "runs": int(runs),
                }
            )
    return pd.DataFrame(rows)


def _known(values: Array) -> Array:
    """Return the values of the worlds in which a sampler was run."""
    return values[~np.isnan(values)]


def dataset_facts(folder: Path, name: str) -> dict[str, object]:
    """Return ``family``, ``unequal`` and ``skewed`` of a dataset, from ``datasets.csv``."""
    table = _facts(folder / "datasets.csv")
    if name not in table.index:  # a user's own samples
        return {"family": name, "unequal": False, "skewed": False}
    row = table.loc[name]
    return {
        "family": str(row["family"]),
        "unequal": bool(row["largest"] >= UNEQUAL_FROM),
        "skewed": bool(row["skew"] >= SKEWED_FROM),
    }


@cache
def _facts(file: Path) -> pd.DataFrame:
    return pd.read_csv(file).set_index("set")


def gains_from_tuning(summaries: Summaries, datasets: Sequence[str]) -> pd.DataFrame:
    """Return MD's cost with each untuned learning rate over that of its best trial, by set."""
    rows = []
    for name in datasets:
        summary = summaries[name]
        runs = trajectories(summary)
        of_md = runs[runs["sampler"] == REFERENCE]
        best = best_trials(summary, summaries[TUNING + name])
        reference = best[best["sampler"] == REFERENCE]
        tuned = costs_in_worlds(reference, reference).set_index("seed")["rounds"]
        always = summary.settings.get("always", {})
        for case in UNTUNED:
            untuned = of_md[of_md["case"] == case]
            if REFERENCE in always.get(case, ()) and not untuned.empty:
                cost = costs_in_worlds(untuned, reference).set_index("seed")["rounds"]
                gain = float(np.exp(np.log(cost / tuned).mean()))
                rows.append({"set": name, "case": case, "gain": gain})
    return pd.DataFrame(rows, columns=["set", "case", "gain"])


# Names and tables that several figures of the cross matrix share.


# Names of the measures in tables, and what they are divided by.
UNITS = {"rounds": ("rounds", 1.0), "bits": ("Mbit sent by clients", 1e6), "seconds": ("s", 1.0)}


def label(sampler: str) -> str:
    """Return the short name of a sampler."""
    return display_name(sampler).short


def by_dataset(cells: pd.DataFrame) -> pd.DataFrame:
    """Arrange cells as a table of samplers, ``scheme``, and datasets, ``title``."""
    wide = cells.pivot(index="scheme", columns="title", values="cell").fillna("–")
    wide = wide.sort_index(key=lambda names: names.str.casefold())[cells["title"].unique()]
    return wide.rename_axis(columns=None).reset_index()
