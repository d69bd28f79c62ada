"""Styles of samplers and quantities of runs for figures and claims of Fraboni et al. 2021."""

from dataclasses import replace

import numpy as np
import pandas as pd

from fedsampling.evidence.statistics import Estimate, percent
from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.style import SCHEMES, Line

from .theory import all_distinct

LINES = {
    "md": Line("MD", SCHEMES["md"]),
    "algorithm1": Line("Algorithm 1", SCHEMES["clustered_size"]),
    "algorithm2": Line("Algorithm 2", SCHEMES["clustered_similarity"]),
    "algorithm2-code": Line(
        "Algorithm 2, Ward as in the code", SCHEMES["clustered_similarity"], variant=True
    ),
    "target": Line("target", SCHEMES["target"]),
    "fedavg": Line("FedAvg", SCHEMES["fedavg"]),
}
CLUSTERED = ("algorithm1", "algorithm2")
LATE = 0.5  # of the rounds: late losses are means from there on
DIGITS = 10


def by_alpha(summary: Summary) -> dict[float, str]:
    """Return the case of each Dirichlet parameter α, in the paper's order."""
    cases = summary.settings["cases"]
    return {float(summary.setting("dataset.partition.alpha", case)): case for case in cases}


def late(summary: Summary, sampler: str, metric: str = "loss", case: str = "base") -> pd.Series:
    """Return the mean of a metric over the second half of the rounds, indexed by seed."""
    last = summary.select(sampler, metric, case)["at"].max()
    return summary.per_seed(sampler, metric, case, since=LATE * last)


def all_clients_distinct(summary: Summary, sampler: str) -> pd.Series:
    """Return the share of rounds whose m sampled clients are all different, indexed by seed."""
    rounds = summary.select(sampler, "clients", since=1)
    m = summary.setting("m", sampler=sampler)
    shares: pd.Series = (rounds["value"] == m).groupby(rounds["seed"]).mean()
    return shares


def probability_all_distinct(summary: Summary) -> float:
    """Return the probability that MD sampling draws m different clients on MNIST by digit."""
    from fedsampling.data.partitions.by_label import ByDigit

    partition = ByDigit.model_validate(summary.setting("dataset.partition"))
    n = DIGITS * partition.clients_per_label  # of equal size
    return all_distinct(np.full(n, 1 / n), summary.setting("m", sampler="md"))


def percent_of_rounds(share: Estimate) -> Estimate:
    """Turn a share into per cent; its interval ends where the share does."""
    low, high = np.clip([share.low, share.high], 0, 1)
    return percent(replace(share, low=float(low), high=float(high)))
