"""Training curves of Chen et al. 2022: Figures 2 to 4, their best accuracy, and on other data.

Accuracy and loss against rounds and against bits sent.
"""

from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.evidence.summaries import BOUNDS
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import band, divergences
from fedsampling.report.drawing.style import legend_below, panels, printed_limit, printed_point

from .courses import BITS, LINES, course, mean_course, set_number, title

LABELS = {
    "accuracy": "validation accuracy",
    "train_loss": "local training loss",
    "best": "best validation accuracy",
}
Across = Literal["at", "bits"]
ACROSS: tuple[Across, ...] = ("at", "bits")
ARROW = 0.12  # length of the arrow below an upper bound of an accuracy


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2, or 3 or 4 from their experiments: accuracy and local training loss."""
    return _draw_training(summaries, paper, width=8.0, height=5.8)


def figure2_best(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the appendix's version of Figure 2, or 3 or 4: the best accuracy so far."""
    return _draw_training(summaries, paper, metrics=("best",), width=8.0, height=3.3)


def writers_training(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the panels of Figures 2 to 4 for other data: a column for each of several cases."""
    (summary,) = summaries.values()
    n = len(summary.settings["cases"])
    columns, rows = max(n, 2), 2 if n == 1 else 4
    width, height = 3.4 * columns, 2.4 * rows + 0.6
    return _draw_training(
        summaries, paper, columns=columns, by_case=True, width=width, height=height
    )


figure3 = figure4 = figure2
figure3_best = figure4_best = figure2_best
digits_training = shakespeare = cifar100 = writers_training


def _draw_training(
    summaries: Summaries,
    paper: Paper,
    metrics: tuple[str, ...] = ("accuracy", "train_loss"),
    columns: int = 2,
    by_case: bool = False,
    **size: float,
) -> Artefact:
    """Draw metrics against rounds, then against bits, row by row; of one or of every case."""
    (summary,) = summaries.values()
    cases = list(summary.settings["cases"]) if by_case else ["base"]
    tables = {case: mean_course(course(summary, case)) for case in cases}
    views = [(across, metric, case) for across in ACROSS for metric in metrics for case in cases]
    with panels(len(views) // columns, columns, **size) as (figure, axes):
        for panel, (across, metric, case) in zip(axes, views, strict=True):
            _draw(panel, tables[case], metric, across)
            _draw_printed(panel, paper, metric, across, set_number(summary, case))
            if by_case:
                panel.set_title(title(summary, case))
        legend_below(figure, axes)
    data = pd.concat([table.assign(case=case) for case, table in tables.items()], ignore_index=True)
    names = ", ".join(LABELS[metric] for metric in metrics)
    return Artefact(
        data if by_case else data.drop(columns="case"),
        figure,
        f"{names[0].upper()}{names[1:]} against rounds and against bits sent, by sampler.",
        ("Lines are means over runs, bands standard errors.", *divergences(summary, LINES)),
    )


def _draw(axis: Axes, table: pd.DataFrame, metric: str, across: Across) -> None:
    """Draw the mean of a metric and its standard error for each sampler that has runs."""
    for sampler, line in LINES.items():
        rows = table[(table["sampler"] == sampler) & table[metric].notna()]
        rows = rows[rows["bits"] > 0] if across == "bits" else rows
        if rows.empty:
            continue
        x = rows["at"].to_numpy(np.float64) if across == "at" else rows["bits"].to_numpy() / BITS
        mean, error = rows[metric].to_numpy(), rows[f"{metric}_se"].fillna(0).to_numpy()
        dashes = "--" if line.variant else "-"
        axis.plot(x, mean, dashes, color=line.colour, label=line.label)
        if line.variant:
            continue
        ends = BOUNDS["loss" if metric == "train_loss" else "accuracy"]
        low, high = np.clip(mean - error, *ends), np.clip(mean + error, *ends)
        band(axis, x, low, high, line.label, line.colour)
    axis.set_ylabel(LABELS[metric])
    if across == "at":
        axis.set_xlabel("communication round")
    else:
        axis.set_xscale("log", base=2)
        axis.set_xlabel("bits sent by clients, in $10^8$")


def _draw_printed(
    axis: Axes, paper: Paper, metric: str, across: Across, dataset: int | None
) -> None:
    """Mark the accuracies that the paper prints for a number of bits on Dataset 1."""
    if dataset != 1 or across != "bits" or metric == "train_loss":
        return
    budget, (optimal, others) = paper.reported("budget"), _printed(paper)
    printed_point(axis, budget, optimal / 100, "paper: optimal", marker="*")
    printed_limit(axis, budget, others / 100, ARROW, f"paper: others, below {others:g} %")


def _printed(paper: Paper) -> tuple[float, float]:
    """Return the accuracy of optimal sampling that the paper prints, and the others' limit, %."""
    return paper.reported("accuracy"), paper.reported("accuracy_of_others")
