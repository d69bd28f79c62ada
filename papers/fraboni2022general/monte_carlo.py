"""Closed forms of aggregation weights next to their Monte Carlo estimates: Table 1."""

import numpy as np
import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.theory.weights import PER_CLIENT

EXACT = 1e-12  # differences below are rounding
# Columns of Table 1.
QUANTITIES = {
    "sigma": "Σ Var[ω_i]",
    "alpha": "α",
    "variance_of_sum": "Var[Σ ω_i]",
    "clients_mean": "E[N]",
    "clients_variance": "Var[N]",
}


def comparisons(summary: Summary) -> pd.DataFrame:
    """Put estimate, error, closed form, difference and z of every quantity of a run on one row.

    `summary`: of an experiment on aggregation weights, without training.
    """
    index = ["case", "sampler", "seed", "at"]
    runs = summary.rows.pivot(index=index, columns="metric", values="value")
    parts = []
    for metric in (*PER_CLIENT, *QUANTITIES):
        run = runs[runs[metric].notna()]
        values = {
            "metric": metric,
            "estimate": run[metric],
            "error": run[f"{metric}_se"],
            "closed": run[f"closed_{metric}"],
        }
        parts.append(pd.DataFrame(values).reset_index())
    table = pd.concat(parts, ignore_index=True)
    table["difference"] = table.estimate - table.closed
    # A quantity that does not vary between rounds is either right or infinitely wrong.
    fixed = np.where(table.difference.abs() <= EXACT, 0.0, np.inf)
    table["z"] = np.where(table.error > EXACT, table.difference / table.error, fixed)
    return table
