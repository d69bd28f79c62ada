"""How figures look: one style, one colour per scheme, one way to draw a learning curve."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette: distinguishable without colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"

STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.4,
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK]),
    "figure.constrained_layout.use": True,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw within the project's style; the backend needs no screen."""
    mpl.use("Agg")
    with mpl.rc_context(STYLE):
        yield


def panels(
    rows: int, columns: int, width: float = 7.2, height: float = 3.4
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `rows` × `columns` axes, in inches over all, and its axes row by row."""
    figure = Figure(figsize=(width, height))
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.ravel())


def learning_curve(
    axes: Axes,
    curve: pd.DataFrame,
    label: str,
    colour: str,
    decibel: bool = False,
    variant: bool = False,
) -> None:
    """Draw mean and 95 % band of a summary's curve against rounds.

    Parameters
    ----------
    curve : DataFrame
        Rows of :attr:`Summary.curves` of one metric; columns ``at``, ``mean``, ``low``, ``high``.
    variant : bool
        Draw a dashed mean alone: a variant stands beside the curve that it varies.
    decibel : bool
        Show 10 log10 of the mean, and of the interval's ends.
    """
    curve = curve[curve["at"] >= 0].sort_values("at")
    columns: Mapping[str, np.ndarray] = {
        name: curve[name].to_numpy(np.float64) for name in ("mean", "low", "high")
    }
    if decibel:
        # A t-interval of a positive mean may reach below zero; there the band is cut at −20 dB
        # relative to the mean.
        floor = columns["mean"] / 100
        columns = {name: 10 * np.log10(np.maximum(v, floor)) for name, v in columns.items()}
    at = curve["at"].to_numpy()
    axes.plot(at, columns["mean"], label=label, color=colour, linestyle="--" if variant else "-")
    if variant:
        return
    axes.fill_between(at, columns["low"], columns["high"], color=colour, alpha=0.18, linewidth=0)
