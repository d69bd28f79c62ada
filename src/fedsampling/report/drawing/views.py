"""Views of an experiment for the run explorer: thinned curves, one script file for each metric.

A page opened from disk may not read data files, but it may load scripts.  So each file calls a
function of the page with the curves of one metric.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.files import sha256, write_record, write_text
from fedsampling.evidence.histories import COSTS
from fedsampling.evidence.provenance import badges
from fedsampling.evidence.statistics import half_width
from fedsampling.evidence.summaries import BOUNDS, FEWEST_SEEDS, Summary
from fedsampling.experiments.papers import TUNING
from fedsampling.report.names import display_name

RECORD = "views.json"
# Metrics with a curve, and the titles of their axes.
METRICS = {
    "accuracy": "test accuracy",
    "accuracy_worst": "accuracy of the worst tenth of clients",
    "loss": "training loss",
    "test_loss": "test loss",
    "train_loss": "loss on the batches of a round",
    "msd": "mean-square deviation",
    "error": "classification error",
    "balanced_error": "balanced classification error",
    "agent_distance": "distance of the agents' probabilities from the optimal ones",
    "data_distance": "distance of the samples' probabilities from the optimal ones",
    "jain": "evenness of participation (Jain's index)",
    "met": "share of clients that have taken part",
    "alpha": "improvement factor α of optimal sampling",
}
FEWEST_POINTS = 3  # of a curve; metrics with fewer have no view
POINTS = (48, 24, 12)  # of a curve: the first number that keeps the file small
MAX_SINGLE_SEEDS = 10  # with more seeds, single seeds are not shown
MAX_CHARACTERS = 200_000  # of a file
DIGITS, ROUND_DIGITS = 4, 7
_Key = tuple[str, str]  # case and sampler
_Costs = tuple[Ints, Array]  # rounds, and the cost up to each of them


def save(summary: Summary, experiment: str, folder: Path, facts: Mapping[str, str]) -> list[Path]:
    """Write an experiment's views, ``<metric>.js``, and their description; return all paths.

    Tuning runs of the cross matrix have no views: its figures show all their results.
    """
    paper = folder.parent.name
    rows = summary.rows[summary.rows["at"] >= 0]
    with_curves = set(rows["case"].unique())
    counts = rows.groupby("metric", observed=True)["at"].nunique()
    tuning = experiment.startswith(TUNING)
    metrics = [name for name in METRICS if counts.get(name, 0) >= FEWEST_POINTS and not tuning]
    costs = (
        {name: _cumulative_costs(rows, parts) for name, parts in COSTS.items()} if metrics else {}
    )
    paths = []
    for metric in metrics:
        path = folder / f"{metric}.js"
        text = _limited_json(_curves(rows, metric), costs, metric)
        write_text(path, f'explored("{paper}/{experiment}/{metric}", {text});\n')
        paths.append(path)
    record = {
        "title": str(summary.settings.get("title") or experiment),
        "metrics": {name: METRICS[name] for name in metrics},
        "samplers": {key: display_name(key).short for key in summary.settings["samplers"]},
        "cases": [case for case in summary.settings["cases"] if case in with_curves],
        "seeds": int(summary.rows["seed"].nunique()),
        "badges": badges({experiment: summary}, facts),
        "digests": {path.name: sha256(path) for path in paths},
    }
    write_record(folder / RECORD, record)
    return [*paths, folder / RECORD]


def _limited_json(
    curves: Mapping[_Key, pd.DataFrame], costs: Mapping[str, Mapping[_Key, _Costs]], metric: str
) -> str:
    """Return the curves as JSON, with as many points as :data:`MAX_CHARACTERS` allows."""
    bounds = BOUNDS.get(metric, (-np.inf, np.inf))
    text = "[]"
    for points in POINTS:
        objects = []
        for key, curve in curves.items():
            curve = curve.iloc[_thinned(len(curve), points)]
            at = curve.index.to_numpy()
            columns = {"case": f'"{key[0]}"', "sampler": f'"{key[1]}"'}
            columns |= {"at": _json_list(at, ROUND_DIGITS)}
            columns |= _value_columns(curve, bounds)
            columns |= {
                name: _json_list(_cost_up_to(spent[key], at))
                for name, spent in costs.items()
                if key in spent
            }
            objects.append(",".join(f'"{name}":{value}' for name, value in columns.items()))
        text = f"[{{{'},{'.join(objects)}}}]"
        if len(text) <= MAX_CHARACTERS:
            break
    return text


def _value_columns(curve: pd.DataFrame, bounds: tuple[float, float]) -> dict[str, str]:
    """Return the columns of a curve: mean, interval and single seeds."""
    mean, low, high = _band(curve.to_numpy(), bounds)
    columns = {"mean": _json_list(mean)}
    if np.isfinite(low).any():
        columns |= {"low": _json_list(low), "high": _json_list(high)}
    if 1 < len(curve.columns) <= MAX_SINGLE_SEEDS:
        single = (f'"{seed}":{_json_list(values)}' for seed, values in curve.items())
        columns["seeds"] = f"{{{','.join(single)}}}"
    return columns


def _curves(rows: pd.DataFrame, metric: str) -> dict[_Key, pd.DataFrame]:
    """Return a metric of each case and sampler by round and seed, of seeds that have values."""
    table = rows[rows["metric"] == metric].pivot(
        index=["case", "sampler", "at"], columns="seed", values="value"
    )
    return {
        key: table.iloc[part].droplevel(["case", "sampler"]).dropna(axis=1, how="all")
        for key, part in _case_and_sampler_slices(table.index)
    }


def _cumulative_costs(rows: pd.DataFrame, parts: Sequence[str]) -> dict[_Key, _Costs]:
    """Return a cost summed up to each round, mean over seeds, for each case and sampler."""
    charged = rows[rows["metric"].isin(parts)]
    charges = charged.groupby(["case", "sampler", "at", "seed"])["value"].sum()
    means = charges.groupby(["case", "sampler", "at"]).mean()
    at, cost = means.index.get_level_values("at").to_numpy(), means.to_numpy()
    return {
        key: (at[part], np.cumsum(cost[part]))
        for key, part in _case_and_sampler_slices(means.index)
    }


def _case_and_sampler_slices(index: pd.Index) -> Iterator[tuple[_Key, slice]]:
    """Yield each case and sampler of a sorted index (case, sampler, at), with its places."""
    cases, samplers = (index.get_level_values(name) for name in ("case", "sampler"))
    changes = (cases[1:] != cases[:-1]) | (samplers[1:] != samplers[:-1])
    ends = [*(np.flatnonzero(changes) + 1), len(index)] if len(index) else []
    for begin, end in pairwise([0, *ends]):
        yield (str(cases[begin]), str(samplers[begin])), slice(begin, end)


def _cost_up_to(spent: _Costs, at: Ints) -> Array:
    """Return the cost up to each round in `at`; zero before the first charge."""
    rounds, cost = spent
    total: Array = np.concatenate([[0.0], cost])[np.searchsorted(rounds, at, side="right")]
    return total


def _thinned(count: int, points: int) -> Ints:
    """Choose points: half evenly spaced in rounds, half in their logarithm, with both ends."""
    if count <= points:
        return np.arange(count)
    even = np.linspace(0, count - 1, points // 2)
    early = np.geomspace(1, count, points // 2) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def _band(values: Array, bounds: tuple[float, float]) -> tuple[Array, Array, Array]:
    """Return mean and 95 % t-interval over seeds, as :attr:`Summary.curves` does."""
    mean = values.mean(axis=1)
    count = values.shape[1]
    if count < FEWEST_SEEDS:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    with np.errstate(invalid="ignore"):  # infinite losses of runs that diverge
        spread = values.std(axis=1, ddof=1)
    half = half_width(spread, count)
    return mean, np.clip(mean - half, *bounds), np.clip(mean + half, *bounds)


def _json_list(values: Any, digits: int = DIGITS) -> str:
    """Write numbers as a JSON list; infinity and NaN become null."""
    form = f".{digits}g"
    numbers = np.asarray(values, float).tolist()
    texts = (format(x, form) if math.isfinite(x) else "null" for x in numbers)
    return f"[{','.join(texts)}]"
