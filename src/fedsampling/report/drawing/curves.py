"""Learning curves, alone and in grids of panels: means over seeds, bands, and diverged runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from fedsampling.base.text import listed
from fedsampling.evidence.provenance import Summaries
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.style import (
    BLACK,
    HATCH,
    RANGE,
    Line,
    absent,
    legend_below,
    panels,
)

SEEDS = ("least", "most")
FEWEST_ROUNDS = 4  # measured rounds for a curve with a band; fewer are drawn as joined points
FEW_SEEDS = 3  # Student's factor is 4.3 for three seeds


def learning_curve(
    axes: Axes,
    curve: pd.DataFrame,
    label: str,
    colour: str,
    decibel: bool = False,
    variant: bool = False,
) -> None:
    """Draw the mean and 95 % band of a curve against rounds.

    Up to :data:`FEW_SEEDS` seeds have a hatched band, from the smallest to the largest seed: their
    t-intervals are wider than the axes. Below :data:`FEWEST_ROUNDS` rounds, points are drawn, too.
    A curve ends in a cross where a run diverges. A `variant` of another curve is only a dashed
    mean. `decibel` shows 10 log10 of the mean and of the interval's ends.
    """
    curve = curve[curve["at"] >= 0].sort_values("at")
    columns: Mapping[str, np.ndarray] = {
        name: curve[name].to_numpy(np.float64)
        for name in ("mean", "low", "high", *SEEDS)
        if name in curve
    }
    if decibel:
        # A t-interval of a positive mean can reach below zero, where the logarithm is undefined:
        # clip the band at 20 dB below the mean.
        floor = columns["mean"] / 100
        columns = {name: 10 * np.log10(np.maximum(v, floor)) for name, v in columns.items()}
    at, mean = curve["at"].to_numpy(), columns["mean"]
    unlisted: dict[str, Any] = {"color": colour, "label": f"_{label}"}
    if len(at) < FEWEST_ROUNDS:
        dots: dict[str, Any] = {"marker": "o", "mfc": "none" if variant else colour}
        axes.plot(at, mean, "--" if variant else "-", label=label, color=colour, **dots)
        axes.vlines(at, columns["low"], columns["high"], **unlisted)
        return
    axes.plot(at, mean, label=label, color=colour, linestyle="--" if variant else "-")
    mark_divergence(axes, at, mean, label, colour)
    if variant:
        return
    if columns.keys() >= set(SEEDS) and (curve["n"] <= FEW_SEEDS).all():
        lowest, highest = (columns[name] for name in SEEDS)
        band(axes, at, lowest, highest, label, colour, hatch=HATCH, gid=RANGE)
    else:
        band(axes, at, columns["low"], columns["high"], label, colour)


def mark_divergence(axes: Axes, x: Any, mean: Any, label: str, colour: Any) -> None:
    """Draw a cross at the last finite value of a curve that ends early."""
    finite = np.flatnonzero(np.isfinite(mean))
    if len(finite) and finite[-1] + 1 < len(mean):
        last = finite[-1]
        axes.plot(x[last], mean[last], "X", markersize=7, color=colour, label=f"_{label}")


def band(axes: Axes, x: Any, low: Any, high: Any, label: str, colour: Any, **options: Any) -> None:
    """Draw a curve's band; the underscore before its label keeps it out of the legend."""
    looks = {"color": colour, "alpha": 0.18, "linewidth": 0, **options}
    axes.fill_between(x, low, high, label=f"_{label}", **looks)


def learning_curves(
    axes: Axes, curves: pd.DataFrame, lines: Mapping[str, Line], metric: str, case: str = "base"
) -> None:
    """Draw a learning curve of every sampler with runs of a case, in the order of `lines`."""
    rows = curves[(curves["metric"] == metric) & (curves["case"] == case)]
    for sampler, line in lines.items():
        curve = rows[rows["sampler"] == sampler]
        if len(curve):
            learning_curve(axes, curve, line.label, line.colour, variant=line.variant)
    focus(axes)


@dataclass(frozen=True)
class Panel:
    """The learning curves of one panel: the rows of `curves` with a metric and a case.

    Samplers of `lines` without curves are omitted. `zero` draws a line there and shows bands in
    full, as differences need.
    """

    curves: pd.DataFrame
    lines: Mapping[Any, Line]
    metric: str = "loss"
    case: str = "base"
    title: str = ""
    ylabel: str = ""
    zero: bool = False

    def draw(self, axes: Axes) -> None:
        """Draw the curves, or a note if there are no data."""
        axes.set_title(self.title)
        selected = (self.curves["metric"] == self.metric) & (self.curves["case"] == self.case)
        if not (selected & self.curves["sampler"].isin(self.lines)).any():
            absent(axes)
            return
        learning_curves(axes, self.curves, self.lines, self.metric, self.case)
        if self.zero:
            axes.axhline(0, color=BLACK, linewidth=0.8)
            axes.autoscale(axis="y")


def learning_grid(
    grid: Sequence[Panel],
    columns: int,
    width: float,
    height: float,
    xlabel: str = "round",
    legend: int = 6,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Draw panels row by row, with one legend below.

    The x label is below each column, the y label wherever it differs from the panel at the left.
    `legend` is its number of columns; `shared` is passed to ``Figure.subplots``.
    """
    rows = -(-len(grid) // columns)
    with panels(rows, columns, width, height, **shared) as (figure, all_axes):
        for axes in all_axes[len(grid) :]:
            axes.set_axis_off()
        axes_of = all_axes[: len(grid)]
        for place, (axes, panel) in enumerate(zip(axes_of, grid, strict=True)):
            panel.draw(axes)
            if place % columns == 0 or panel.ylabel != grid[place - 1].ylabel:
                axes.set_ylabel(panel.ylabel)
            if place + columns >= len(grid):
                axes.set_xlabel(xlabel)
        legend_below(figure, axes_of, legend)
    return figure, axes_of


def with_interval(axes: Axes, x: ArrayLike, table: pd.DataFrame, value: str, **look: Any) -> None:
    """Draw a column against `x`, with intervals from ``low`` to ``high`` if there are any."""
    reach = np.abs(table[["low", "high"]].to_numpy() - table[[value]].to_numpy()).T
    axes.errorbar(x, table[value], np.nan_to_num(reach), capsize=2, **look)


def losses_over_grid(
    summary: Summary, losses_of: Callable[[str], ArrayLike], **settings: str
) -> pd.DataFrame:
    """Tabulate a loss over the cases of an experiment that varies some settings.

    `losses_of` maps a case to one loss per seed; `settings` are paths by column, as
    ``step="work.step"``. Losses have intervals ``low``, ``high``; they are NaN if a run diverged.
    """
    rows = []
    for case in summary.settings["cases"]:
        estimate = mean(losses_of(case))
        values = {name: float(summary.setting(path, case)) for name, path in settings.items()}
        rows.append({**values, "loss": estimate.value, "low": estimate.low, "high": estimate.high})
    return pd.DataFrame(rows)


def over_grid(
    axes: Axes, table: pd.DataFrame, x: str, label: str, colour: str, top: float = 0.0
) -> None:
    """Draw a loss over a grid; a diverged run is a cross at the height of the largest loss."""
    table = table.sort_values(x)
    with_interval(axes, table[x], table, "loss", fmt="o-", color=colour, label=label)
    lost = table[table["loss"].isna()]
    top = table["loss"].max() if len(lost) < len(table) else top
    axes.plot(lost[x], np.full(len(lost), top), "X", color=colour, markersize=7)


def grid_ticks(axes: Axes, values: Iterable[float]) -> None:
    """Make the x axis logarithmic, with a tick at each value of a grid."""
    ticks = sorted(set(values))
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def focus(axes: Axes) -> None:
    """Limit the y axis to the curves, so that wide bands do not flatten them.

    Panels that share the y axis get the same limits.  Bands from the smallest to the largest seed
    are shown in full.
    """
    shared = axes.get_shared_y_axes().get_siblings(axes)
    means = [
        np.asarray(line.get_ydata(), np.float64)
        for panel in shared
        for line in panel.lines
        if not str(line.get_label()).startswith("_")
    ]
    values = np.concatenate([np.empty(0), *means])
    values = values[np.isfinite(values)]
    if not len(values) or np.ptp(values) == 0:
        return
    room = np.ptp(values)
    edges = [
        path.vertices[:, 1]
        for panel in shared
        for band in panel.collections
        if band.get_gid() == RANGE
        for path in band.get_paths()
    ]
    extremes = np.concatenate([[values.min() - room, values.max() + room], *edges])
    low, high = np.nanmin(extremes), np.nanmax(extremes)
    axes.autoscale(axis="y")  # another panel with the same y axis may have limited it
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low), min(top, high))


def only(summary: Summary, metrics: Collection[str]) -> Summary:
    """Keep the rows of some metrics."""
    return replace(summary, rows=summary.rows[summary.rows["metric"].isin(metrics)])


def rolling(summary: Summary, rounds: int) -> Summary:
    """Replace each run's values by their mean over the last `rounds` rounds.

    The window is (at − rounds, at], shorter at the start, and at most a quarter of the case's
    rounds. Values of the whole run (``at`` = −1) are dropped. A diverged run stays diverged.
    """
    keys = ["case", "sampler", "seed", "metric"]
    rows = summary.rows[summary.rows["at"] >= 0].sort_values([*keys, "at"], kind="stable")
    quarter = dict(rows.groupby("case", observed=True)["at"].max() // 4)
    parts = []
    for (case, *_), run in rows.groupby(keys, observed=True, sort=False):
        at, value = run["at"].to_numpy(), run["value"].to_numpy()
        window = min(rounds, max(int(quarter[case]), 1))
        first = np.searchsorted(at, at - window, side="right")
        means = [value[begin : end + 1].mean() for end, begin in enumerate(first)]
        parts.append(run.assign(value=means))
    return replace(summary, rows=pd.concat(parts, ignore_index=True))


def divergences(summary: Summary, lines: Mapping[str, Line]) -> tuple[str, ...]:
    """Write one sentence for each sampler with diverged runs."""
    rows = summary.rows
    divergence_rounds = rows[rows["metric"] == "diverged_at"]
    sentences = []
    for key, runs in divergence_rounds.groupby(["case", "sampler"], observed=True, sort=False):
        lost = runs["value"][runs["value"] >= 0]
        if len(lost):
            case, sampler = map(str, key)
            name = lines[sampler].label if sampler in lines else sampler
            where = "" if case == "base" else f" ({case})"
            sentences.append(
                f"{name}{where}: {len(lost)} of {len(runs)} runs diverged, the first in round "
                f"{int(lost.min())}; its mean ends there."
            )
    return tuple(sentences)


def undrawn(summaries: Summaries, figure: bool, changes: Sequence[str]) -> Artefact:
    """Put a sentence in place of an artefact whose layout does not fit; the CSV has the curves.

    `changes`: settings that differ from ``paper.yaml``, such as ``rounds 20 (300)``, for the
    caption.
    """
    curves = pd.concat(
        [summary.curves.assign(experiment=name) for name, summary in summaries.items()],
        ignore_index=True,
    )
    reason = "The paper's layout does not fit these settings"
    why = f": {listed(list(changes))}" if changes else ""
    caption = f"{reason}{why}. The CSV has the curves, and the run explorer draws them."
    if not figure:
        return Artefact(curves, table=pd.DataFrame({"not drawn": [reason]}), caption=caption)
    with panels(1, 1, height=1.2) as (drawn, (axes,)):
        axes.set_axis_off()
        axes.text(0.5, 0.5, f"{reason}; see the run explorer.", ha="center")
    return Artefact(curves, drawn, alt=f"{reason}.", caption=caption)
