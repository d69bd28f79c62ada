"""Heat maps of the run explorer: how often each client was selected, round by round."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

ROWS, COLUMNS = 120, 120  # at most; more clients or rounds share a cell


def heat_maps(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a heat map for each case and sampler.

    Parameters
    ----------
    table : DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``round``, ``client`` and ``reported``.

    Returns
    -------
    list of dict
        ``selected`` and ``failed`` count, over a cell's rounds, seeds and clients, how often a
        client was selected, or was selected and did not report: a list for each row of clients;
        ``failed`` only if there are any.  ``clients`` are those up to the last one that any sampler
        of the case selected.
    """
    return list(_heat_maps(table))


def script(table: pd.DataFrame, key: str) -> str:
    """Return the heat maps as a script of the explorer, which calls ``explored``."""
    text = json.dumps(heat_maps(table), separators=(",", ":"))
    return f"explored({json.dumps(key)}, {text});\n"


def _heat_maps(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    last_clients = table.groupby("case", observed=True)["client"].max().to_dict()
    for (case, sampler), part in table.groupby(["case", "sampler"], sort=False, observed=True):
        clients = int(last_clients[case]) + 1
        first, last = int(part["round"].min()), int(part["round"].max())
        height = -(-clients // ROWS)
        width = -(-(last - first + 1) // COLUMNS)
        seeds = part["seed"].nunique()
        once = part.drop_duplicates(["seed", "round", "client"])  # selected twice counts once
        size = -(-clients // height), -(-(last - first + 1) // width)
        at = once["client"].to_numpy() // height, (once["round"].to_numpy() - first) // width
        counted = {"selected": np.ones(len(once), np.bool_), "failed": ~once["reported"].to_numpy()}
        cells = {}
        for name, counts in counted.items():
            total = np.zeros(size, np.int64)
            np.add.at(total, at, counts)
            if name == "selected" or total.any():
                cells[name] = total.tolist()
        yield {
            "case": str(case),
            "sampler": str(sampler),
            "clients": clients,
            "rounds": [first, last],
            "perRow": height,
            "perColumn": width,
            "seeds": int(seeds),
            **cells,
        }
