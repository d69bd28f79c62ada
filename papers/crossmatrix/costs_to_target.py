"""What the benchmark's runs cost until they reach a target, from their scores in each round.

An experiment is a dataset; a seed is a world, with its own clients, delays, availability and
starting model.  In each world, MD's run sets a target: :data:`TARGET` of the way from its first to
its final score.  A run's cost is what it has spent when its smoothed score meets the target; a miss
costs :data:`PENALTY` times the whole run (PAR2), so no cost is missing.  The relative area is the
gain over the initial score, averaged over MD's budget, divided by MD's; it needs no target.

The tuned settings come from the trials on the holdout of world 0, or from ``chosen.csv``.
"""

from functools import cache, partial
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.text import listed
from fedsampling.evidence.scores import COSTS, score_trials
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE

TARGET = 0.95  # part of the way from MD's first to its final score
PENALTY = 2.0  # cost of a miss, in units of the whole run
WINDOW = 3  # consecutive measurements whose mean must meet the target
KEYS = ["case", "sampler", "seed"]


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


def best_trials(evaluation: Summary, tuning: Summary | None) -> pd.DataFrame:
    """Return the :func:`trajectories` of the runs at each sampler's best trial.

    A sampler that was run with a single case keeps it: it is the case in ``chosen.csv``.  Without
    `tuning`, all samplers must have a single case.

    Raises
    ------
    InputError
        If MD was not run at its best trial, as after a change of the trials: at paper scale, the
        experiment runs the case in ``chosen.csv`` and those that need no tuning.
    """
    runs = trajectories(evaluation)
    has_single_case = runs.groupby("sampler")["case"].transform("nunique") == 1
    if tuning is None:
        return runs[has_single_case]
    grid = grid_scores(tuning)
    best = grid[grid["chosen"]].set_index("sampler")["case"]
    is_best = has_single_case | (runs["case"] == runs["sampler"].map(best))
    of_reference = runs["sampler"] == REFERENCE
    if of_reference.any() and not (of_reference & is_best).any():
        if REFERENCE not in best:
            raise InputError(f"{evaluation.settings['title']}: tuning has no runs of {REFERENCE}")
        cases = listed(runs.loc[of_reference, "case"].unique().tolist())
        raise InputError(
            f"{evaluation.settings['title']}: tuning chose the case {best[REFERENCE]} for "
            f"{REFERENCE}, which was run only with {cases}; add chosen: "
            f"{{{REFERENCE}: {best[REFERENCE]}}} to its overrides"
        )
    return runs[is_best]


@cache
def costs_on(
    evaluation: Summary, tuning: Summary | None, target_of: str = REFERENCE
) -> pd.DataFrame:
    """Return the costs and relative areas of each sampler's best trial, world by world.

    `target_of`: the sampler whose runs set the targets and the budgets of the areas.
    """
    runs = best_trials(evaluation, tuning)
    return costs_in_worlds(runs, runs[runs["sampler"] == target_of])


def costs_in_worlds(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Return the table of :func:`costs_on`; the runs of `reference` set the targets."""
    worlds = {seed: World.set_by(run) for (_, seed), run in _courses(reference).items()}
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
    """What the reference's run, usually MD's, sets in a world."""

    target: float  # score
    budgets: list[float]  # the reference's cost in each of MEASURES
    gains: list[float]  # its gain over its initial score, averaged over each budget

    @classmethod
    def set_by(cls, reference: Course) -> "World":
        """Return a world's target and units; the final score is the mean over the last quarter."""
        first = reference.score[reference.at == 0][0]
        last_quarter = reference.score[reference.at > 0.75 * reference.at.max()]
        budgets = reference.spent.max(axis=1).tolist()
        return cls(
            float(first + TARGET * (np.nanmean(last_quarter) - first)),
            budgets,
            list(map(partial(mean_gain, reference.score), reference.spent, budgets)),
        )


def cost(run: Course, target: float) -> tuple[bool, Array]:
    """Return whether a run meets a target, and its cost in each of MEASURES."""
    if len(run.score) >= WINDOW:
        smooth = sliding_window_view(run.score, WINDOW).mean(axis=1)
        if len(above := np.flatnonzero(smooth >= target)):
            return True, run.spent[:, above[0] + WINDOW - 1]
    return False, run.spent.max(axis=1) * PENALTY


def relative_areas(run: Course, world: World) -> list[float]:
    """Return a run's mean gain over the reference's budget, divided by the reference's.

    One number for each of MEASURES; NaN if the reference gains nothing.
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
