"""Histories, the results of :func:`fedsampling.train`: ``seed``, ``at``, ``metric``, ``value``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fedsampling.base.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

NAMES = "client names"  # of a history's ``attrs``
PREFIX = "client_"  # of the metrics of single clients; their rows have the client in ``at``
Histories = Mapping[str, "pd.DataFrame"]
COLUMNS = frozenset({"seed", "at", "metric", "value"})  # of a history


def by_label(history: "pd.DataFrame | Histories") -> Histories:
    """Return histories by label; a single one has an empty label."""
    histories = history if isinstance(history, Mapping) else {"": history}
    for label, table in histories.items():
        name = f"history {label!r}" if label else "history"
        is_history = {*getattr(table, "columns", ())} >= COLUMNS
        if not is_history or {table[key].dtype.kind for key in ("at", "value")} - {*"iuf"}:
            raise InputError(f"{name}: must be a result of fedsampling.train")
        if table.duplicated(["seed", "at", "metric"]).any():
            raise InputError(f"{name}: duplicate rows; pass one history, with each seed once")
    return histories


def diverged_runs(history: "pd.DataFrame") -> int:
    """Count the runs that diverged."""
    return int((history["value"][history["metric"] == "diverged_at"] >= 0).sum())


def rows_of(history: "pd.DataFrame", metric: str) -> "pd.DataFrame":
    """Return the rows of a metric that was measured in rounds."""
    in_rounds = (history["at"] >= 0) & ~history["metric"].astype(str).str.startswith(PREFIX)
    rows = history[(history["metric"] == metric) & in_rounds]
    if rows.empty:
        metrics = sorted(set(history.loc[in_rounds, "metric"].astype(str)))
        if metric == "accuracy":
            fix = "give the data test samples (x_test or test_share)"
        else:
            fix = nearest(metric, metrics)
        raise InputError(f"metric: the history has no {metric!r}; {fix}")
    return rows
