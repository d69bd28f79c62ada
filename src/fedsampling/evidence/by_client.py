"""Values of single clients: who takes part, and how well the final model fits each client.

References
----------
Li, Sanjabi, Beirami, Smith: Fair Resource Allocation in Federated Learning. ICLR 2020 (q-FFL):
mean, worst and best tenth, and spread of the accuracies over clients.
Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination. DEC report 1984.
"""

from typing import TYPE_CHECKING

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.evidence.statistics import Array, mean
from fedsampling.learning.training.charges import evenness

if TYPE_CHECKING:
    import pandas as pd

MEASURES = (
    "never_selected", "least_weight", "jain", "mean_accuracy", "median_accuracy", "worst_accuracy",
    "best_accuracy", "accuracy_deviation", "accuracy_gap", "mean_loss", "median_loss", "worst_loss",
    "best_loss", "loss_deviation", "loss_gap",
)  # fmt: skip
PREFIX = "client_"  # of the metrics of single clients; their rows have the client in ``at``
MISSING = "the history has no values of single clients; train with by_client=True"


def by_client(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row for each run and client.

    Parameters
    ----------
    rows : DataFrame
        Columns ``at``, ``metric``, ``value``, and those that identify a run, such as ``seed``.

    Returns
    -------
    DataFrame
        The columns of the run; ``client``; ``samples``, ``importance``, ``tests``, ``offered``,
        ``rounds``, ``weight``, ``loss`` and, for classification, ``accuracy``, as they were
        recorded; ``participation``, the number of rounds in which the client takes part, divided by
        the number of rounds in which it is available; and ``relative_weight``, its share of all
        weights divided by its importance, which is 1 in expectation for unbiased samplers.

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
    rows = rows[rows["metric"].astype(str).str.startswith(PREFIX)]
    if rows.empty:
        raise InputError(MISSING)
    run = [name for name in rows.columns if name not in ("at", "metric", "value")]
    rows = rows.assign(metric=rows["metric"].astype(str).str.removeprefix(PREFIX))
    wide = rows.pivot(index=[*run, "at"], columns="metric", values="value")
    wide = wide.rename_axis(columns=None).reset_index().rename(columns={"at": "client"})
    total = wide.groupby(run)["weight"].transform("sum") if run else wide["weight"].sum()
    return wide.assign(
        participation=(wide["rounds"] / wide["offered"]).where(wide["offered"] > 0),
        relative_weight=(wide["weight"] / total / wide["importance"]).where(wide["importance"] > 0),
    )


def fairness(table: "pd.DataFrame") -> "pd.DataFrame":
    """Summarise the clients of each run.

    Parameters
    ----------
    table : DataFrame
        Result of :func:`by_client`.

    Returns
    -------
    DataFrame
        A row for each run, indexed by its columns: ``never_selected``, the share of the clients
        that take part in no round; ``least_weight``, the smallest relative weight; ``jain``, Jain's
        index of the numbers of rounds; and, with equal weights of all clients, ``mean_accuracy``,
        ``median_accuracy``, ``worst_accuracy`` and ``best_accuracy`` (means of the worst and of the
        best tenth), ``accuracy_deviation`` (standard deviation), and ``accuracy_gap`` between mean
        and worst tenth.  For regression ``loss`` takes the place of ``accuracy``.
    """
    import pandas as pd

    score = "accuracy" if "accuracy" in table else "loss"
    recorded = (
        "client", "samples", "importance", "tests", "offered", "rounds", "weight", "loss",
        "accuracy", "participation", "relative_weight",
    )  # fmt: skip
    run = [name for name in table.columns if name not in recorded]
    rows = {
        key: {
            "never_selected": float((part["rounds"] == 0).where(part["rounds"].notna()).mean()),
            "least_weight": float(part["relative_weight"].min()),
            "jain": float(evenness(part["rounds"].to_numpy()[None])["jain"][0]),
            **_spread(part[score].to_numpy(), score),
        }
        for key, part in table.groupby(run)
    }
    return pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples(rows, names=run))


def over_seeds(measures: "pd.DataFrame") -> dict[str, float]:
    """Return each measure's mean over runs, and the ends of its 95 % interval."""
    row: dict[str, float] = {}
    for name in map(str, measures):
        estimate = mean(measures[name].to_numpy())
        row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return row


def _spread(values: Array, score: str) -> dict[str, float]:
    """Summarise the clients' scores; large losses are the worst ones."""
    tenth = -(-len(values) // 10)
    ordered = np.sort(values) if score == "accuracy" else -np.sort(-values)
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
