"""Histories as curves: ``fs.plot``."""

from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from fedsampling.base.errors import InputError
from fedsampling.evidence.histories import Histories, by_label, diverged_runs
from fedsampling.evidence.scores import curve
from fedsampling.report.drawing.curves import band, mark_divergence
from fedsampling.report.drawing.style import STYLE

if TYPE_CHECKING:
    import pandas as pd

LABELS = {"rounds": "round", "bits": "bits sent by clients", "seconds": "seconds"}
# Where colours and dashes repeat, lines get marks, some on each.
MARKERS, MARKS = ("", "o", "s", "^", "v", "D", "X", "P"), 8
# Columns of a comparison whose numbers have the same decimals.
TOGETHER = (("value", "low", "high"), ("difference", "difference_low", "difference_high"))


def plot(
    history: "pd.DataFrame | Histories",
    x: str = "rounds",
    y: str = "accuracy",
    axes: Axes | None = None,
) -> Axes:
    """Plot a metric against rounds, bits or seconds: the mean over seeds and its 95 % band.

    The mean ends in a cross before the round in which the first run diverged; the legend says how
    many runs did.

    Parameters
    ----------
    history : DataFrame, or mapping of str to DataFrame
        Result of :func:`fedsampling.train`, or several results by label.
    x : {"rounds", "bits", "seconds"}
        Costs add up over rounds and are means over seeds; seconds need ``delays``.
    y : str
        A metric of the history.
    axes : matplotlib Axes, optional
        Axes to draw into; by default, new axes.

    Returns
    -------
    matplotlib Axes
        Save with ``.figure.savefig("curves.pdf")``.

    Raises
    ------
    InputError
        If the history has no such metric or cost, or if `axes` are no axes of matplotlib.

    Examples
    --------
    >>> import fedsampling as fs
    >>> data = fs.load("mnist", "by_digit", data="embedded")
    >>> work = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 2}
    >>> history = fs.train(data, fs.scheme("md", m=5), seeds=3, **work)
    >>> fs.plot({"MD": history}, y="loss").figure.savefig("loss.png")
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    if axes is not None and not isinstance(axes, Axes):
        raise InputError(f"axes: {axes!r:.60} is invalid; must be one Axes of matplotlib")
    histories = by_label(history)
    curves = {
        _plain(_with_divergence(label, rows)): curve(rows, x, y)
        for label, rows in histories.items()
    }
    with mpl.rc_context(STYLE):
        if axes is None:
            axes = plt.subplots(figsize=(6, 3.5))[1]
        for number, (label, points) in enumerate(curves.items()):
            marker = MARKERS[number // len(STYLE["axes.prop_cycle"]) % len(MARKERS)]
            marks: dict[str, Any] = {"marker": marker, "markevery": max(len(points) // MARKS, 1)}
            (line,) = axes.plot(points["x"], points["mean"], label=label or None, **marks)
            colour = line.get_color()  # text, or a tuple in other styles
            band(axes, points["x"], points["low"], points["high"], label, colour)
            mark_divergence(axes, points["x"], points["mean"], label, colour)
        axes.set(xlabel=LABELS[x], ylabel=_plain(y.replace("_", " ")))
        if any(curves):
            axes.legend()
    return axes


def _plain(text: str) -> str:
    """Keep matplotlib from reading dollar signs as formulas, and from hiding a first underscore."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text  # a space of no width


def _with_divergence(label: str, history: "pd.DataFrame") -> str:
    """Append the number of diverged runs, if there are any, to a curve's label."""
    if not (lost := diverged_runs(history)):
        return label
    note = f"{lost} of {history['seed'].nunique()} runs diverged"
    return f"{label} ({note})" if label else note
