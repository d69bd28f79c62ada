"""Heat maps of the run explorer: how often each client was selected, round by round."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.arrays import Array

ROWS, COLUMNS = 120, 120  # at most; more clients or rounds share a cell
FIRST_LEVEL, LEVELS = ord("0"), 64  # a cell is a character: a share between 0 and 1 in 64 levels


def heat_maps(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a heat map for each case and sampler.

    Parameters
    ----------
    table : DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``round``, ``client`` and ``reported``.

    Returns
    -------
    list of dict
        ``selected`` and ``failed`` are the shares of a cell's rounds, seeds and clients in which a
        client was selected, or was selected and did not report: a text for each row of clients;
        ``failed`` only if there are any.  Clients count up to the last one that any sampler
        selected.
    """
    return list(_heat_maps(table))


def script(table: pd.DataFrame, key: str) -> str:
    """Return the heat maps as a script of the explorer, which calls ``explored``."""
    text = json.dumps(heat_maps(table), separators=(",", ":"))
    return f"explored({json.dumps(key)}, {text});\n"


def _heat_maps(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    clients = int(table["client"].max()) + 1
    for (case, sampler), part in table.groupby(["case", "sampler"], sort=False, observed=True):
        first, last = int(part["round"].min()), int(part["round"].max())
        height = -(-clients // ROWS)
        width = -(-(last - first + 1) // COLUMNS)
        seeds = part["seed"].nunique()
        once = part.drop_duplicates(["seed", "round", "client"])  # selected twice counts once
        size = -(-clients // height), -(-(last - first + 1) // width)
        at = once["client"].to_numpy() // height, (once["round"].to_numpy() - first) // width
        # The last row and column may have fewer clients and rounds.
        tall = np.minimum(height, clients - np.arange(size[0]) * height)
        wide = np.minimum(width, last - first + 1 - np.arange(size[1]) * width)
        possible = np.outer(tall, wide) * seeds
        shares = {"selected": np.ones(len(once), np.bool_), "failed": ~once["reported"].to_numpy()}
        cells = {}
        for name, counts in shares.items():
            total = np.zeros(size)
            np.add.at(total, at, counts.astype(np.float64))
            if name == "selected" or total.any():
                cells[name] = [_text(row) for row in total / possible]
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


def _text(shares: Array) -> str:
    """Write shares as characters; only zero has the first level."""
    levels = np.where(shares > 0, np.maximum(np.rint(shares * (LEVELS - 1)), 1), 0)
    return "".join(chr(FIRST_LEVEL + int(level)) for level in levels)
