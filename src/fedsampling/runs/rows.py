"""A run's rows as arrays, which are cheap to cut from a file of many runs, to join and to digest.

With a data frame for each run, cutting the cross matrix's files took longer than reading them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.runs.noted_parquet import as_written


@dataclass(frozen=True)
class Rows:
    """The rows of a run, or of several.

    Parameters
    ----------
    at : int array, shape (rows,)
        Round, or −1 for a value of the whole run.
    metric : int array, shape (rows,)
        Positions in `names`.
    value : float array, shape (rows,)
    names : array of str, shape (metrics,)
        Runs that were read from one file share this array.
    """

    at: Ints
    metric: Ints
    value: Array
    names: NDArray[Any]

    def __len__(self) -> int:
        return len(self.at)

    def cut(self, begin: int, end: int) -> "Rows":
        """Return some rows, without copying them."""
        part = slice(begin, end)
        return Rows(self.at[part], self.metric[part], self.value[part], self.names)

    def table(self) -> pd.DataFrame:
        """Return the columns ``at``, ``metric`` and ``value``."""
        metric = pd.Series(self.names[self.metric], dtype="str")
        return pd.DataFrame({"at": self.at, "metric": metric, "value": self.value})


def rows_of(table: pd.DataFrame) -> Rows:
    """Convert a table with the columns ``at``, ``metric`` and ``value``."""
    metric, names = pd.factorize(table["metric"].astype(str))
    at, value = table["at"].to_numpy(np.int64), table["value"].to_numpy(np.float64)
    return Rows(at, metric.astype(np.int64), value, np.asarray(names, dtype=object))


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Join the rows of runs, in their order; names are sorted, without those that have no row."""
    by_names = {id(part.names): part.names for part in parts}
    every = np.unique(np.concatenate([*by_names.values(), np.empty(0, object)]))
    place = {key: np.searchsorted(every, names) for key, names in by_names.items()}
    metric = _concatenated([place[id(part.names)][part.metric] for part in parts], np.int64)
    occurs = np.bincount(metric, minlength=len(every)) > 0
    return Rows(
        _concatenated([part.at for part in parts], np.int64),
        (np.cumsum(occurs) - 1)[metric],
        _concatenated([part.value for part in parts], np.float64),
        every[occurs],
    )


def digest(table: pd.DataFrame) -> str:
    """Return the SHA-256 of a run table's content, which is the same on all machines."""
    metrics = "\n".join(table["metric"].astype(str)).encode()
    return digest_of(table["at"].to_numpy(np.int64), metrics, table["value"])


def digest_of(at: Ints, metrics: bytes, value: ArrayLike) -> str:
    """Return the digest of a table by columns; `metrics` has a line for each row."""
    content = hashlib.sha256()
    content.update(at.tobytes())
    content.update(metrics)
    content.update(as_written(value))
    return content.hexdigest()


def _concatenated(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([*parts, np.empty(0, kind)])
