"""Costs of the benchmark's runs, from their scores in each round to speed-ups over MD.

1. A run has a cost to reach each of two targets, :data:`TARGETS`, which lie between the first and
   the final score of MD (:func:`costs_to_targets`).  A run that misses a target costs
   :data:`PENALTY` times as much as the whole run (PAR2), so no cost is missing.
2. The cost of a sampler on a dataset is the mean over seeds, then the geometric mean over the two
   targets (:func:`mean_costs`).
3. The speed-up over MD is the ratio of MD's cost to the sampler's; over datasets, the geometric
   mean (:func:`aggregated_speed_ups`).

:mod:`.decision_map` learns from the costs which sampler to use.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from fedsampling.base.streams import stream
from fedsampling.evidence.across_datasets import win_rates
from fedsampling.evidence.statistics import RESAMPLES
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import BENCH, MEASURES, REFERENCE, TUNING
from fedsampling.report.drawing.artefacts import Summaries

from .runs import grid_scores, trajectories

Array = NDArray[np.float64]
Settings = Literal["tuned", "default"]  # of the samplers: each one's best trial, or as published

TARGETS = {"half": 0.5, "late": 0.95}  # parts of the way from MD's first to its final score
PENALTY = 2.0  # cost of a miss, in units of the whole run
DEFAULT = "default"  # case of the settings as published
CONVERGED = {"accuracy": 0.01, "test_loss": 0.1}  # largest gain in the last quarter of the rounds
TAILS = (0.025, 0.975)  # quantiles of intervals

# Datasets that share a generator or images, and so are not independent evidence.
FAMILIES = {
    "bench_synthetic_00": "synthetic",
    "bench_synthetic_11": "synthetic",
    "bench_synthetic_half": "synthetic",
    "bench_synthetic_iid": "synthetic",
    "bench_digit": "mnist",
    "bench_writer": "mnist",
}


def bench_datasets(summaries: Summaries) -> list[str]:
    """Name the tuned and run datasets whose clients are always available."""
    return [name for name in _tuned_and_run(summaries) if "away" not in name]


def bench_datasets_away(summaries: Summaries) -> list[str]:
    """Name the tuned and run datasets whose clients come and go."""
    return [name for name in _tuned_and_run(summaries) if "away" in name]


def _tuned_and_run(summaries: Summaries) -> list[str]:
    return [name for name in summaries if name.startswith(BENCH) and TUNING + name in summaries]


def family_of(dataset: str) -> str:
    """Return the family of a dataset; most are a family of their own."""
    return FAMILIES.get(dataset, dataset)


def costs_by_dataset(summaries: Summaries, settings: Settings = "tuned") -> dict[str, pd.DataFrame]:
    """Return :func:`costs_to_targets` of each dataset whose clients are always available."""
    return {name: costs_on(summaries, name, settings) for name in bench_datasets(summaries)}


def costs_on(summaries: Summaries, dataset: str, settings: Settings = "tuned") -> pd.DataFrame:
    """Return :func:`costs_to_targets` of a dataset; MD's best trial sets the targets."""
    return _costs_on(summaries[dataset], summaries[TUNING + dataset], settings)


@cache  # all artefacts share the table: never modify it
def _costs_on(evaluation: Summary, tuning: Summary, settings: Settings) -> pd.DataFrame:
    reference = reference_scores(runs_with(evaluation, tuning, "tuned"))
    return costs_to_targets(runs_with(evaluation, tuning, settings), reference)


def reference_scores_on(summaries: Summaries, dataset: str) -> "ReferenceScores":
    """Return the scores of MD's best trial on a dataset."""
    return reference_scores(runs_with(summaries[dataset], summaries[TUNING + dataset], "tuned"))


def runs_with(evaluation: Summary, tuning: Summary, settings: Settings) -> pd.DataFrame:
    """Return the :func:`~.runs.trajectories` of the runs with some settings of the samplers."""
    runs = trajectories(evaluation)
    if settings == "default":
        return runs[runs["case"] == DEFAULT]
    grid = grid_scores(tuning)
    best = grid[grid["chosen"]].set_index("sampler")["case"]
    return runs[runs["case"] == runs["sampler"].map(best)]


@dataclass(frozen=True)
class ReferenceScores:
    """Mean scores of MD's runs on a dataset.

    Parameters
    ----------
    first : float
        Score of the initial model.
    final : float
        Mean score in the last quarter of the rounds.
    last_gain : float
        The final score minus the mean score in the third quarter.
    """

    first: float
    final: float
    last_gain: float

    def target(self, name: str) -> float:
        """Return the score of one of TARGETS."""
        return self.first + TARGETS[name] * (self.final - self.first)

    def have_converged(self, dataset: str) -> bool:
        """Whether the last gain is below :data:`CONVERGED`."""
        return self.last_gain < CONVERGED["test_loss" if "quadratic" in dataset else "accuracy"]


def reference_scores(runs: pd.DataFrame) -> ReferenceScores:
    """Return the scores of MD among some runs' trajectories."""
    reference = runs[runs["sampler"] == REFERENCE]
    quarter = np.ceil(4 * reference["at"] / reference["at"].max())
    means = reference.groupby(quarter)["score"].mean()
    return ReferenceScores(float(means[0]), float(means[4]), float(means[4] - means[3]))


def costs_to_targets(runs: pd.DataFrame, reference: ReferenceScores) -> pd.DataFrame:
    """Return what each run cost until it reached each target.

    Parameters
    ----------
    runs : DataFrame
        From :func:`~.runs.trajectories`.
    reference : ReferenceScores

    Returns
    -------
    DataFrame
        Columns ``sampler``, ``seed``, ``target``, ``met``, and MEASURES.
    """
    run, measures = ["sampler", "seed"], list(MEASURES)
    penalties = runs.groupby(run)[measures].max() * PENALTY
    parts = []
    for name in TARGETS:
        above = runs[runs["smooth"] >= reference.target(name)]
        costs = above.drop_duplicates(run).set_index(run)[measures].reindex(penalties.index)
        met = costs["rounds"].notna()
        parts.append(costs.where(met, penalties, axis=0).assign(target=name, met=met))
    table = pd.concat(parts).sort_index(kind="stable").reset_index()
    return table[[*run, "target", "met", *measures]]


def samplers_in(costs: Mapping[str, pd.DataFrame]) -> list[str]:
    """Name all samplers in some datasets' costs, sorted."""
    return sorted({str(name) for table in costs.values() for name in table["sampler"]})


def cost_array(costs: pd.DataFrame, measure: str, samplers: Sequence[str]) -> Array:
    """Return a dataset's costs, shape (targets, samplers, seeds); NaN for samplers not run."""
    costs = costs[costs["sampler"].isin(samplers)]
    axes = {"target": [*TARGETS], "sampler": [*samplers], "seed": sorted(costs["seed"].unique())}
    array = np.full([len(names) for names in axes.values()], np.nan)
    places = [pd.Index(names).get_indexer(costs[column]) for column, names in axes.items()]
    array[tuple(places)] = costs[measure]
    return array


def mean_costs(costs: Array) -> Array:
    """Average over seeds, then geometrically over targets: (targets, ..., seeds) → (...)."""
    mean: Array = np.exp(np.log(costs.mean(-1)).mean(0))
    return mean


def log_speed_ups(costs: Array, reference: int) -> Array:
    """Return logarithms of speed-ups: (targets, samplers, ..., seeds) → (samplers, ...).

    `reference` is the index of MD among the samplers.
    """
    log_cost = np.log(mean_costs(costs))
    logs: Array = log_cost[reference] - log_cost
    return logs


def log_relative_costs(costs: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Return logarithms of costs in units of MD's: rows are datasets, columns samplers.

    NaN for samplers that were not run on a dataset.
    """
    samplers = samplers_in(costs)
    rows = {}
    for dataset, table in costs.items():
        cost = pd.Series(mean_costs(cost_array(table, measure, samplers)), samplers)
        rows[dataset] = np.log(cost / cost[REFERENCE])
    return pd.DataFrame(rows).T


def aggregated_speed_ups(
    costs: Mapping[str, pd.DataFrame], default_costs: Mapping[str, pd.DataFrame], measure: str
) -> pd.DataFrame:
    """Aggregate speed-ups over datasets.

    Parameters
    ----------
    costs, default_costs : mapping of str to DataFrame
        From :func:`costs_by_dataset`: at the samplers' best trials, and at their defaults.
    measure : str
        One of MEASURES.

    Returns
    -------
    DataFrame
        A row for each sampler.  ``speed_up``, and its intervals ``low``, ``high`` over seeds on
        these datasets and ``set_low``, ``set_high`` over datasets; ``rank`` with ``rank_low``,
        ``rank_high`` over seeds (NaN unless run on all datasets); ``sets``, the number of datasets;
        ``worst`` on ``worst_set``; ``win_rate``; ``default_speed_up`` of the defaults over MD's
        best trial; and ``reached`` of all ``runs`` and targets.
    """
    samplers = samplers_in(costs)
    reference = samplers.index(REFERENCE)
    arrays = {name: cost_array(table, measure, samplers) for name, table in costs.items()}
    logs = np.stack([log_speed_ups(array, reference) for array in arrays.values()])
    default_logs = np.stack(
        [
            np.log(mean_costs(array)[reference])
            - np.log(mean_costs(cost_array(default_costs[name], measure, samplers)))
            for name, array in arrays.items()
        ]
    )
    rng = stream(0, f"crossmatrix bench {measure}")
    over_seeds = np.nanmean(
        [resampled_log_speed_ups(array, reference, rng) for array in arrays.values()], axis=0
    )
    low, high = np.exp(np.nanquantile(over_seeds, TAILS, axis=1))
    set_low, set_high = np.exp(interval_over_datasets(logs, rng))
    everywhere = ~np.isnan(logs).any(0)
    rank, rank_low, rank_high = ranks = np.full((3, len(samplers)), np.nan)
    ranks[0, everywhere] = rankdata(-np.nanmean(logs, axis=0)[everywhere])
    resampled_ranks = rankdata(-over_seeds[everywhere].T, axis=1)
    ranks[1:, everywhere] = np.quantile(resampled_ranks, TAILS, axis=0, method="nearest")
    reached = pd.concat(costs.values()).groupby("sampler")["met"].agg(["sum", "count"])
    return pd.DataFrame(
        {
            "scheme": samplers,
            "speed_up": np.exp(np.nanmean(logs, axis=0)),
            "low": low,
            "high": high,
            "set_low": set_low,
            "set_high": set_high,
            "rank": rank,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "sets": (~np.isnan(logs)).sum(0),
            "worst": np.exp(np.nanmin(logs, axis=0)),
            "worst_set": [[*costs][dataset] for dataset in np.nanargmin(logs, axis=0)],
            "win_rate": win_rates(logs),
            "default_speed_up": np.exp(np.nanmean(default_logs, axis=0)),
            "reached": reached.loc[samplers, "sum"].to_numpy(int),
            "runs": reached.loc[samplers, "count"].to_numpy(int),
        }
    )


def resampled_log_speed_ups(costs: Array, reference: int, rng: np.random.Generator) -> Array:
    """Resample seeds, the same for all samplers: (targets, samplers, seeds) → (…, RESAMPLES)."""
    seeds = rng.integers(costs.shape[-1], size=(RESAMPLES, costs.shape[-1]))
    return log_speed_ups(costs[:, :, seeds], reference)


def interval_over_datasets(values: Array, rng: np.random.Generator) -> Array:
    """Return the ends of a mean's interval, with resampled datasets: (datasets, ...) → (2, ...).

    NaN values, of samplers that were not run on a dataset, are left out of the mean.
    """
    datasets = rng.integers(len(values), size=(RESAMPLES, len(values)))
    with warnings.catch_warnings():  # a resample may contain no dataset of a sampler
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        means = np.nanmean(values[datasets], axis=1)
    ends: Array = np.nanquantile(means, TAILS, axis=0)
    return ends
