"""Whether published runs, recomputed on this machine, agree with the stored results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fedsampling.base.files import read_record

FILE = "recheck.json"
# Largest differences that rounding explains, relative to the metric's largest value.  Accuracies
# count test samples, and rounding moves single samples across the border between two classes.
TOLERANCE = 1e-6
ACCURACY_TOLERANCE = 0.005

Outcome = Literal["equal", "within tolerance", "draws differ", "differs"]


@dataclass(frozen=True)
class Recomputed:
    """A published run that was recomputed.

    Parameters
    ----------
    job, hash : str
    seed : int
    outcome : str
        Whether the two tables are equal, or equal up to rounding: :data:`TOLERANCE` and
        :data:`ACCURACY_TOLERANCE`.  "draws differ" means that they agree until some round, and that
        the sampler reads updates or losses, so rounding can change which clients it draws.
    difference : float
        Largest difference relative to the metric's largest value; −1 if rows differ.
    until : int, optional
        First round that differs.
    """

    job: str
    seed: int
    hash: str
    outcome: Outcome
    difference: float
    until: int | None = None


def read(path: Path) -> list[Recomputed]:
    """Read the results of an earlier recheck; empty if there was none.

    Raises
    ------
    InputError
        If the file is corrupt.
    """
    return [Recomputed(**run) for run in read_record(path)["runs"]] if path.is_file() else []


def sentence(done: Sequence[Recomputed]) -> str:
    """Summarise the recomputed runs in one sentence."""
    if not done:
        return "Recomputed on this machine: no finished run qualifies"
    equal = sum(run.outcome == "equal" for run in done)
    drawn = sum(run.outcome == "draws differ" for run in done)
    agree = sum(run.outcome in ("equal", "within tolerance") for run in done)
    how = "in all stored digits" if equal == agree else f"{equal} in all digits, others nearly"
    until = f"; {drawn} until rounding changed which clients were drawn" if drawn else ""
    return f"Recomputed on this machine: {agree} of {len(done)} agree ({how}){until}"


def compare(
    recomputed: pd.DataFrame, stored: pd.DataFrame, adaptive: bool = False
) -> tuple[Outcome, float, int | None]:
    """Compare the tables of a run.

    Parameters
    ----------
    recomputed, stored : DataFrame
    adaptive : bool
        Whether the run's sampler reads quantities that training computes.

    Returns
    -------
    outcome : str
        As in :class:`Recomputed`.
    difference : float
        Largest difference of a metric, relative to its largest value; −1 if rows differ, or if NaN
        occurs in different places.
    until : int or None
        First round that differs.
    """
    if len(recomputed) != len(stored) or not (
        np.array_equal(recomputed["at"], stored["at"])
        and np.array_equal(recomputed["metric"].astype(str), stored["metric"].astype(str))
    ):
        return "differs", -1.0, None
    tables = pd.DataFrame(
        {
            "at": stored["at"].to_numpy(),
            "metric": stored["metric"].astype(str).to_numpy(),
            "stored": stored["value"].to_numpy(),
            "recomputed": recomputed["value"].to_numpy(),
        }
    )
    if not tables["stored"].isna().equals(tables["recomputed"].isna()):
        return "differs", -1.0, None
    equal = tables["stored"] == tables["recomputed"]  # also of infinite values
    gap = pd.Series(np.where(equal, 0.0, abs(tables["stored"] - tables["recomputed"])))
    largest = tables["stored"].abs().groupby(tables["metric"]).transform("max")
    relative = gap / largest.where(largest > 0, 1.0)
    of_clients = tables["metric"] == "client_accuracy"  # of few samples each: their mean difference
    relative[of_clients] = gap[of_clients].mean()
    counts = tables["metric"].str.startswith("accuracy") | of_clients
    too_large = relative > np.where(counts, ACCURACY_TOLERANCE, TOLERANCE)
    difference = float(relative.max())
    if not too_large.any():
        return "within tolerance", difference, None
    until = int(tables.loc[too_large, "at"].min())
    late = adaptive and until > tables["at"].min()
    return ("draws differ" if late else "differs"), difference, until
