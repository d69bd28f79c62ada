"""Views of an experiment for the run explorer: thinned curves, one script file for each metric.

A page opened from disk may not read data files, but it may load scripts.  So each file calls a
function of the page with the curves of one metric.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.files import sha256, write_record, write_text
from fedsampling.evidence.provenance import badges
from fedsampling.evidence.scores import COSTS
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing import heat_maps
from fedsampling.report.names import run_label

RECORD = "views.json"
HEAT_MAPS = "selections.js"
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
# The clock of papers that leave out requests: warm-up before the first round, candidates' losses.
TRAINING = {"training": ("seconds",)}
FEWEST_POINTS = 3  # of a curve; metrics with fewer have no view
POINTS = 48  # of a curve
DIGITS, ROUND_DIGITS = 4, 7
_Key = tuple[str, str]  # case and sampler
_Costs = tuple[Ints, Array]  # rounds, and the cost up to each of them


def save(
    summary: Summary,
    experiment: str,
    folder: Path,
    facts: Mapping[str, str],
    selected: Path | None = None,
) -> list[Path]:
    """Write an experiment's views, ``<metric>.js``, and their description; return all paths.

    `selected`: table of the clients that its runs selected, which becomes heat maps.  Tuning runs
    of the cross matrix have no views: its figures show all their results.
    """
    paper = folder.parent.name
    rows = summary.categorised[summary.categorised["at"] >= 0]
    with_curves = set(rows["case"].unique())
    counts = rows.groupby("metric", observed=True)["at"].nunique()
    tuning = experiment.startswith(TUNING)
    metrics = [name for name in METRICS if counts.get(name, 0) >= FEWEST_POINTS and not tuning]
    paths = []
    if metrics:
        curves = summary.categorised_curves
        curves = _complete(curves[curves["at"] >= 0])
        clocks = TRAINING if "asking_seconds" in set(rows["metric"].unique()) else {}
        costs = {
            name: _cumulative_costs(rows, parts) for name, parts in {**COSTS, **clocks}.items()
        }
    for metric in metrics:
        path = folder / f"{metric}.js"
        text = _json(curves[curves["metric"] == metric], costs)
        write_text(path, f'explored("{paper}/{experiment}/{metric}", {text});\n')
        paths.append(path)
    recorded = selected is not None and selected.is_file()
    if metrics and selected is not None and recorded:
        path = folder / HEAT_MAPS
        key = f"{paper}/{experiment}/{path.stem}"
        write_text(path, heat_maps.script(pd.read_csv(selected), key))
        paths.append(path)
    record = {
        "title": str(summary.settings.get("title") or experiment),
        "metrics": {name: METRICS[name] for name in metrics},
        "samplers": {
            label: run_label(label, str(sampler.get("name", label)))
            for label, sampler in summary.settings["samplers"].items()
        },
        "cases": [case for case in summary.settings["cases"] if case in with_curves],
        "seeds": int(summary.rows["seed"].nunique()),
        "selections": recorded,
        "badges": badges({experiment: summary}, facts),
        "digests": {path.name: sha256(path) for path in paths},
    }
    write_record(folder / RECORD, record)
    return [*paths, folder / RECORD]


def _complete(curves: pd.DataFrame) -> pd.DataFrame:
    """Remove values of rounds that not all seeds reach: a curve ends with the shortest run."""
    seeds = curves.groupby(["case", "sampler", "metric"])["n"].transform("max")
    values = ["mean", "low", "high"]
    return curves.assign(**curves[values].where(curves["n"] == seeds))


def _json(curves: pd.DataFrame, costs: Mapping[str, Mapping[_Key, _Costs]]) -> str:
    """Return the curves of a metric as JSON: of each case and sampler, mean and interval."""
    objects = []
    columns_of = {name: curves[name].to_numpy() for name in ("at", "mean", "low", "high")}
    for (case, sampler), of_curve in sorted(_places(curves).items()):
        places = of_curve[_thinned(len(of_curve))]
        at, mean, low, high = (values[places] for values in columns_of.values())
        columns = {"case": f'"{case}"', "sampler": f'"{sampler}"'}
        columns |= {"at": _json_list(at, ROUND_DIGITS), "mean": _json_list(mean)}
        if np.isfinite(low).any():
            columns |= {"low": _json_list(low), "high": _json_list(high)}
        columns |= {
            name: _json_list(_cost_up_to(spent[case, sampler], at))
            for name, spent in costs.items()
            if (case, sampler) in spent
        }
        objects.append(",".join(f'"{name}":{value}' for name, value in columns.items()))
    return f"[{{{'},{'.join(objects)}}}]"


def _cumulative_costs(rows: pd.DataFrame, parts: Sequence[str]) -> dict[_Key, _Costs]:
    """Return a cost summed up to each round, mean over seeds, for each case and sampler."""
    charged = rows[rows["metric"].isin(parts)]
    charges = charged.groupby(["case", "sampler", "at", "seed"])["value"].sum()
    means = charges.groupby(["case", "sampler", "at"]).mean().reset_index()
    at, mean = means["at"].to_numpy(), means["value"].to_numpy()
    return {key: (at[of], np.cumsum(mean[of])) for key, of in _places(means).items()}


def _places(table: pd.DataFrame) -> Mapping[_Key, Ints]:
    """Return the rows of each case and sampler."""
    return cast("Mapping[_Key, Ints]", table.groupby(["case", "sampler"]).indices)


def _cost_up_to(spent: _Costs, at: Ints) -> Array:
    """Return the cost up to each round in `at`; zero before the first charge."""
    rounds, cost = spent
    total: Array = np.concatenate([[0.0], cost])[np.searchsorted(rounds, at, side="right")]
    return total


def _thinned(count: int) -> Ints:
    """Choose points: half evenly spaced in rounds, half in their logarithm, with both ends."""
    if count <= POINTS:
        return np.arange(count)
    even = np.linspace(0, count - 1, POINTS // 2)
    early = np.geomspace(1, count, POINTS // 2) - 1
    return np.unique(np.concatenate([even, early]).round().astype(np.int64))


def _json_list(values: Any, digits: int = DIGITS) -> str:
    """Write numbers as a JSON list; infinity and NaN become null."""
    form = f".{digits}g"
    numbers = np.asarray(values, float).tolist()
    texts = (format(x, form) if math.isfinite(x) else "null" for x in numbers)
    return f"[{','.join(texts)}]"
