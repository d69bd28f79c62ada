"""The values of a history that comparisons use: the last one, by round, and against costs."""

from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsampling.base.errors import InputError, nearest
from fedsampling.evidence.fairness import MEASURES, bounds_of, by_client, clipped, fairness
from fedsampling.evidence.histories import diverged_runs, rows_of
from fedsampling.evidence.statistics import mean

if TYPE_CHECKING:
    import pandas as pd


def last_values(history: "pd.DataFrame", metric: str) -> "pd.Series":
    """Return a metric after the last round, by seed; or a summary of the clients."""
    if metric in MEASURES and metric not in set(history["metric"]):
        measures = fairness(by_client(history))
        if metric in measures:
            return measures[metric].droplevel([*range(measures.index.nlevels - 1)])
        if (training := _on_training(metric)) in measures:
            raise InputError(
                f"metric: clients have no test samples for {metric!r}; make some (test_share=0.2, "
                f"or tests of each client), or compare {training!r}"
            )
    rows = rows_of(history, metric)
    return rows.sort_values("at", kind="stable").groupby("seed")["value"].last(skipna=False)


def scores(history: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """Return a metric as ``score`` in each measured round ``at``; a summary of the clients once."""
    if metric in MEASURES and metric not in set(history["metric"]):
        return last_values(history, metric).rename("score").to_frame().assign(at=0)
    rows = rows_of(history, metric).rename(columns={"value": "score"})
    if diverged_runs(history):
        rows["score"] = np.nan
    return rows[["at", "score"]]


def score_trials(runs: "pd.DataFrame", keys: list[str]) -> "pd.DataFrame":
    """Score each trial of each sampler, larger being better, as all tuning does.

    The score is the mean over seeds and the second half of the trial's rounds, −∞ if a run
    diverged. The best trial is ``chosen``, the first in case of a tie; published runs are rounded,
    so scores that are equal to six decimals are a tie.
    """
    rounds = runs.groupby(keys)["at"].transform("max")
    late = runs[runs["at"] >= rounds / 2].groupby(keys)
    means = late["score"].agg(lambda values: values.mean(skipna=False))
    table: pd.DataFrame = means.fillna(-np.inf).rename("score").reset_index()
    best = table["score"].round(6).groupby(table["sampler"]).transform("idxmax")
    table["chosen"] = table.index == best
    return table


def is_at_edge(value: Any, grid: Iterable[Any]) -> bool:
    """Whether a value is the smallest or largest number of a grid with several."""
    numbers = {value for value in grid if isinstance(value, Real)}
    return len(numbers) > 1 and value in (min(numbers), max(numbers))


def curve(history: "pd.DataFrame", x: str, y: str) -> "pd.DataFrame":
    """Return a metric against rounds or cumulative costs, a row per measurement.

    Bits and seconds are summed up to each; the mean over seeds has its 95 % interval, NaN for one.
    """
    import pandas as pd

    if x not in AXES:
        raise InputError(f"x: {x!r} is unknown; {nearest(x, AXES)}")
    values = rows_of(history, y).pivot(index="at", columns="seed", values="value")
    bounds = bounds_of(y, values.to_numpy(np.float64))
    table = pd.DataFrame(
        [clipped(mean(row), bounds).columns("mean") for row in values.to_numpy(np.float64)]
    )
    at = values.index
    table.insert(0, "x", at if x == "rounds" else _cumulative_cost(history, x, at))
    return table


# Sums of metrics that a round charges.
COSTS = {
    "bits": ("model_bits", "norm_bits", "exchange_bits", "observation_bits"),
    "seconds": ("seconds", "asking_seconds"),
}
AXES = ("rounds", *COSTS)


def _cumulative_cost(history: "pd.DataFrame", cost: str, at: "pd.Index") -> np.ndarray:
    """Sum a cost up to each round, mean over seeds."""
    rows = history[history["metric"].isin(COSTS[cost])]
    if rows.empty:
        fix = "train with delays, such as 'synthetic'" if cost == "seconds" else "train again"
        raise InputError(f"x: the history has no {cost}; {fix}")
    per_round = rows.groupby(["at", "seed"])["value"].sum().groupby("at").mean()
    spent = per_round.sort_index().cumsum()
    return spent.reindex(spent.index.union(at)).ffill().fillna(0.0).loc[at].to_numpy()


def _on_training(metric: str) -> str:
    """Return the name that a measure of the clients has if it is on training samples."""
    for score in ("accuracy", "loss"):
        metric = metric.replace(score, f"training_{score}")
    return metric
