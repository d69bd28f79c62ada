"""The samplers of Fraboni et al. 2021: lines of figures, and values of the second half by seed."""

import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.style import ORANGE, SCHEMES, SKY, Line

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
MEASURES = {
    "arccos": Line("Algorithm 2, arccos", LINES["algorithm2"].colour),
    "l2": Line("Algorithm 2, L2", ORANGE),
    "l1": Line("Algorithm 2, L1", SKY),
    "arccos-code": Line(
        "Algorithm 2, arccos, Ward as in the code", LINES["algorithm2"].colour, variant=True
    ),
}
CLUSTERED = ("algorithm1", "algorithm2")
# Metrics by their name in runs, with their name in sentences.
METRICS = {"loss": "loss", "accuracy": "accuracy", "labels": "digits"}
LATE = 0.5  # of the rounds: late losses are means from there on


def by_alpha(summary: Summary) -> dict[float, str]:
    """Return the case of each Dirichlet parameter α, in the paper's order."""
    cases = summary.settings["cases"]
    return {float(summary.setting("dataset.partition.alpha", case)): case for case in cases}


def late(summary: Summary, sampler: str, metric: str = "loss", case: str = "base") -> pd.Series:
    """Return the mean of a metric over the second half of the rounds, indexed by seed."""
    last = summary.select(sampler, metric, case)["at"].max()
    return summary.per_seed(sampler, metric, case, since=LATE * last)
