"""Where a simulation runs, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from fedsampling.training.checkpoint import NEVER, Checkpoint


@dataclass(frozen=True)
class Where:
    """Where official data are kept and looked for, and where a long job keeps its progress.

    Parameters
    ----------
    cache : Path
        Folder of verified files.
    mirror : str or None
        Folder or URL that is tried first.
    device : str
        Where networks are trained, as PyTorch names it.
    checkpoint : Checkpoint
        Where a long job continues after it was stopped, and whether it should stop now.
    """

    cache: Path
    mirror: str | None
    device: str = "cpu"
    checkpoint: Checkpoint = NEVER


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
