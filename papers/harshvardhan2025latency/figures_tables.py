"""Tables 1, 2 and 3a to 3c of Harshvardhan et al. 2025: runtimes to a target."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import show
from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .printed_tables import DATA, LINES, PROPOSED, TABLES, printed
from .time_to_target import (
    CLOCKS,
    SWEEPS,
    end,
    listed_means,
    main_reading,
    mean_runtimes,
    nan_if_infinite,
    row_runtimes,
    row_summary,
    runtimes,
    sweep_runtimes,
    target,
)

HEADS = {name: line.label.removeprefix("DelayHet") for name, line in LINES.items()}
HEADS["approx_opt"] = "ApproxOpt"


def table1(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 1: runtimes with synthetic delays."""
    return _runtime_table(summaries, paper, "synthetic")


def table2(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 2: runtimes with the delays of NYC Mesh."""
    return _runtime_table(summaries, paper, "nycmesh")


def table3a(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3a: runtimes by the largest rotation."""
    return _sweep_table(summaries, paper, "table3a", "largest rotation (°)")


def table3b(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3b: runtimes by the largest link speed."""
    return _sweep_table(summaries, paper, "table3b", "largest speed (MB/s)")


def table3c(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3c: runtimes by target accuracy of Dirichlet CIFAR-10."""
    reported, runs = printed(paper, "table3c"), summaries["dirichlet_cifar10"]
    share = min(1.0, end(runs) / max(map(float, reported)))
    values = {goal: runtimes(runs, share * float(goal)) for goal in reported}
    artefact = _by_value(values, reported, "target", "the target")
    if share == 1:
        return artefact
    ours = ", ".join(show(share * float(goal), 3) for goal in reported)
    scaled = (
        f"Targets of our runs, which are smaller: {show(share)} times the paper's ({ours}). "
        f"Table 1 has the same runs at {show(end(runs))}."
    )
    return replace(artefact, notes=(*artefact.notes, scaled))


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


def _sweep_table(summaries: Summaries, paper: Paper, table: str, name: str) -> Artefact:
    """Tabulate the runtimes of a sweep; `name` heads the column of the varied setting."""
    runs = sweep_runtimes(summaries, paper, table, main_reading(summaries, table))
    values = {value: runs[runs["value"] == value] for value in printed(paper, table)}
    return _by_value(values, printed(paper, table), name, f"{target(paper, SWEEPS[table][0]):g}")


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
