"""Accuracy, loss and bits of each run of Chen et al. 2022 by round; styles of its samplers."""

from functools import cache

import pandas as pd

from fedsampling.evidence.summaries import FEWEST_SEEDS, Summary
from fedsampling.report.drawing.style import SCHEMES, Line

EXACT = 1e-12  # differences below are rounding
BITS = 1e8  # the paper's unit of bits
SENT = ("model_bits", "norm_bits", "exchange_bits")  # by clients; their sum is `bits`
SHOWN = ("accuracy", "best", "train_loss")
LINES = {
    "full": Line("full", SCHEMES["full"]),
    "uniform": Line("uniform", SCHEMES["uniform"]),
    "optimal": Line("optimal (AOCS)", SCHEMES["optimal"]),
    "exact": Line("optimal (OCS)", SCHEMES["optimal"], variant=True),
}


@cache  # figures, alternatives and claims share the table: never modify it
def course(summary: Summary, case: str = "base") -> pd.DataFrame:
    """Return every run of a case at its measured rounds.

    Returns columns ``sampler``, ``seed``, ``at`` (rounds done), ``accuracy``, ``best`` (highest
    accuracy so far), ``train_loss`` (mean over the available clients' samples during local training
    in that round), and cumulative: ``reports``, the columns :data:`SENT`, their sum ``bits``, and
    ``down_bits``.
    """
    rows = summary.select(case=case, since=0)
    keys = ["sampler", "seed", "at"]
    wide = rows.pivot_table(index=keys, columns="metric", values="value", observed=True)
    counted = wide.reindex(columns=["reports", *SENT, "down_bits"]).fillna(0.0)
    counted = counted.groupby(level=["sampler", "seed"], observed=True).cumsum()
    counted["bits"] = counted[list(SENT)].sum(axis=1)
    wide = wide.reindex(columns=["accuracy", "train_loss"]).join(counted)
    # A pivot drops NaN, so the measured rounds of diverged runs are taken from the rows.
    measured = rows.loc[rows["metric"] == "accuracy", keys].drop_duplicates()
    table = measured.merge(wide.reset_index(), on=keys, how="left").sort_values(keys)
    runs = table.groupby(["sampler", "seed"], observed=True)
    table["best"] = runs["accuracy"].cummax()
    columns = list(counted.columns)
    table[columns] = runs[columns].ffill()
    return table.reset_index(drop=True)


def mean_course(table: pd.DataFrame) -> pd.DataFrame:
    """Average the runs of :func:`course`.

    Returns columns ``sampler``, ``at``, ``runs``; the mean of each of :data:`SHOWN` with its
    standard error ``…_se`` (NaN for fewer than three runs; both NaN once a run has diverged); mean
    cumulative bits.
    """
    grouped = table.groupby(["sampler", "at"], observed=True)
    means: dict[str, pd.Series] = {"runs": grouped.size()}
    for name in SHOWN:
        lost = grouped[name].count() < means["runs"]
        means[name] = grouped[name].mean().mask(lost)
        means[f"{name}_se"] = grouped[name].sem().mask(lost | (means["runs"] < FEWEST_SEEDS))
    for name in ("reports", *SENT, "bits", "down_bits"):
        means[name] = grouped[name].mean()
    return pd.DataFrame(means).reset_index()


def set_number(summary: Summary, case: str = "base") -> int | None:
    """Return which of the paper's three datasets a case uses or imitates, if any."""
    dataset = summary.setting("dataset", case)
    unbalance = dataset.get("unbalance") or dataset.get("partition", {}).get("unbalance")
    number = dataset.get("set") or unbalance
    return int(number) if number else None


def title(summary: Summary, case: str = "base") -> str:
    """Return a title such as ``Dataset 1``; empty for other data."""
    number = set_number(summary, case)
    return f"Dataset {number}" if number else ""


def population(summary: Summary) -> tuple[int, int]:
    """Return the number of available clients per round and the expected number of reports."""
    n, m = (int(summary.setting(name, sampler="optimal")) for name in ("available", "m"))
    return n, m


def curve(summary: Summary, case: str, sampler: str, metric: str) -> pd.Series:
    """Return a sampler's metric by ``at``, averaged over seeds."""
    return summary.select(sampler, metric, case).groupby("at")["value"].mean()


def points(panel: str, name: str, values: pd.Series) -> pd.DataFrame:
    """Return a line of a figure as rows of the figure's data."""
    return pd.DataFrame({"panel": panel, "series": name, "x": values.index, "y": values.to_numpy()})
