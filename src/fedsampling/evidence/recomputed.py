"""Finished runs that were computed again, compared with the stored ones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from fedsampling.base.files import read_record

RECHECK = "recheck.json"
# Largest differences that rounding explains, relative to the metric's largest value.  Accuracies
# count test samples, and rounding moves single samples across the border between two classes.
TOLERANCE = 1e-6
ACCURACY_TOLERANCE = 0.005
Outcome = Literal["equal", "within tolerance", "rounding", "differs"]


@dataclass(frozen=True)
class Recomputed:
    """A published run that was recomputed."""

    job: str
    seed: int
    hash: str
    # whether the two tables are equal, or equal within :data:`TOLERANCE` and
    # :data:`ACCURACY_TOLERANCE`.  "rounding" means that they agree in the first rounds, and that
    # rounding explains the rest: see :func:`fedsampling.workflow.recheck.is_sensitive`
    outcome: Outcome
    # largest difference relative to the metric's largest value; −1 if rows differ
    difference: float
    until: int | None = None  # first round that differs


def read_recheck(path: Path) -> list[Recomputed]:
    """Read the results of an earlier recheck; empty if there was none."""
    return [Recomputed(**run) for run in read_record(path)["runs"]] if path.is_file() else []


def recheck_sentence(runs: Sequence[Recomputed]) -> str:
    """Summarise the recomputed runs in one sentence."""
    if not runs:
        return "Recomputed on this machine: no finished run qualifies"
    count = Counter(run.outcome for run in runs)
    agree = len(runs) - count["differs"]
    if not agree:
        return f"Recomputed on this machine: 0 of {len(runs)} agree"
    degrees = [f"{'all' if count['equal'] == agree else count['equal']} in all stored digits"]
    if count["within tolerance"]:
        degrees.append(f"{count['within tolerance']} up to rounding")
    if count["rounding"]:
        degrees.append(f"{count['rounding']} until rounding errors grew")
    return f"Recomputed on this machine: {agree} of {len(runs)} agree ({', '.join(degrees)})"


def of_same_metrics(recomputed: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Return the recomputed rows of the metrics that the stored run has."""
    known = recomputed["metric"].astype(str).isin(set(stored["metric"].astype(str)))
    return recomputed[known].reset_index(drop=True)


def compare_tables(
    recomputed: pd.DataFrame, stored: pd.DataFrame
) -> tuple[Outcome, float, int | None]:
    """Compare the tables of a run.

    Metrics that the stored run lacks are not compared: later code may measure more.

    Returns the outcome; the largest difference of a metric, relative to its largest value, or −1 if
    rows, NaNs or infinite values differ; and the first round that differs, if any.
    """
    recomputed = of_same_metrics(recomputed, stored)
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
    infinite = np.isinf(tables["stored"]) | np.isinf(tables["recomputed"])
    equal = tables["stored"] == tables["recomputed"]  # also of infinite values
    if (infinite & ~equal).any():
        return "differs", -1.0, None
    gap = pd.Series(np.where(equal, 0.0, abs(tables["stored"] - tables["recomputed"])))
    largest = tables["stored"].abs().mask(infinite).groupby(tables["metric"]).transform("max")
    relative = gap / largest.where(largest > 0, 1.0)
    of_clients = tables["metric"] == "client_accuracy"  # of few samples each: their mean difference
    relative[of_clients] = gap[of_clients].mean()
    counts = tables["metric"].str.startswith("accuracy") | of_clients
    too_large = relative > np.where(counts, ACCURACY_TOLERANCE, TOLERANCE)
    difference = float(relative.max())
    if not too_large.any():
        return "within tolerance", difference, None
    return "differs", difference, int(tables.loc[too_large, "at"].min())
