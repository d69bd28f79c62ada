"""Runtime on Quadratic: Figure 2 of Harshvardhan et al. 2025, and Table 3d as a figure."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from fedsampling.base.text import listed, show, show_range
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    GREEN,
    LABEL,
    ORANGE,
    SKY,
    legend_below,
    panels,
    printed_level,
    printed_point,
)

from .claims_clients import BOUNDS
from .printed_tables import LINES, SEVEN, TABLES, printed
from .time_to_target import (
    CLOCKS,
    course,
    in_seconds,
    listed_means,
    mean_runtimes,
    runtimes,
    target,
)

BELOW_GOAL = 100  # Figure 2 shows losses down to the target divided by this
PAPERS_PANELS = {  # samplers that the paper draws in Figure 2
    "(a)": ("random", "flanp"),
    "(b)": ("random", "divfl", "power_of_choice"),
    "(c)": SEVEN,
}


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: test loss of Quadratic against runtime, in three situations."""
    parts = {
        "(a) heterogeneous data, no delays": (summaries["quadratic_no_delays"], "none"),
        "(b) IID data, NYCMesh": (summaries["quadratic_iid"], "nycmesh"),
        "(c) heterogeneous data, NYCMesh": (summaries["quadratic"], "nycmesh"),
    }
    goal = target(paper, "quadratic")
    tables, notes, added = [], [], []
    with panels(1, 3, width=11.6, height=4.2, sharey=True) as (figure, axes):
        for panel, (title, (summary, case)) in zip(axes, parts.items(), strict=True):
            track = course(summary, case)
            letter = title[:3]
            tables.append(track.assign(panel=letter))
            drawn = [name for name in LINES if name in set(track["sampler"])]
            if more := [LINES[n].label for n in drawn if n not in PAPERS_PANELS[letter]]:
                added.append(f"{letter} {listed(more)}")
            no_delays = case == "none"
            _losses(panel, track, goal, no_delays)
            if summary is summaries["quadratic"]:
                _draw_printed(panel, paper, "quadratic", case, goal)
            panel.set(yscale="log", title=title)
            panel.set_xlabel("runtime (rounds of 1 s)" if no_delays else "runtime (10³ s)")
            means = mean_runtimes(runtimes(summary, goal), case)
            notes.append(f"{title}: {goal:g} after {listed_means(means, in_seconds)}.")
        axes[0].set_ylabel("normalised test loss")
        axes[0].set_ylim(bottom=goal / BELOW_GOAL)
        notes.append(f"Losses below {show(goal / BELOW_GOAL, 2)} are only in the CSV.")
        legend_below(figure, axes, 5)
    return Artefact(
        pd.concat(tables, ignore_index=True),
        figure,
        alt="Normalised test loss falling with runtime, by sampler, in three situations.",
        caption_end=f"Samplers added to the paper's panels: {'; '.join(added).rstrip('.')}.",
        notes=(
            *notes,
            f"Runtimes to {goal:g} are means over seeds, counted as in the paper; N/A: some run "
            "misses it.",
        ),
    )


# What Table 3d shows: both readings of the claim, and the same on one draw with SciPy's default.
BY_CLIENTS = {
    **{name: f"{label}, ten draws" for name, label in BOUNDS.items()},
    "quadratic_clients": "Assumption 3 alone, SciPy's default",
    "quadratic_clients_bounded": "B_p < 1 everywhere, SciPy's default",
}


def table3d(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Table 3d: the runtime to the target against the clients per round, by the bound on B."""
    goal = target(paper, "quadratic")
    in_table2 = printed(paper, TABLES["nycmesh"])["quadratic"]["sampling"].number
    parts = {
        label: _by_clients(summaries[name], goal)
        for name, label in BY_CLIENTS.items()
        if name in summaries
    }
    notes = []
    with panels(1, 1, width=6.0, height=4.2) as (figure, (axes,)):
        for (label, table), colour in zip(parts.items(), (BLUE, ORANGE, SKY, GREEN), strict=False):
            notes.append(f"{label}: {_reaching(table, goal)}")
            met = np.isfinite(table["counted"])
            math_label = label.replace("B_p", "$B_p$")
            of_all = table.assign(counted=table["counted"].where(met)).groupby("clients")["counted"]
            mean = of_all.mean().where(of_all.count() == of_all.size()) / 1e3
            x, missed = table["clients"], table[~met]
            # Without a run that reaches the target there is no line.
            triangle: dict[str, Any] = {"linestyle": "none", "marker": "^", "ms": 6, "mfc": "none"}
            look = {} if met.any() else triangle
            axes.plot(mean.index, mean, color=colour, label=math_label, **look)
            axes.plot(x[met], table.loc[met, "counted"] / 1e3, "o", ms=3.5, color=colour, alpha=0.6)
            axes.plot(missed["clients"], missed["end"] / 1e3, "^", ms=6, mfc="none", color=colour)
        axes.plot([], [], "^", ms=6, mfc="none", color=BLACK, label=f"end of a run above {goal:g}")
        printed_level(axes, in_table2, label="paper, Table 2")
        axes.set_xticks(sorted({m for table in parts.values() for m in table["clients"]}))
        axes.set(xlabel="clients per round", ylabel=f"runtime to {goal:g} (10³ s)", yscale="log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        legend_below(figure, [axes], 2)
    table = pd.concat([part.assign(bound=label) for label, part in parts.items()])
    return Artefact(
        table.drop(columns="end"),
        figure,
        alt="Runtime by clients per round, for both bounds on B and both solvers.",
        notes=tuple(notes),
    )


def _reaching(table: pd.DataFrame, goal: float) -> str:
    """Say how many runs reach the target, with the runtime by clients if all do."""
    met = np.isfinite(table["counted"])
    if not met.all():
        ends = show_range(table.loc[~met, "end"].round().astype(int))
        return f"{met.sum()} of {len(table)} runs reach {goal:g}; the others end after {ends} s."
    means = table.groupby("clients")["counted"].mean()
    return f"{', '.join(f'{m} clients {in_seconds(mean)}' for m, mean in means.items())}."


def _by_clients(summary: Summary, goal: float) -> pd.DataFrame:
    table = runtimes(summary, goal)
    table["clients"] = [summary.setting("m", sampler=name) for name in table["sampler"]]
    return table.sort_values(["clients", "seed"])[["clients", "seed", "rounds", *CLOCKS, "end"]]


def _losses(axes: Axes, track: pd.DataFrame, goal: float, no_delays: bool) -> None:
    """Draw the loss of every run of a case, as :func:`course` returns it."""
    unit = 1.0 if no_delays else 1e3
    for name, line in LINES.items():
        runs = track[(track["sampler"] == name) & ((track["at"] > 0) | no_delays)]
        looks: dict[str, Any] = {"lw": 1.2, "linestyle": "-", "alpha": 0.85}
        if name == "divfl":  # on top, with gaps, because it follows other samplers' lines
            looks = {"lw": 1.5, "linestyle": (0, (3, 2)), "zorder": 2.5}
        for number, (_, run) in enumerate(runs.groupby("seed")):
            label = line.label if number == 0 else f"_{line.label}"
            x = run["counted"] / unit
            axes.plot(x, run["value"], color=line.colour, label=label, **looks)
    axes.axhline(goal, color=BLACK, linestyle=":", lw=1.0)
    if not no_delays:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")


def _draw_printed(axes: Axes, paper: Paper, experiment: str, case: str, goal: float) -> None:
    """Mark the runtimes of Tables 1 and 2 at the target, in the colours of the samplers."""
    for name, report in printed(paper, TABLES[case]).get(experiment, {}).items():
        if np.isfinite(report.number):
            printed_point(axes, report.number, goal, f"_{LABEL}", LINES[name].colour)
    printed_point(axes, np.nan, np.nan)  # for the legend
