"""Speed-ups of the benchmark's samplers over MD on each dataset, and MD's gain from tuning.

The speed-up in a world is MD's cost divided by the sampler's (:mod:`.costs_to_target`).  On a
dataset, it is the geometric mean over worlds, and the relative area the mean, with Student's
interval.  With 100 clients, all seeds share one world, as the column ``worlds`` says.  Over
datasets, :mod:`fedsampling.report.which_sampler.advice` aggregates, with families as the unit.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array
from fedsampling.evidence.ranking import NO_ESTIMATE
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Summaries

from .costs_to_target import best_trials, costs_in_worlds, costs_on, trajectories

UNTUNED = {  # cases of MD, and their learning rates
    "small": "a fifth of the pilot's rate",
    "default": "the pilot's rate",
    "large": "five times the pilot's rate",
}
UNEQUAL_FROM = 3.0  # largest importance of a client, in units of 1/n
SKEWED_FROM = 2.0  # largest share of a label on a client, in units of its share in all data


def compared_datasets(summaries: Summaries, target_of: str = REFERENCE) -> list[str]:
    """Name the datasets that are tuned and run, with MD, in the order of the paper's file.

    `target_of`: a sampler that must have been run, too.
    """
    return [
        name
        for name, summary in summaries.items()
        if TUNING + name in summaries and {REFERENCE, target_of} <= {*summary.settings["samplers"]}
    ]


def shared_worlds(one: Summary, other: Summary) -> frozenset[int]:
    """Return the worlds that two experiments have in common."""
    seeds = [set(summary.select(REFERENCE, since=0)["seed"]) for summary in (one, other)]
    return frozenset(int(seed) for seed in seeds[0] & seeds[1])


def speed_ups_by_dataset(
    summaries: Summaries, folder: Path, target_of: str = REFERENCE
) -> pd.DataFrame:
    """Return the speed-ups of all samplers on all datasets in all measures.

    `target_of`: the sampler whose runs set the targets; datasets without it are left out.

    Returns columns ``measure``, ``set``, ``family``, ``unequal``, ``skewed``, ``away``, ``worlds``,
    ``scheme``, ``cost`` (geometric mean), ``speed_up``, ``speed_up_low``, ``speed_up_high``,
    ``area``, ``area_low``, ``area_high``, ``reached`` and ``runs``.
    """
    parts = [
        speed_ups_on(name, name, summaries, folder, target_of=target_of)
        for name in compared_datasets(summaries, target_of)
    ]
    return pd.concat(parts, ignore_index=True)


def speed_ups_on(
    name: str,
    experiment: str,
    summaries: Summaries,
    folder: Path,
    only: frozenset[int] = frozenset(),
    target_of: str = REFERENCE,
) -> pd.DataFrame:
    """Return the speed-ups on the dataset `name` from the runs of an experiment on it.

    `only`: the worlds to use; empty: all. `target_of`: the sampler whose runs set the targets.
    """
    tuning = summaries.get(TUNING + name)
    table = _speed_ups(summaries[experiment], tuning, only, target_of).copy()
    described = dataset_facts(folder, name, summaries[experiment])
    facts: dict[str, Any] = {"set": name, **described, "away": "away" in name}
    for place, (column, value) in enumerate(facts.items(), start=1):
        table.insert(place, column, value)
    return table


@cache
def _speed_ups(
    evaluation: Summary, tuning: Summary | None, only: frozenset[int], target_of: str
) -> pd.DataFrame:
    """Return the speed-ups in the runs of an experiment, without the facts about its dataset."""
    costs = costs_on(evaluation, tuning, target_of)
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


def has_own_samples(summary: Summary) -> bool:
    """Whether a user's file replaces an experiment's dataset."""
    dataset = summary.settings["settings"].get("dataset", {})
    return bool(dataset.get("name") == "files")


def dataset_facts(folder: Path, name: str, summary: Summary) -> dict[str, object]:
    """Return ``family``, ``unequal`` and ``skewed`` of a dataset, from ``datasets.csv``."""
    table = _facts(folder / "datasets.csv")
    if has_own_samples(summary):
        return {"family": summary.settings["title"], "unequal": False, "skewed": False}
    if name not in table.index:  # a user's own experiment
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
    """Return MD's cost with each untuned learning rate over that of its best trial, by set.

    A run that misses the target costs twice its rounds; ``missed`` counts these of the ``runs``.
    """
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
                costs = costs_in_worlds(untuned, reference).set_index("seed")
                gain = float(np.exp(np.log(costs["rounds"] / tuned).mean()))
                missed = int((~costs["met"]).sum())
                rows.append((name, case, gain, missed, len(costs)))
    return pd.DataFrame(rows, columns=["set", "case", "gain", "missed", "runs"])
