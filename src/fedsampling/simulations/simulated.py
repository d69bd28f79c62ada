"""What every simulation takes and returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Where:
    """Where official data are kept and looked for, and where a long job keeps its progress.

    Parameters
    ----------
    cache : Path
        Folder of verified files.
    mirror : str or None
        Folder or URL that is tried first.
    checkpoint : Path or None
        File of this job's progress, named by its runs and code; None keeps nothing.
    stop : callable
        Whether the job should write its checkpoint and raise
        :class:`fedsampling.stopping.Stopped`; who asks promises to do so.
    """

    cache: Path
    mirror: str | None
    checkpoint: Path | None = None
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Simulated:
    """One table per seed, and what they were made from.

    Parameters
    ----------
    tables : sequence of DataFrame
        Columns ``at``, ``metric``, ``value``.
    inputs : mapping
        SHA-256 of each data file that was read.
    unverified : bool
        Whether an input could not be compared with its publisher's checksum.
    """

    tables: Sequence[pd.DataFrame]
    inputs: Mapping[str, str] = field(default_factory=dict)
    unverified: bool = False


def tidy(columns: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> pd.DataFrame:
    """Make a run table of {metric: (at, value)}."""
    return pd.concat(
        [
            pd.DataFrame({"at": np.asarray(at, np.int64), "metric": metric, "value": value})
            for metric, (at, value) in columns.items()
        ],
        ignore_index=True,
    )
