"""Style of figures: fonts, palette, panels, legends, and marks of numbers that a paper prints."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import Formatter

from fedsampling.base.text import grouped

# Okabe and Ito's palette, which colour-blind readers can distinguish.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
# For samplers that have no own colour.
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, "#777777", "#8A6D00")
# Colours of samplers in all figures and in the explorer.  Samplers that no figure shows together
# may share a colour.
SCHEMES = {
    "full": BLACK,
    "md": BLUE,
    "uniform": VERMILION,
    "fedavg": VERMILION,
    "random": VERMILION,
    "poisson": ORANGE,
    "binomial": SKY,
    "optimal": PURPLE,
    "target": BLACK,
    "clustered_size": GREEN,
    "clustered_similarity": PURPLE,
    "isfedavg_optimal": GREEN,
    "isfedavg_approximate": SKY,
    "isfedavg_tracked": PURPLE,
    "delayhet_submodular": BLACK,
    "delayhet_sampling": BLUE,
    "flanp": GREEN,
    "divfl": ORANGE,
    "power_of_choice": PURPLE,
    "approx_opt": SKY,
    "luo2022": "#8A6D00",
}
# Bands from the smallest to the largest seed: identifier, and hatch.
RANGE, HATCH = "range", "////"
# One colour per class label: the palette, a grey and a light grey.
CLASSES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK, "#8c8c8c", "#d9d9d9")

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
    "axes.prop_cycle": cycler(linestyle=["-", "--", ":"])
    * cycler(color=[BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK]),
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Line:
    """How a sampler is drawn in a paper's figures."""

    label: str
    colour: str
    variant: bool = False  # dashed and without a band: a variant of another curve


class Thousands(Formatter):
    """Labels of ticks as another formatter writes them, with thousands separators."""

    def __init__(self, formatter: Formatter) -> None:
        self.formatter = formatter

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of one tick."""
        return grouped(self.formatter(x, pos))

    def set_locs(self, locs: Any) -> None:
        """Tell the other formatter where the ticks are."""
        self.formatter.set_locs(locs)

    def get_offset(self) -> str:
        """Return what the other formatter writes at the end of the axis."""
        return self.formatter.get_offset()


@contextmanager
def style() -> Iterator[None]:
    """Apply the project's style, with a backend that needs no screen."""
    mpl.use("Agg")
    with mpl.rc_context(STYLE):
        yield


@contextmanager
def panels(
    rows: int, columns: int, width: float = 7.2, height: float = 3.4, **shared: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure of `rows` × `columns` axes, in inches, and its axes row by row, to draw in.

    The project's style applies within. `shared` is passed to ``Figure.subplots``.
    """
    with style():
        figure = Figure(figsize=(width, height))
        yield figure, list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())


def absent(axes: Axes) -> None:
    """Print a note in a panel without curves."""
    axes.text(0.5, 0.5, "not run at this scale", ha="center", transform=axes.transAxes)
    axes.set(xticks=[], yticks=[])


_first_labels: ContextVar[Sequence[str]] = ContextVar("first_labels", default=())


@contextmanager
def legends_beginning_with(labels: Sequence[str]) -> Iterator[None]:
    """Let legends below the panels begin with these labels, in this order."""
    token = _first_labels.set(labels)
    try:
        yield
    finally:
        _first_labels.reset(token)


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int = 6) -> None:
    """Add one legend below all panels, with each label once, and explain hatched bands."""
    entries: dict[str, Any] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    if any(band.get_gid() == RANGE for panel in axes for band in panel.collections):
        entries["smallest to largest seed"] = Patch(
            facecolor="#dddddd", edgecolor="#999999", linewidth=0, hatch=HATCH
        )
    labels = [label for label in _first_labels.get() if label in entries]
    labels += [label for label in entries if label not in labels]
    figure.legend(
        [entries[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=min(columns, len(entries)),
    )


LABEL = "paper (printed)"
_shows_printed: ContextVar[bool] = ContextVar("shows_printed", default=True)


@contextmanager
def without_printed() -> Iterator[None]:
    """Leave out the numbers that a paper prints, in figures of runs with other settings."""
    token = _shows_printed.set(False)
    try:
        yield
    finally:
        _shows_printed.reset(token)


def printed_level(axes: Axes, value: float, **looks: Any) -> None:
    """Draw a printed number as a horizontal line."""
    if not _shows_printed.get():
        return
    looks = {"color": BLACK, "linestyle": (0, (5, 2)), "linewidth": 1.1, "label": LABEL, **looks}
    axes.axhline(value, **looks)


def printed_point(
    axes: Axes, x: float, y: float, label: str = LABEL, colour: str = BLACK, marker: str = "D"
) -> None:
    """Draw a printed number as a hollow mark."""
    if not _shows_printed.get():
        return
    looks: dict[str, Any] = {"mfc": "white", "mec": colour, "mew": 1.6, "ms": 6.5, "zorder": 3}
    axes.plot(x, y, marker, color=colour, label=label, **looks)


def printed_limit(axes: Axes, x: float, y: float, reach: float, label: str) -> None:
    """Draw a printed upper bound as a bar with an arrow down, `reach` long."""
    if not _shows_printed.get():
        return
    looks: dict[str, Any] = {"color": BLACK, "ms": 9, "mew": 1.6, "elinewidth": 1.4, "zorder": 3}
    axes.errorbar(x, y, reach, uplims=True, fmt="_", label=label, **looks)


def printed_words(axes: Axes, x: float, y: float, text: str, **looks: Any) -> None:
    """Label a mark with the number that the paper prints."""
    if _shows_printed.get():
        axes.text(x, y, text, **looks)
