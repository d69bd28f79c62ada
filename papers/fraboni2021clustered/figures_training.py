"""Learning curves of fraboni2021clustered: Figures 1, 2 and 6 to 10.

The paper smooths the training loss on CIFAR-10 with a rolling mean; here each run is smoothed
before the mean over seeds is taken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import Panel, divergences, learning_grid, only, rolling
from fedsampling.report.drawing.style import Line, printed_level, printed_words

from .lines import LINES, MEASURES, by_alpha

PANELS = {
    "clients": "distinct clients",
    "labels": "distinct digits",
    "loss": "training loss",
    "accuracy": "test accuracy",
    "loss_std": "std of training loss over clients",
    "accuracy_std": "std of test accuracy over clients",
}
SMOOTHED = "training loss, rolling mean"


class PanelRuns(NamedTuple):
    """The runs of a panel, or of a row of panels."""

    title: str
    summary: Summary
    case: str
    lines: Mapping[str, Line]


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: representation, loss, accuracy and both spreads over clients, all schemes."""
    summary = summaries["mnist"]
    curves = only(summary, PANELS).curves
    curves = curves[curves["at"] >= 0]
    m = summary.setting("m", sampler="md")
    counts = curves["metric"].isin(("clients", "labels"))  # of the m clients of a round
    curves.loc[counts, ["low", "high"]] = curves.loc[counts, ["low", "high"]].clip(0, m)
    lines = {"fedavg": LINES["fedavg"], **LINES}  # ours, behind the paper's curves
    grid = [Panel(curves, lines, metric, title=title) for metric, title in PANELS.items()]
    figure, axes = learning_grid(grid, 3, width=11.4, height=5.8, sharex=True)
    for line in axes[1].lines:  # three curves of the same height, MD in front
        line.set(linewidth=0.8, zorder=3 if line.get_label() == LINES["md"].label else 2)
    digits = [paper.reported(f"{end}_digits") for end in ("least", "most")]
    for count in digits:
        printed_level(axes[1], count)
    words = f"paper: MD generally {digits[0]:g} to {digits[1]:g}"
    right = axes[1].get_xlim()[1]
    printed_words(axes[1], right, digits[1] + 0.1, words, ha="right", fontsize=8)
    return Artefact(
        curves.drop(columns="case"),
        figure,
        alt="Six panels against rounds for MD, Algorithms 1 and 2, target and FedAvg sampling: "
        "distinct clients, distinct digits, training loss, test accuracy and their standard "
        "deviations over clients.",
        notes=divergences(summary, LINES),
    )


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: smoothed loss above accuracy, a column per α."""
    summary = only(summaries["alpha"], ("loss", "accuracy", "diverged_at"))
    smooth, raw = _smooth(summary, paper), _raw(summary)
    cases = by_alpha(summary)
    grid = [
        Panel(smooth, LINES, "loss", case, f"α = {alpha:g}", SMOOTHED)
        for alpha, case in cases.items()
    ]
    grid += [Panel(raw, LINES, "accuracy", case, ylabel="test accuracy") for case in cases.values()]
    width = max(2.7 * len(cases), 5.2)
    figure, _ = learning_grid(grid, len(cases), width, height=5.4, sharex="col")
    return Artefact(
        _stacked({"loss, rolling mean": (smooth, "loss"), "accuracy": (raw, "accuracy")}),
        figure,
        alt="Training loss and test accuracy on CIFAR-10 against rounds, a column for each α.",
        notes=divergences(summary, LINES),
    )


def figure6(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 6: measures of similarity, smoothed above raw."""
    summary = only(summaries["measures"], ("loss", "diverged_at"))
    curves = {"rolling mean": _smooth(summary, paper), "raw": _raw(summary)}
    lines = {name: LINES[name] for name in ("md", "algorithm1")} | MEASURES
    grid = [Panel(rows, lines, ylabel=f"training loss, {name}") for name, rows in curves.items()]
    figure, _ = learning_grid(grid, 1, width=5.6, height=6.4, legend=2, sharex=True)
    return Artefact(
        _stacked({f"loss, {name}": (rows, "loss") for name, rows in curves.items()}),
        figure,
        alt="Training loss of MD and clustered sampling with three measures of similarity.",
        notes=divergences(summary, lines),
    )


def figure7(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 7: the runs of :func:`figure2` as measured, a row per α."""
    summary = only(summaries["alpha"], ("loss", "accuracy", "diverged_at"))
    return _loss_and_accuracy(
        [
            PanelRuns(f"α = {alpha:g}", summary, case, LINES)
            for alpha, case in by_alpha(summary).items()
        ],
        "Training loss and test accuracy on CIFAR-10 against rounds, a row for each α.",
    )


def figure8(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 8: smoothed loss for few and many local steps, few and many clients."""
    cells = _work_and_clients(summaries, paper)
    grid = [
        Panel(_curves_of(_smooth(runs, paper), case, lines), lines, "loss", case, title, SMOOTHED)
        for title, runs, case, lines in cells
    ]
    figure, _ = learning_grid(grid, 2, width=8.6, height=6.0)
    return Artefact(
        _stacked({f"loss, {panel.title}": (panel.curves, "loss") for panel in grid}),
        figure,
        alt="Smoothed training loss for two numbers of local steps and of sampled clients.",
        notes=_divergences(cells),
    )


def figure9(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 9: loss and accuracy of the runs of :func:`figure8` as measured."""
    return _loss_and_accuracy(
        _work_and_clients(summaries, paper),
        "Training loss and test accuracy for two numbers of local steps and of sampled clients.",
    )


def _work_and_clients(summaries: Summaries, paper: Paper) -> list[PanelRuns]:
    """Return the panels of Figures 8 and 9: each number of local steps N, then of clients m."""
    work, clients = (
        only(summaries[name], ("loss", "accuracy", "diverged_at")) for name in ("work", "clients")
    )
    m = work.setting("m", sampler="md")
    cells = [
        PanelRuns(f"N = {work.setting('work.steps', case)}, m = {m}", work, case, LINES)
        for case in work.settings["cases"]
    ]
    case = by_alpha(clients)[paper.reported("alpha_of_figure8")]
    steps = clients.setting("work.steps", case)
    for m in sorted({sampler["m"] for sampler in clients.settings["samplers"].values()}):
        lines = {f"{name}-{m}": line for name, line in LINES.items()}
        cells.append(PanelRuns(f"N = {steps}, m = {m}", clients, case, lines))
    return cells


def figure10(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 10: loss under FedProx, smoothed and as measured."""
    summary = only(summaries["prox"], ("loss", "diverged_at"))
    curves = {"rolling mean": _smooth(summary, paper), "raw": _raw(summary)}
    grid = [Panel(rows, LINES, title=name, ylabel="training loss") for name, rows in curves.items()]
    figure, _ = learning_grid(grid, 2, width=8.6, height=3.8, sharey=True)
    return Artefact(
        _stacked({f"loss, {name}": (rows, "loss") for name, rows in curves.items()}),
        figure,
        alt="Training loss with FedProx against rounds, smoothed and raw.",
        notes=divergences(summary, LINES),
    )


def _loss_and_accuracy(cells: Sequence[PanelRuns], alt: str) -> Artefact:
    """Draw loss and accuracy as measured, a row for each cell."""
    grid, parts = [], {}
    for title, summary, case, lines in cells:
        curves = _curves_of(_raw(summary), case, lines)
        for metric, label in (("loss", "training loss"), ("accuracy", "test accuracy")):
            above = title if metric == "loss" else ""
            grid.append(Panel(curves, lines, metric, case, above, label))
            parts[f"{metric}, {title}"] = curves, metric
    figure, _ = learning_grid(grid, 2, width=8.6, height=2.2 * len(cells) + 0.8)
    return Artefact(_stacked(parts), figure, alt=alt, notes=_divergences(cells))


def _smooth(summary: Summary, paper: Paper) -> pd.DataFrame:
    rounds = int(paper.reported("rounds_of_the_rolling_mean"))
    return rolling(only(summary, ("loss",)), rounds).curves


def _raw(summary: Summary) -> pd.DataFrame:
    return only(summary, ("loss", "accuracy")).curves


def _curves_of(curves: pd.DataFrame, case: str, lines: Mapping[str, Line]) -> pd.DataFrame:
    return curves[(curves["case"] == case) & curves["sampler"].isin(lines)]


def _stacked(parts: Mapping[str, tuple[pd.DataFrame, str]]) -> pd.DataFrame:
    """Stack the data of all panels, with their names: of each, the rows of a metric."""
    shown = [
        curves[curves["metric"] == metric].drop(columns="metric").assign(shown=name)
        for name, (curves, metric) in parts.items()
    ]
    return pd.concat(shown, ignore_index=True)


def _divergences(cells: Sequence[PanelRuns]) -> tuple[str, ...]:
    """Return the divergences of all panels, each once."""
    sentences: dict[str, None] = {}
    for _, summary, case, lines in cells:
        runs = replace(summary, rows=_curves_of(summary.rows, case, lines))
        sentences |= dict.fromkeys(divergences(runs, lines))
    return tuple(sentences)
