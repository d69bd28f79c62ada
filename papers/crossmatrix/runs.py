"""Tuned learning rates, targets, and costs to the targets, from the cross matrix's runs.

An experiment is a dataset; its cases are the learning rates of the grid, called steps.  The
experiment ``tuning_<set>`` has the same runs as ``<set>`` on a holdout with other seeds.  Tuned
steps and targets come only from the tuning runs, never from the runs that are compared.

Functions with ``@cache`` compute a table once per summary, and all artefacts share it: never modify
the DataFrames that they return.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd

from fedsampling.base.errors import InputError
from fedsampling.evidence import across_datasets
from fedsampling.evidence.histories import COSTS
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import MEASURES, REFERENCE, TUNING
from fedsampling.report.drawing.artefacts import Summaries

ByDataset = Mapping[str, pd.DataFrame]  # a number of each run: rows are samplers, columns seeds

WINDOW = 3  # consecutive evaluations whose mean must reach the target
KEYS = ["case", "sampler", "seed"]


def compared_datasets(summaries: Summaries) -> tuple[str, ...]:
    """Name the datasets that are both tuned and compared, in the order of the paper's file."""
    return tuple(name for name in summaries if TUNING + name in summaries)


@cache
def trajectories(summary: Summary) -> pd.DataFrame:
    """Return each run's score and cumulative costs, by evaluation.

    Returns
    -------
    DataFrame
        Columns ``case``, ``step``, ``sampler``, ``seed``, ``at``, ``score``, ``smooth`` and
        MEASURES.  The score is the accuracy, or minus the logarithm of the test loss if there is no
        accuracy; NaN after a run has diverged.  ``smooth`` is its mean over the last WINDOW
        evaluations.
    """
    rows = summary.select(since=0)
    wide = rows.pivot(index=[*KEYS, "at"], columns="metric", values="value").sort_index()
    metric = "accuracy" if "accuracy" in wide else "test_loss"
    with np.errstate(invalid="ignore", divide="ignore"):
        score = wide[metric] if metric == "accuracy" else -np.log(wide[metric])
    runs = [wide.index.get_level_values(key) for key in KEYS]
    charges = wide[[name for parts in COSTS.values() for name in parts if name in wide]]
    spent = charges.fillna(0.0).groupby(runs).cumsum()
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
    """Score each step of each sampler on the holdout.

    Returns
    -------
    DataFrame
        Columns ``sampler``, ``step``, ``case``, ``score``: the mean over seeds of the mean score
        in the second half of the rounds, −∞ if a run diverged; and ``chosen``, whether the step is
        the sampler's best (the smallest in case of a tie; published runs are rounded, so scores
        that are equal to six decimals count as tied).
    """
    runs = trajectories(tuning)
    late = runs[runs["at"] >= runs["at"].max() / 2].groupby(["sampler", "step", "case"])
    means = late["score"].agg(lambda values: values.mean(skipna=False))
    table: pd.DataFrame = means.fillna(-np.inf).rename("score").reset_index()
    best = table["score"].round(6).groupby(table["sampler"]).transform("idxmax")
    table["chosen"] = table.index == best
    return table


@cache
def target_score(tuning: Summary) -> float:
    """Return the target: MD's score on the holdout after half of the rounds.

    It is the mean over seeds of ``smooth`` at MD's tuned step.

    Raises
    ------
    InputError
        If MD was not tuned.
    """
    grid = grid_scores(tuning)
    best = grid[grid["chosen"] & (grid["sampler"] == REFERENCE)]
    if best.empty:
        raise InputError(
            f"crossmatrix: {REFERENCE} sets the targets; keep it among the samplers of tuning"
        )
    runs = trajectories(tuning)
    is_reference = (runs["sampler"] == REFERENCE) & (runs["step"] == best["step"].iloc[0])
    runs = runs[is_reference & runs["smooth"].notna()]
    first_half = runs[runs["at"] <= max(runs["at"].max() / 2, runs["at"].min())]
    return float(first_half[first_half["at"] == first_half["at"].max()]["smooth"].mean())


def costs_by_dataset(summaries: Summaries) -> dict[str, pd.DataFrame]:
    """Return :func:`costs_to_target` of each of the :func:`compared_datasets`."""
    return {
        name: costs_to_target(summaries[name], summaries[TUNING + name])
        for name in compared_datasets(summaries)
    }


@cache
def costs_to_target(evaluation: Summary, tuning: Summary) -> pd.DataFrame:
    """Return the cost of each of the :func:`tuned_trajectories` until it reached the target.

    Returns
    -------
    DataFrame
        Columns ``sampler``, ``seed``, ``step``; MEASURES, infinite if the target was not reached;
        and ``all_<measure>``, the cost of the whole run.
    """
    runs = tuned_trajectories(evaluation, tuning)
    keys, measures = ["sampler", "seed", "step"], list(MEASURES)
    total = runs.groupby(keys)[measures].last()
    above = runs[runs["smooth"] >= target_score(tuning)]
    costs = above.groupby(keys)[measures].first().reindex(total.index).fillna(np.inf)
    return costs.join(total.add_prefix("all_")).reset_index()


@cache
def tuned_trajectories(evaluation: Summary, tuning: Summary) -> pd.DataFrame:
    """Return the :func:`trajectories` of the runs at their samplers' tuned steps.

    A sampler that was not tuned gets MD's step; a sampler with a single step keeps it.
    """
    grid = grid_scores(tuning)
    best = grid[grid["chosen"]].set_index("sampler")["step"]
    runs = trajectories(evaluation)
    tuned_step = runs["sampler"].map(best).fillna(best[REFERENCE])
    has_single_step = runs.groupby("sampler")["step"].transform("nunique") == 1
    return runs[has_single_step | (runs["step"] == tuned_step)]


def gains(runs: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return each run's gain over the initial model, averaged over a budget, relative to MD's.

    The budget is the mean total cost of MD's runs.  A score holds until the next evaluation; if a
    run costs less than the budget, its last score holds until the end of the budget.  A run that
    has diverged gains nothing from then on.

    Parameters
    ----------
    runs : DataFrame
        The trajectories to compare, from :func:`tuned_trajectories`.
    measure : str
        Unit of the budget, one of MEASURES.

    Returns
    -------
    DataFrame
        Columns ``sampler``, ``seed``, ``gain`` (MD's mean is 1; NaN where MD gains nothing) and
        ``held``, the share of the budget in which the last score was held.
    """
    grouped = runs.groupby(["sampler", "seed"])
    total = grouped[measure].max()
    budget = total[REFERENCE].mean()
    score, spent, positions = runs["score"].to_numpy(), runs[measure].to_numpy(), grouped.indices
    mean_gains = [
        _mean_gain(score[positions[run]], spent[positions[run]], budget) for run in total.index
    ]
    gain = pd.Series(mean_gains, total.index)
    gain_of_md = gain.loc[[REFERENCE]].mean()
    relative = gain / (gain_of_md if gain_of_md > 0 else np.nan)
    held = (1 - total / budget).clip(lower=0.0)
    table = pd.DataFrame({"gain": relative, "held": held})
    return table.rename_axis(["sampler", "seed"]).reset_index()


def _mean_gain(score: np.ndarray, spent: np.ndarray, budget: float) -> float:
    """Average a run's gain over its initial model's score over a budget."""
    above = score - score[0]
    gain = np.where(np.isnan(above), 0.0, above)
    ends = np.append(np.minimum(spent, budget), budget)
    return float((gain * np.diff(ends)).sum() / budget)


def speed_ups(costs: Mapping[str, pd.DataFrame], measure: str) -> dict[str, pd.DataFrame]:
    """Return each run's speed-up: MD's mean cost over its cost, or zero if it missed the target.

    Parameters
    ----------
    costs : mapping
        By dataset, from :func:`costs_to_target`.
    measure : str
        One of MEASURES.

    Returns
    -------
    dict
        By dataset: rows are samplers, columns seeds.  A run of MD that missed the target counts
        with the cost of the whole run, so all speed-ups are underestimated.
    """
    tables = {}
    for name, table in costs.items():
        reference = table[table["sampler"] == REFERENCE]
        unit = np.minimum(reference[measure], reference[f"all_{measure}"]).mean()
        tables[name] = unit / table.pivot(index="sampler", columns="seed", values=measure)
    return tables


def by_sampler(values: ByDataset) -> tuple[list[str], list[np.ndarray]]:
    """Return all samplers, and each dataset's values, (samplers, seeds), NaN where not run."""
    samplers = sorted({str(name) for table in values.values() for name in table.index})
    return samplers, [table.reindex(samplers).to_numpy(np.float64) for table in values.values()]


def datasets_run(values: list[np.ndarray]) -> np.ndarray:
    """Count the datasets on which each sampler was run, from :func:`by_sampler`."""
    counts: np.ndarray = np.sum([~np.isnan(of_dataset[:, 0]) for of_dataset in values], axis=0)
    return counts


def aggregated(values: ByDataset, column: str, rng: np.random.Generator) -> pd.DataFrame:
    """Aggregate values over datasets; see :func:`fedsampling.evidence.across_datasets.aggregate`.

    Returns
    -------
    DataFrame
        A row for each sampler: ``scheme``, `column`, ``low``, ``high``; ``rank``, ``rank_low``,
        ``rank_high``; ``sets``, the number of datasets; ``worst`` on ``worst_set``; ``win_rate``.
    """
    samplers, arrays = by_sampler(values)
    aggregate = across_datasets.aggregate(arrays, rng)
    return pd.DataFrame(
        {
            "scheme": samplers,
            column: aggregate.value,
            "low": aggregate.low,
            "high": aggregate.high,
            "rank": aggregate.rank,
            "rank_low": aggregate.rank_low,
            "rank_high": aggregate.rank_high,
            "sets": datasets_run(arrays),
            "worst": aggregate.worst,
            "worst_set": [list(values)[place] for place in aggregate.worst_set],
            "win_rate": aggregate.win_rate,
        }
    )
