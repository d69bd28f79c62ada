"""Names and drawings that several figures of the cross matrix share."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedsampling.experiments.cross_matrix import MEASURES
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Draw, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, ORANGE, VERMILION, panels, style
from fedsampling.report.names import NAMES, display_name

from .costs import compared_datasets

NOT_COMPARED = "No dataset is both tuned and compared yet."
LEAST_SPEED_UP = 0.2  # smaller speed-ups are triangles at the edge of the figure
# Names of the measures in tables, and what they are divided by.
UNITS = {"rounds": ("rounds", 1.0), "bits": ("Mbit sent by clients", 1e6), "seconds": ("s", 1.0)}


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


def by_dataset(cells: pd.DataFrame) -> pd.DataFrame:
    """Arrange cells as a table of samplers and datasets.

    `cells` has columns ``scheme`` (the label), ``title`` and ``cell``.
    """
    wide = cells.pivot(index="scheme", columns="title", values="cell").fillna("–")
    wide = wide.sort_index(key=lambda names: names.str.casefold())[cells["title"].unique()]
    return wide.rename_axis(columns=None).reset_index()


def requires_comparison(draw: Draw) -> Draw:
    """Decorate a drawing: without a dataset that is tuned and run, it is empty with a reason."""

    def drawn(summaries: Summaries, paper: Paper) -> Artefact:
        if compared_datasets(summaries):
            return draw(summaries, paper)
        with style():
            figure, (axis,) = panels(1, 1, height=1.0)
            axis.axis("off")
            axis.text(0, 0.5, NOT_COMPARED)
        return Artefact(pd.DataFrame({"scheme": []}), figure, NOT_COMPARED, (NOT_COMPARED,))

    drawn.__name__, drawn.__doc__ = draw.__name__, draw.__doc__
    return drawn


def draw_bands(table: pd.DataFrame, families: int) -> Figure:
    """Draw speed-ups with intervals, a row for each sampler and a panel for each measure.

    `table`: columns ``measure``, ``scheme``, ``speed_up``, ``low``, ``high``, ``worst``, ``rank``,
    ``families``, ``reached`` and ``runs``. `families`: number of families; samplers with fewer say
    so.
    """
    rounds = table[table["measure"] == "rounds"].sort_values(["speed_up", "scheme"])
    order, rows = rounds["scheme"].tolist(), np.arange(len(rounds))
    with style(), mpl.rc_context({"figure.constrained_layout.w_pad": 0.12}):
        figure, axes = panels(1, 3, width=11.6, height=1.2 + 0.26 * len(order), sharey=True)
        for axis, measure, colour in zip(axes, MEASURES, (BLUE, ORANGE, VERMILION), strict=True):
            part = table[table["measure"] == measure].set_index("scheme").loc[order]
            axis.hlines(rows, part["low"], part["high"], color=colour, linewidth=4, alpha=0.35)
            axis.plot(part["speed_up"], rows, "o", color=colour, markersize=4.5)
            axis.plot(part["worst"], rows, "|", color=BLACK, markersize=6)
            off_scale = part["speed_up"].to_numpy() < LEAST_SPEED_UP
            edge = np.full(off_scale.sum(), LEAST_SPEED_UP)
            axis.plot(edge, rows[off_scale], "<", color=colour, markersize=6)
            axis.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.0)
            axis.set(title=f"{measure}; right: rank", xlabel="speed-up over MD")
            axis.set(xscale="log", xlim=(LEAST_SPEED_UP, 5))
            axis.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
            axis.minorticks_off()
            axis.grid(axis="x")
            for row, (_, cells) in zip(rows, part.iterrows(), strict=True):
                rank = "" if np.isnan(cells["rank"]) else f"{cells['rank']:g}"
                place, coordinates = (1.01, row), ("axes fraction", "data")
                axis.annotate(rank, place, xycoords=coordinates, va="center", fontsize=7.5)
        axes[0].set_ylim(-0.7, len(order) - 0.3)
        axes[0].set_yticks(rows, [_row_label(row, families) for row in rounds.to_dict("records")])
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if name not in NAMES:  # a user's sampler
                tick.set(color=VERMILION, fontweight="bold")
    return figure


def _row_label(row: dict[Any, Any], families: int) -> str:
    """Name a sampler, with its number of families if not all, and the runs that missed."""
    extra = [] if row["families"] == families else [f"{row['families']} families"]
    if missed := row["runs"] - row["reached"]:
        extra.append(f"{missed} of {row['runs']} missed")
    return label(row["scheme"]) + (f" ({', '.join(extra)})" if extra else "")
