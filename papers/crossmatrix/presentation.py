"""Names, empty figures and drawings that several figures of the cross matrix share."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedsampling.evidence import across_datasets
from fedsampling.evidence.numbers import show
from fedsampling.experiments.cross_matrix import MEASURES
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Draw, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, ORANGE, VERMILION, panels, style
from fedsampling.report.names import NAMES, display_name

from .bench import bench_datasets
from .runs import compared_datasets

NOT_COMPARED = "No dataset is both tuned and compared yet."
# Names of the measures in tables, and what they are divided by.
UNITS = {"rounds": ("rounds", 1.0), "bits": ("Mbit sent by clients", 1e6), "seconds": ("s", 1.0)}
# How the clients of a dataset differ.
DIFFER = {
    "digit": "labels",
    "writer": "writers",
    "cifar10": "labels and sizes",
    "shakespeare": "roles",
    "quadratic": "functions",
    "fashion": "labels",
    "unequal": "sizes and labels",
    "away": "labels and presence",
    "bench_synthetic_00": "models and sizes",
    "bench_synthetic_11": "models, features and sizes",
    "bench_synthetic_half": "models, features and sizes",
    "bench_synthetic_iid": "sizes",
    "bench_satellite": "labels",
    "bench_spam": "labels and sizes",
    "bench_dna": "labels and sizes",
    "bench_letter": "labels",
    "bench_vowel": "speakers",
    "bench_quadratic": "functions",
    "bench_shuttle": "labels and sizes",
    "bench_fashion": "labels",
    "bench_digit": "labels",
    "bench_writer": "writers",
    "bench_away": "labels and presence",
    "bench_away_label": "labels, which decide presence",
}


def label(sampler: str) -> str:
    """Return the short name of a sampler."""
    return display_name(sampler).short


def alphabetical(sampler: str) -> str:
    """Return the sort key of a sampler."""
    return label(sampler).casefold()


def title(summaries: Summaries, experiment: str) -> str:
    """Return the name of an experiment's dataset."""
    text = str(summaries[experiment].settings["title"])
    for ending in (", learning rates on a holdout", ", trials on a holdout"):
        text = text.removesuffix(ending)
    return text.partition(" by a Dirichlet")[0]


def for_each_measure(table_of: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of all measures; add columns ``measure`` and ``label``."""
    tables = {measure: table_of(measure) for measure in MEASURES}
    for measure, table in tables.items():
        table.insert(0, "measure", measure)
    joined = pd.concat(tables.values(), ignore_index=True)
    return joined.assign(label=joined["scheme"].map(label))


def by_dataset(cells: pd.DataFrame) -> pd.DataFrame:
    """Arrange cells as a table of samplers and datasets.

    `cells` has columns ``scheme`` (the label), ``title`` and ``cell``.
    """
    wide = cells.pivot(index="scheme", columns="title", values="cell").fillna("–")
    wide = wide.sort_index(key=lambda names: names.str.casefold())[cells["title"].unique()]
    return wide.rename_axis(columns=None).reset_index()


def unranked(table: pd.DataFrame, datasets: int) -> list[str]:
    """Return a sentence for each sampler that was not run on all datasets."""
    partly = table[table["sets"] < datasets].drop_duplicates("scheme")
    return [
        f"{label(name)} was run on {n} of {datasets} datasets and has no rank."
        for name, n in zip(partly["scheme"], partly["sets"], strict=True)
    ]


def agreement_sentence(measure: str, samplers: pd.Index, test: across_datasets.Friedman) -> str:
    """State whether the datasets agree, and which samplers differ significantly."""
    ordered = sorted(zip(test.rank, map(str, samplers), strict=True))
    different = [
        f"{label(first)} and {label(second)}"
        for place, (rank, first) in enumerate(ordered)
        for higher_rank, second in ordered[place + 1 :]
        if higher_rank - rank > test.critical
    ]
    pairs = len(ordered) * (len(ordered) - 1) // 2
    text = f"{len(different)} of {pairs} pairs are farther apart"
    if 0 < len(different) <= 3:
        text += f" ({'; '.join(different)})"
    return (
        f"In {measure}: Friedman's χ² = {show(test.statistic)} with {len(ordered) - 1} degrees of "
        f"freedom, p = {test.p:.2g}; the critical difference is {show(test.critical)} ranks, and "
        f"{text}."
    )


def requires(
    datasets: Callable[[Summaries], Collection[str]], reason: str
) -> Callable[[Draw], Draw]:
    """Decorate a figure: while the summaries have no such dataset, it is empty with a reason."""

    def decorate(draw: Draw) -> Draw:
        @wraps(draw)
        def drawn(summaries: Summaries, paper: Paper) -> Artefact:
            return draw(summaries, paper) if datasets(summaries) else empty(reason)

        return drawn

    return decorate


requires_comparison = requires(compared_datasets, NOT_COMPARED)
requires_benchmark = requires(
    bench_datasets, "No dataset of the benchmark is both tuned and run yet."
)


def empty(reason: str) -> Artefact:
    """Return an empty figure with a reason."""
    with style():
        figure, (axis,) = panels(1, 1, height=1.0)
        axis.axis("off")
        axis.text(0, 0.5, reason)
    return Artefact(pd.DataFrame({"scheme": []}), figure, reason, (reason,))


def draw_bands(
    table: pd.DataFrame,
    value: str,
    axis_label: str,
    datasets: int,
    remark: Callable[[pd.Series], str],
    value_of_md: float | None = 1.0,
    smallest_first: bool = False,
) -> Figure:
    """Draw points with bands, a row for each sampler and a panel for each measure.

    Parameters
    ----------
    table : DataFrame
        Columns ``measure``, ``scheme``, `value`, ``low``, ``high``, ``sets``; optionally ``worst``,
        the value on the worst dataset, and ``reached`` and ``runs``.
    axis_label : str
    datasets : int
        Number of datasets; samplers with fewer say so.
    remark : callable
        Text at the right of a row.
    value_of_md : float, optional
        Position of a dotted line.
    smallest_first : bool
        Whether the smallest value in rounds is on top, not the largest.
    """
    rounds = table[table["measure"] == "rounds"]
    rounds = rounds.sort_values([value, "scheme"], ascending=not smallest_first)
    order, rows = rounds["scheme"].tolist(), np.arange(len(rounds))
    with style(), mpl.rc_context({"figure.constrained_layout.w_pad": 0.12}):
        figure, axes = panels(1, 3, width=11.6, height=1.2 + 0.26 * len(order), sharey=True)
        for axis, measure, colour in zip(axes, MEASURES, (BLUE, ORANGE, VERMILION), strict=True):
            part = table[table["measure"] == measure].set_index("scheme").loc[order]
            axis.hlines(rows, part["low"], part["high"], color=colour, linewidth=4, alpha=0.35)
            axis.plot(part[value], rows, "o", color=colour, markersize=4.5)
            if "worst" in part:
                axis.plot(part["worst"], rows, "|", color=BLACK, markersize=6)
            if value_of_md is not None:
                axis.axvline(value_of_md, color=BLACK, linestyle=":", linewidth=1.0)
            axis.set_xlim(min(0, part[value].min()), 1 if value == "probability" else None)
            axis.grid(axis="x")
            for row, (_, cells) in zip(rows, part.iterrows(), strict=True):
                position, coordinates = (1.01, row), ("axes fraction", "data")
                axis.annotate(
                    remark(cells), position, xycoords=coordinates, va="center", fontsize=7.5
                )
            axis.set(title=measure, xlabel=axis_label)
        axes[0].set_yticks(rows, [_row_label(row, datasets) for row in rounds.to_dict("records")])
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if name not in NAMES:  # a user's sampler
                tick.set(color=VERMILION, fontweight="bold")
    return figure


def mean_rank_artefact(table: pd.DataFrame, datasets: int, notes: Sequence[str]) -> Artefact:
    """Draw mean ranks over datasets with bars of the critical difference.

    Parameters
    ----------
    table : DataFrame
        Columns ``measure``, ``scheme``, ``mean_rank``, ``low`` and ``high``.
    datasets : int
        Number of datasets.
    notes : sequence of str
    """
    figure = draw_bands(
        table,
        "mean_rank",
        "mean rank",
        datasets,
        lambda row: f"{row['mean_rank']:.2f}",
        value_of_md=None,
        smallest_first=True,
    )
    alt = "Mean rank of each sampler over the datasets, with bars of the critical difference."
    return Artefact(table, figure, alt=alt, notes=tuple(notes))


def _row_label(row: Mapping[Any, Any], datasets: int) -> str:
    """Name a sampler, with its number of datasets if not all, and the runs that missed."""
    extra = [] if row["sets"] == datasets else [f"{row['sets']} datasets"]
    if missed := row.get("runs", 0) - row.get("reached", 0):
        extra.append(f"{missed} of {row['runs']} missed")
    return label(row["scheme"]) + (f" ({', '.join(extra)})" if extra else "")


def rank_text(row: pd.Series) -> str:
    """Format a rank, with its interval if it has several values."""
    if np.isnan(row["rank"]):
        return "–"
    if row["rank_low"] == row["rank_high"]:
        return f"{row['rank']:g}"
    return f"{row['rank']:g} ({row['rank_low']:g}–{row['rank_high']:g})"
