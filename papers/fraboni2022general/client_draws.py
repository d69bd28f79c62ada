"""The random draws of Shakespeare's clients, and how unequal their importances are."""

import numpy as np
import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper

from .losses import HALF


def client_sizes(summary: Summary) -> dict[int, np.ndarray]:
    """Return the number of samples of each client, for every choice of clients by its seed."""
    rows = summary.select(metric="samples").sort_values("at")
    return {int(str(seed)): run["value"].to_numpy() for seed, run in rows.groupby("seed")}


def deviations(summary: Summary) -> pd.DataFrame:
    """Take the standard deviation of p_i = n_i/M over the first n clients of every choice.

    Returns columns ``seed`` (of the choice), ``n``, ``sd``.
    """
    rows = [
        {"seed": seed, "n": n, "sd": float((sizes[:n] / sizes[:n].sum()).std())}
        for seed, sizes in client_sizes(summary).items()
        for n in HALF
    ]
    return pd.DataFrame(rows)


def our_choice(paper: Paper) -> int:
    """Return the seed of the choice of clients with which the training runs were made.

    Fresh draws do not include it.
    """
    return int(paper.experiments[HALF[10]]["problem_seed"])
