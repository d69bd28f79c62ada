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
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fedsampling.evidence.histories import COSTS, NO_ESTIMATE, score_trials
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import MEASURES, REFERENCE, TUNING
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

    Returns columns ``case``, ``step``, ``sampler``, ``seed``, ``at``, ``score``, ``smooth`` and
    MEASURES.  The score is the accuracy, or minus the logarithm of the test loss if there is no
    accuracy; NaN after a run has diverged.  ``smooth`` is its mean over the last WINDOW
    measurements.
    """
    rows = summary.select(since=0)
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
    window = table.groupby(KEYS, sort=False)["score"].rolling(WINDOW)
    table["smooth"] = window.mean().to_numpy()
    steps = {case: float(summary.setting("work.step", case)) for case in summary.settings["cases"]}
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
    rows = []
    worlds = {int(str(seed)): run for seed, run in reference.groupby("seed")}
    for (sampler, name), run in runs.groupby(["sampler", "seed"], sort=True):
        seed = int(str(name))
        if seed not in worlds:
            continue
        of_md = worlds[seed]
        above = run[run["smooth"] >= target_score(of_md)]
        met = not above.empty
        spent = above.iloc[0] if met else run[[*MEASURES]].max() * PENALTY
        rows.append(
            {"sampler": str(sampler), "seed": seed, "met": met}
            | {measure: float(spent[measure]) for measure in MEASURES}
            | {f"area_{measure}": relative_area(run, of_md, measure) for measure in MEASURES}
        )
    return pd.DataFrame(rows)


def target_score(of_md: pd.DataFrame) -> float:
    """Return the target of a world, from MD's run: its final score is that of the last quarter."""
    first = float(of_md.loc[of_md["at"] == 0, "score"].iloc[0])
    last_quarter = of_md["at"] > 0.75 * of_md["at"].max()
    return first + TARGET * (float(of_md.loc[last_quarter, "score"].mean()) - first)


def relative_area(run: pd.DataFrame, of_md: pd.DataFrame, measure: str) -> float:
    """Return a run's gain averaged over the cost of MD's run, divided by MD's; NaN without gain."""
    budget = float(of_md[measure].max())
    gain, unit = (_mean_gain(table, measure, budget) for table in (run, of_md))
    return gain / unit if unit > 0 else np.nan


def _mean_gain(run: pd.DataFrame, measure: str, budget: float) -> float:
    """Average the gain over the initial score; a score holds until the next measurement."""
    score, spent = run["score"].to_numpy(), run[measure].to_numpy()
    above = score - score[0]
    gain = np.where(np.isnan(above), 0.0, above)
    ends = np.append(np.minimum(spent, budget), budget)
    return float((gain * np.diff(ends)).sum() / budget)


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
    costs = costs_on(summaries[experiment], summaries[TUNING + name])
    if only:
        costs = costs[costs["seed"].isin(only)]
    worlds = costs["seed"].nunique() if summaries[experiment].settings.get("worlds") else 1
    facts = {"set": name, **dataset_facts(folder, name), "away": "away" in name, "worlds": worlds}
    rows = []
    for measure in MEASURES:
        by_world = costs.pivot(index="seed", columns="sampler", values=measure)
        logs = by_world.rdiv(by_world[REFERENCE], axis=0).apply(np.log)
        areas = costs.pivot(index="seed", columns="sampler", values=f"area_{measure}")
        for sampler, part in costs.groupby("sampler"):
            speed_up = mean(logs[sampler].dropna())
            known = areas[sampler].dropna()
            area = mean(known) if len(known) else NO_ESTIMATE
            rows.append(
                {
                    "measure": measure,
                    **facts,
                    "scheme": str(sampler),
                    "cost": float(np.exp(np.log(by_world[sampler]).mean())),
                    "speed_up": float(np.exp(speed_up.value)),
                    "speed_up_low": float(np.exp(speed_up.low)),
                    "speed_up_high": float(np.exp(speed_up.high)),
                    **area.columns("area", "area_"),
                    "reached": int(part["met"].sum()),
                    "runs": len(part),
                }
            )
    return pd.DataFrame(rows)


def dataset_facts(folder: Path, name: str) -> dict[str, object]:
    """Return ``family``, ``unequal`` and ``skewed`` of a dataset, from ``datasets.csv``."""
    table = pd.read_csv(folder / "datasets.csv").set_index("set")
    if name not in table.index:  # a user's own samples
        return {"family": name, "unequal": False, "skewed": False}
    row = table.loc[name]
    return {
        "family": str(row["family"]),
        "unequal": bool(row["largest"] >= UNEQUAL_FROM),
        "skewed": bool(row["skew"] >= SKEWED_FROM),
    }


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
