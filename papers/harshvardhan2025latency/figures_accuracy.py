"""Figure 3 of Harshvardhan et al. 2025 as times to a target accuracy, beside the paper's."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from fedsampling.base.text import listed, show
from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import (
    BLACK,
    LABEL,
    absent,
    legend_below,
    panels,
    printed_point,
    printed_words,
)

from .printed_tables import DATA, DELAYS, LINES, SEVEN, TABLES, printed
from .time_to_target import course, row_runtimes, row_summary, target

OFFSET = 0.16  # rows between our times and the paper's
PANELS = (  # experiment and delays
    ("femnist", "synthetic"),
    ("shakespeare", "synthetic"),
    ("dirichlet_fashion_mnist", "nycmesh"),
    ("rotated_cifar10", "nycmesh"),
)


def figure3(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the times to the target accuracy by sampler; panels that were not run say so."""
    tables, notes = [], []
    with panels(2, 2, width=9.6, height=6.0, sharey=True) as (figure, axes):
        for letter, panel, (experiment, case) in zip("abcd", axes, PANELS, strict=True):
            title = f"({letter}) {DATA[experiment]}, {DELAYS[case]}"
            if not (summary := row_summary(summaries, experiment, case)):
                panel.set_title(title)
                absent(panel)
                continue
            goal, theirs = target(paper, experiment, summaries), target(paper, experiment)
            table = row_runtimes(summaries, experiment, case, goal)
            best = course(summary, case).groupby(["sampler", "seed"])["value"].max().rename("best")
            table = table[table["sampler"].isin(SEVEN)].join(best, on=["sampler", "seed"])
            reported = printed(paper, TABLES[case])[experiment]
            _times(panel, table, reported)
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter(NullFormatter())
            both = f"{goal:g}, the paper {theirs:g}" if goal != theirs else f"{goal:g}"
            panel.set_title(f"{title}: to {both}", fontsize=9.5)
            tables.append(table.assign(data=DATA[experiment], target=goal))
            notes.append(_missing(title, table))
        axes[0].set_yticks(range(len(SEVEN)), [LINES[name].label for name in SEVEN])
        axes[0].set_ylim(len(SEVEN) - 0.5, -0.5)
        for panel in axes[2:]:
            panel.set_xlabel("runtime to the target (10³ s)")
        legend_below(figure, axes, 4)
    return Artefact(
        pd.concat(tables, ignore_index=True),
        figure,
        alt="Time to the target accuracy by sampler and dataset, beside the paper's.",
        notes=tuple(notes),
    )


def _times(axes: Axes, table: pd.DataFrame, reported: Mapping[str, Reported]) -> None:
    """Draw each sampler's times to the target and the paper's; misses where the runs end."""
    axes.plot([], [], "o", ms=6.5, color=BLACK, label="ours: mean and range of seeds")
    axes.plot([], [], ">", ms=7, mfc="none", color=BLACK, label="ours: a seed ends below")
    printed_point(axes, np.nan, np.nan, "paper, to its own target")
    for row, name in enumerate(SEVEN):
        runs, colour = table[table["sampler"] == name], LINES[name].colour
        if len(runs):
            reached = np.isfinite(runs["counted"])
            ends = runs["counted"].where(reached, runs["end"]) / 1e3
            above = row - OFFSET
            axes.hlines(above, ends.min(), ends.max(), color=colour, lw=2.2, alpha=0.4)
            looks: dict[str, Any] = {"marker": ">", "ms": 7, "mfc": "none"}
            if reached.all():
                looks = {"marker": "o", "ms": 6.5}
            axes.plot(ends.mean(), above, color=colour, **looks)
        if np.isfinite(seconds := reported[name].number):
            printed_point(axes, seconds, row + OFFSET, f"_{LABEL}", colour)
        else:
            looks = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
            printed_words(axes, 0.99, row + OFFSET, "paper: N/A", fontsize=8, **looks)


def _missing(title: str, table: pd.DataFrame) -> str:
    """Name the samplers that miss the target, with their runs and their best accuracy."""
    missed = table[np.isinf(table["counted"])]
    if missed.empty:
        return f"{title}: all runs reach the target."
    parts = []
    for name in SEVEN:
        runs = missed[missed["sampler"] == name]
        if len(runs):
            seeds = (table["sampler"] == name).sum()
            parts.append(
                f"{LINES[name].label} ({len(runs)} of {seeds}, best {show(runs['best'].max(), 2)})"
            )
    return f"{title}: runs that miss the target: {listed(parts)}."
