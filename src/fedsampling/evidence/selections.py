"""The selected clients of each round, from the rows of runs."""

from typing import TYPE_CHECKING

import numpy as np

from fedsampling.learning.training.selections import COLUMNS, METRICS, PREFIX

if TYPE_CHECKING:
    import pandas as pd

    from fedsampling.base.arrays import Bools


def are_selections(rows: "pd.DataFrame") -> "Bools":
    """Mark the rows of selections."""
    import pandas as pd

    metric = pd.Categorical(rows["metric"])
    starts = np.array([str(name).startswith(PREFIX) for name in metric.categories], np.bool_)
    return starts[metric.codes] if len(rows) else np.zeros(0, np.bool_)


def selections(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Return a row for each selected slot, in the order of rounds and of selection.

    Parameters
    ----------
    rows : DataFrame
        Columns ``at``, ``metric``, ``value``, and those that identify a run, such as ``seed``.

    Returns
    -------
    DataFrame
        The columns of the run, and ``round``, ``client``, ``weight``, ``reported``, ``seconds``.
    """
    import pandas as pd

    rows = rows[are_selections(rows)]
    parts = [rows[rows["metric"] == name] for name in METRICS]
    first = parts[0]
    run = [name for name in first.columns if name not in ("at", "metric", "value")]
    table = first[[*run, "at"]].rename(columns={"at": "round"}).reset_index(drop=True)
    values = {name: part["value"].to_numpy() for name, part in zip(COLUMNS, parts, strict=True)}
    values["client"] = values["client"].astype(np.int64)
    values["reported"] = values["reported"].astype(np.bool_)
    return pd.concat([table, pd.DataFrame(values)], axis=1)
