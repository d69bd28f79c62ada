"""Runtime to a target, of harshvardhan2025latency: Figures 2 and 3, and Table 3d as a figure."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import band
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    LABEL,
    ORANGE,
    absent,
    legend_below,
    panels,
    printed_point,
)

from .claims_trends import BOUNDS
from .runtimes import (
    CLOCKS,
    DATA,
    DELAYS,
    LINES,
    PROPOSED,
    SWEEPS,
    TABLES,
    course,
    end,
    in_seconds,
    listed_means,
    main_reading,
    mean_runtimes,
    nan_if_infinite,
    printed,
    row_runtimes,
    row_summary,
    runtimes,
    sweep_runtimes,
    target,
)

BELOW_GOAL = 100  # Figure 2 shows losses down to the target divided by this
FIGURE3 = (  # experiment and delays of its panels
    ("femnist", "synthetic"),
    ("shakespeare", "synthetic"),
    ("dirichlet_fashion_mnist", "nycmesh"),
    ("rotated_cifar10", "nycmesh"),
)


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 2: test loss of Quadratic against runtime, in three situations."""
    parts = {
        "(a) heterogeneous data, no delays": (summaries["quadratic_no_delays"], "none"),
        "(b) IID data, NYCMesh": (summaries["quadratic_iid"], "nycmesh"),
        "(c) heterogeneous data, NYCMesh": (summaries["quadratic"], "nycmesh"),
    }
    goal = target(paper, "quadratic")
    tables, notes = [], []
    with panels(1, 3, width=11.6, height=4.2, sharey=True) as (figure, axes):
        for panel, (title, (summary, case)) in zip(axes, parts.items(), strict=True):
            track = course(summary, case)
            tables.append(track.assign(panel=title[:3]))
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
        notes=(
            *notes,
            f"Runtimes to {goal:g} are means over seeds, counted as in the paper; N/A: some run "
            "misses it.",
        ),
    )


def figure3(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 3: test accuracy against runtime; panels that were not run say so."""
    tables, notes = [], []
    with panels(1, 4, width=13.2, height=3.7) as (figure, axes):
        for letter, panel, (experiment, case) in zip("abcd", axes, FIGURE3, strict=True):
            title = f"({letter}) {DATA[experiment]}, {DELAYS[case]}"
            panel.set_title(title)
            if not (summary := row_summary(summaries, experiment, case)):
                absent(panel)
                continue
            panel.set(xlabel="runtime (10³ s)", ylabel="test accuracy")
            track = course(summary, case)
            _accuracies(panel, track, target(paper, experiment, summaries))
            _draw_printed(panel, paper, experiment, case, target(paper, experiment))
            tables.append(track.assign(data=DATA[experiment]))
            scale = summary.provenance.get("scale", "paper")
            limit = int(track["at"].max())
            notes.append(
                f"{title}: {scale} scale, up to {limit} rounds; the dotted line is the target."
            )
        legend_below(figure, axes, 8)
    return Artefact(
        pd.concat(tables, ignore_index=True),
        figure,
        alt="Test accuracy rising with runtime, by sampler and dataset.",
        notes=tuple(notes),
    )


def table3d(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Table 3d: the runtime to the target against the clients per round, by the bound on B."""
    goal = target(paper, "quadratic")
    parts = {
        label: _by_clients(summaries[name], goal)
        for name, label in BOUNDS.items()
        if name in summaries
    }
    with panels(1, 1, width=5.2, height=3.6) as (figure, (axes,)):
        for (label, table), colour in zip(parts.items(), (BLUE, ORANGE), strict=False):
            met = table[np.isfinite(table["counted"])]
            mean = met.groupby("clients")["counted"].mean() / 1e3
            if not mean.empty:
                math_label = label.replace("B_p", "$B_p$")
                axes.plot(mean.index, mean, color=colour, label=math_label)
            axes.plot(met["clients"], met["counted"] / 1e3, "o", ms=3.5, color=colour, alpha=0.6)
        axes.set_xticks(sorted({m for table in parts.values() for m in table["clients"]}))
        axes.set(xlabel="clients per round", ylabel=f"runtime to {goal:g} (10³ s)", ylim=(0, None))
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    table = pd.concat([part.assign(bound=label) for label, part in parts.items()])
    return Artefact(table, figure, alt="Runtime by clients per round.")


def _by_clients(summary: Summary, goal: float) -> pd.DataFrame:
    table = runtimes(summary, goal)
    table["clients"] = [summary.setting("m", sampler=name) for name in table["sampler"]]
    return table.sort_values(["clients", "seed"])[["clients", "seed", "rounds", *CLOCKS]]


def _losses(axes: Axes, track: pd.DataFrame, goal: float, no_delays: bool) -> None:
    """Draw the loss of every run of a case, as :func:`course` returns it."""
    unit = 1.0 if no_delays else 1e3
    for name, line in LINES.items():
        runs = track[(track["sampler"] == name) & ((track["at"] > 0) | no_delays)]
        for number, (_, run) in enumerate(runs.groupby("seed")):
            label = line.label if number == 0 else f"_{line.label}"
            x = run["counted"] / unit
            axes.plot(x, run["value"], "-", color=line.colour, lw=1.2, alpha=0.85, label=label)
    axes.axhline(goal, color=BLACK, linestyle=":", lw=1.0)
    if not no_delays:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")


def _accuracies(axes: Axes, track: pd.DataFrame, goal: float) -> None:
    """Draw the accuracy of each sampler in a case: mean over seeds, and range.

    Rounds take different times in different seeds.  At each time a seed has the accuracy of its
    last finished round; the curve ends when the first seed has no rounds left.
    """
    for name, line in LINES.items():
        runs = track[track["sampler"] == name]
        if runs.empty:
            continue
        end = runs.groupby("seed")["counted"].max().min()
        by_seed = runs.groupby(["counted", "seed"])["value"].last().unstack().ffill().loc[:end]
        x, means = by_seed.index / 1e3, by_seed.mean(axis=1)
        axes.step(x, means, where="post", color=line.colour, label=line.label)
        low, high = by_seed.min(axis=1), by_seed.max(axis=1)
        band(axes, x, low, high, line.label, line.colour, step="post")
    axes.axhline(goal, color=BLACK, linestyle=":", lw=1.0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")


def _draw_printed(axes: Axes, paper: Paper, experiment: str, case: str, goal: float) -> None:
    """Mark the runtimes of Tables 1 and 2 at the target, in the colours of the samplers."""
    for name, report in printed(paper, TABLES[case]).get(experiment, {}).items():
        if np.isfinite(report.number):
            printed_point(axes, report.number, goal, f"_{LABEL}", LINES[name].colour)
    printed_point(axes, np.nan, np.nan)  # for the legend


# Tables 1, 2 and 3a to 3c of Harshvardhan et al. 2025.


HEADS = {name: line.label.removeprefix("DelayHet") for name, line in LINES.items()}
HEADS["approx_opt"] = "ApproxOpt"


def _runtime_table(summaries: Summaries, paper: Paper, case: str) -> Artefact:
    """Tabulate the runtimes under one model of delays, in the rows that were run."""
    rows, data, notes = [], [], []
    for experiment, reported in printed(paper, TABLES[case]).items():
        name, goal = DATA[experiment], target(paper, experiment, summaries)
        theirs = target(paper, experiment)
        both = {"target": f"{goal:g} ({theirs:g})"} if goal != theirs else {}
        summary = row_summary(summaries, experiment, case)
        table = row_runtimes(summaries, experiment, case, goal)
        if summary is None or table.empty:
            continue
        scale = str(summary.provenance.get("scale", "paper"))
        head = {"data": name, "target": f"{goal:g}", "scale": scale}
        limit = end(summary, "seconds", case)
        for clock, label in CLOCKS.items():
            row = {**head, "clock": label}
            cells, numbers = _by_sampler(
                row, table, clock, reported if clock == "counted" else {}, limit
            )
            rows.append(row | both | cells)
            data += numbers
        rounds = listed_means(mean_runtimes(table, case, "rounds"), show)
        notes.append(f"{name}: rounds to the target, mean over seeds: {rounds}.")
    notes.append(
        "N/A: some runs did not reach the target. Runs end at the target, at their time limit, or "
        "after all rounds. The paper's seconds exclude warm-up rounds and candidates' losses; the "
        "row “everything” includes them. Dash: sampler not run. In brackets: the paper's numbers, "
        "and its target if the runs, being smaller, have another."
    )
    return Artefact(pd.DataFrame(data), table=pd.DataFrame(rows), notes=tuple(notes))


table1 = partial(_runtime_table, case="synthetic")
table2 = partial(_runtime_table, case="nycmesh")


def _by_sampler(
    head: Mapping[str, str],
    table: pd.DataFrame,
    clock: str,
    reported: Mapping[str, Reported],
    limit: float,
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return a row's cells and its numbers, by sampler.

    A cell has 10³ s, the smallest marked, and the paper's in brackets. `limit`: seconds at which
    runs ended.
    """
    shortest = table.groupby("sampler")[clock].mean().min()
    cells, numbers = {}, []
    for name in LINES:
        runs = table[table["sampler"] == name]
        text = _seconds(runs[clock] / 1e3) if len(runs) else "–"
        if np.isfinite(shortest) and runs[clock].mean() == shortest:
            text += " *"
        if name in reported:
            text += f" ({reported[name].value})"
        cells[HEADS[name]] = text
        if len(runs) or name in reported:
            theirs = 1e3 * reported[name].number if name in reported else np.nan
            numbers.append({**head, **_numbers(name, runs, clock, theirs, limit)})
    return cells, numbers


def _numbers(
    name: str, runs: pd.DataFrame, clock: str, theirs: float, limit: float = np.inf
) -> dict[str, Any]:
    """Return a sampler's numbers; seconds are empty if any run misses the target."""
    reached = np.isfinite(runs["counted"])
    seconds = runs[clock] if reached.all() else runs[clock][:0]
    return {
        "scheme": HEADS[name],
        "seconds": seconds.mean(),
        "sd": round(seconds.std(), 9),
        "runs": len(runs),
        "reached": int(reached.sum()),
        "cut_off": nan_if_infinite(limit),
        "paper_seconds": nan_if_infinite(theirs),
    }


def table3c(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3c: runtimes by target accuracy of Dirichlet CIFAR-10."""
    reported, runs = printed(paper, "table3c"), summaries["dirichlet_cifar10"]
    share = min(1.0, end(runs) / max(map(float, reported)))
    values = {goal: runtimes(runs, share * float(goal)) for goal in reported}
    artefact = _by_value(values, reported, "target", "the target")
    if share == 1:
        return artefact
    scaled = f"Targets of our runs, which are smaller: {show(share)} times the paper's."
    return replace(artefact, notes=(*artefact.notes, scaled))


def _sweep_table(summaries: Summaries, paper: Paper, table: str, name: str) -> Artefact:
    """Tabulate the runtimes of a sweep; `name` heads the column of the varied setting."""
    runs = sweep_runtimes(summaries, paper, table, main_reading(summaries, table))
    values = {value: runs[runs["value"] == value] for value in printed(paper, table)}
    return _by_value(values, printed(paper, table), name, f"{target(paper, SWEEPS[table][0]):g}")


table3a = partial(_sweep_table, table="table3a", name="largest rotation (°)")
table3b = partial(_sweep_table, table="table3b", name="largest speed (MB/s)")


def _by_value(
    tables: Mapping[str, pd.DataFrame],
    printed: Mapping[str, Mapping[str, Reported]],
    name: str,
    goal: str,
) -> Artefact:
    """Tabulate :func:`runtimes` of the proposed samplers by the varied setting."""
    rows, data, notes = [], [], []
    for value, table in tables.items():
        cells, rounds = {name: value}, {}
        for scheme in PROPOSED:
            runs, theirs = table[table["sampler"] == scheme], printed[value][scheme]
            if len(runs):
                rounds[scheme] = float(runs["rounds"].mean())
            text = _seconds(runs["counted"]) if len(runs) else "–"
            in_paper = f"{int(theirs.value):,}" if theirs.value.isdigit() else theirs.value
            cells[HEADS[scheme]] = f"{text} ({in_paper})"
            data.append({name: value, **_numbers(scheme, runs, "counted", theirs.number)})
        rows.append(cells)
        notes.append(f"{value}: {listed_means(rounds, show) or 'not run'}")
    return Artefact(
        pd.DataFrame(data),
        table=pd.DataFrame(rows),
        notes=(f"Rounds to {goal}; {'; '.join(notes)}.",),
    )


def _seconds(values: pd.Series) -> str:
    """Format mean and standard deviation; N/A if a run did not reach the target."""
    if not np.isfinite(values).all():
        return "N/A"
    spread = round(float(values.std()), 9) if len(values) > 1 else np.nan
    return f"{show(values.mean())} ± {show(spread, 2)}"
