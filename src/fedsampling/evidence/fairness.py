"""Single clients in a history: participation, weights and accuracies, and how equal they are."""

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, naming
from fedsampling.evidence.directions import ACCURACIES, LEVELS, LOSSES, SPREADS
from fedsampling.evidence.histories import NAMES, PREFIX, Histories, by_label, diverged_runs
from fedsampling.evidence.statistics import Estimate, mean
from fedsampling.learning.training.participation import evenness

if TYPE_CHECKING:
    import pandas as pd


def left_out(histories: "pd.DataFrame | Histories") -> "pd.DataFrame":
    """Tabulate how fairly each sampler treats the clients: participation, weights, accuracies.

    Parameters
    ----------
    histories : DataFrame, or mapping of str to DataFrame
        Result of :func:`fedsampling.train` with ``by_client=True``, or several results by label.

    Returns
    -------
    DataFrame
        A row for each sampler: the number of ``diverged`` runs, and the measures of
        :func:`fedsampling.evidence.fairness.fairness`, means over seeds; each with the ends
        ``<measure>_low`` and ``<measure>_high`` of its 95 % interval.  Measures are NaN if a run
        diverged.

    Raises
    ------
    InputError
        If a history has no values of single clients.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), by_client=True, **work)
    >>> fs.left_out({"md": history})["never_selected"].round(2).tolist()
    [0.9]
    """
    import pandas as pd

    rows = []
    for label, table in by_label(histories).items():
        with naming(label) if label else nullcontext():
            averages = over_seeds(fairness(by_client(table)))
        rows.append({"sampler": label, "diverged": diverged_runs(table), **averages})
    return pd.DataFrame(rows)


def by_client(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row for each run and client.

    Parameters
    ----------
    rows : DataFrame
        Columns ``at``, ``metric``, ``value``, and those that identify a run, such as ``seed``.

    Returns
    -------
    DataFrame
        The columns of the run; ``client``, by name if the clients have names; ``samples``,
        ``importance``, ``tests``, ``offered``, ``rounds`` and ``weight``, as they were recorded;
        ``loss`` and, for classification, ``accuracy`` on the client's test samples (NaN if it has
        none), or ``training_loss`` and ``training_accuracy`` if no client has test samples;
        ``participation``, the number of rounds in which the client takes part, divided by the
        number of rounds in which it is available; and ``relative_weight``, its share of all weights
        divided by its importance, which is 1 in expectation for unbiased samplers.

    Raises
    ------
    InputError
        If there are no values of single clients.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), by_client=True, **work)
    >>> len(fs.by_client(history))
    100
    """
    if not {"at", "metric", "value"} <= {*getattr(rows, "columns", ())}:
        raise InputError("history: must be a result of fedsampling.train")
    names = rows.attrs.get(NAMES)
    rows = rows[rows["metric"].astype(str).str.startswith(PREFIX)]
    if rows.empty:
        raise InputError(MISSING)
    run = [name for name in rows.columns if name not in ("at", "metric", "value")]
    rows = rows.assign(metric=rows["metric"].astype(str).str.removeprefix(PREFIX))
    wide = rows.pivot(index=[*run, "at"], columns="metric", values="value")
    wide = wide.rename_axis(columns=None).reset_index().rename(columns={"at": "client"})
    scores = [score for score in ("accuracy", "loss") if score in wide]
    if (wide["tests"] == 0).all():
        wide = wide.rename(columns={score: f"training_{score}" for score in scores})
    else:
        wide[scores] = wide[scores].where(wide["tests"] > 0)
    if names is not None:
        wide["client"] = np.array(names, object)[wide["client"]]
    total = wide.groupby(run)["weight"].transform("sum") if run else wide["weight"].sum()
    return wide.assign(
        participation=(wide["rounds"] / wide["offered"]).where(wide["offered"] > 0),
        relative_weight=(wide["weight"] / total / wide["importance"]).where(wide["importance"] > 0),
    )


def fairness(table: "pd.DataFrame") -> "pd.DataFrame":
    """Summarise the clients of each run.

    `table`: result of :func:`by_client`. Returns a row for each run, indexed by its columns:
    ``never_selected``, the share of the clients that take part in no round; ``least_weight``, the
    smallest relative weight; ``jain``, Jain's index of the numbers of rounds; and, with equal
    weights of all clients, ``mean_accuracy``, ``median_accuracy``, ``worst_accuracy`` and
    ``best_accuracy`` (means of the worst and of the best tenth), ``accuracy_deviation`` (standard
    deviation), and ``accuracy_gap`` between mean and worst tenth.  For regression ``loss`` takes
    the place of ``accuracy``; if no client has test samples, ``training_accuracy`` or
    ``training_loss`` does.
    """
    import pandas as pd

    score = next(score for score in SCORES if score in table)
    recorded = (
        "client", "samples", "importance", "tests", "offered", "rounds", "weight", *SCORES,
        "participation", "relative_weight",
    )  # fmt: skip
    run = [name for name in table.columns if name not in recorded]
    rows = {
        key: {
            "never_selected": float((part["rounds"] == 0).where(part["rounds"].notna()).mean()),
            "least_weight": float(part["relative_weight"].min()),
            "jain": float(evenness(part["rounds"].to_numpy()[None])["jain"][0]),
            **_spread(_measured(part, score), score),
        }
        for key, part in table.groupby(run)
    }
    return pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples(rows, names=run))


def over_seeds(measures: "pd.DataFrame") -> dict[str, float]:
    """Return each measure's mean over runs, and the ends of its 95 % interval."""
    row: dict[str, float] = {}
    for name in map(str, measures):
        values = measures[name].to_numpy()
        estimate = clipped(mean(values), bounds_of(name, values))
        row |= estimate.columns(name, f"{name}_")
    return row


# What a client's score is measured on: its test samples or, if no client has any, its training
# samples, which the name says.
SCORES = (*ACCURACIES, *LOSSES)
SUMMARIES = (*LEVELS, *SPREADS)
MEASURES = (
    "never_selected",
    "least_weight",
    "jain",
    *(summary.format(score) for score in SCORES for summary in SUMMARIES),
)
MISSING = "the history has no values of single clients; train with by_client=True"


def _measured(part: "pd.DataFrame", score: str) -> Array:
    """Return the scores of the clients with test samples; of all clients if none has any."""
    has_tests = part["tests"].to_numpy() > 0
    measured: Array = part[score].to_numpy()
    return measured[has_tests] if has_tests.any() else measured


def _spread(values: Array, score: str) -> dict[str, float]:
    """Summarise the clients' scores; large losses are the worst ones."""
    tenth = -(-len(values) // 10)
    ordered = np.sort(values) if "accuracy" in score else -np.sort(-values)
    if np.isnan(values).any():
        ordered = np.full_like(values, np.nan)
    average, worst = float(ordered.mean()), float(ordered[:tenth].mean())
    return {
        f"mean_{score}": average,
        f"median_{score}": float(np.median(ordered)),
        f"worst_{score}": worst,
        f"best_{score}": float(ordered[-tenth:].mean()),
        f"{score}_deviation": float(ordered.std()),
        f"{score}_gap": abs(average - worst),
    }


def bounds_of(metric: str, values: Array) -> tuple[float, float]:
    """Return the bounds of a metric; none if some values are beyond, as accuracies in per cent."""
    from fedsampling.evidence.summaries import bounds_of  # pandas takes long to import

    if metric in MEASURES:
        return bounds_of("loss" if "loss" in metric else "accuracy", values)
    return bounds_of(metric, values)


def clipped(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Return an estimate with its interval clipped to the bounds of its metric."""
    low, high = np.clip([estimate.low, estimate.high], *bounds)
    return replace(estimate, low=float(low), high=float(high))
