"""Tables 1, 2 and 3a to 3c of harshvardhan2025latency."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.evidence.numbers import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .runtimes import (
    CLOCKS,
    DATA,
    LINES,
    PROPOSED,
    SWEEPS,
    TABLES,
    listed_means,
    main_reading,
    mean_runtimes,
    nan_if_infinite,
    number_or_na,
    printed,
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
    """Tabulate Table 2: runtimes on NYCMesh."""
    return _runtime_table(summaries, paper, "nycmesh")


def _runtime_table(summaries: Summaries, paper: Paper, case: str) -> Artefact:
    rows, data, notes, absent = [], [], [], []
    for experiment, reported in printed(paper, TABLES[case]).items():
        name, goal = DATA[experiment], target(paper, experiment)
        head = {"data": name, "target": f"{goal:g}"}
        summary = row_summary(summaries, experiment, case)
        table = row_runtimes(summaries, experiment, case, goal)
        if summary is None or table.empty:
            absent.append(name)
            head["scale"] = "not run"
            rows.append({**head, "clock": "–", **_cells_by_sampler(table, "all", reported)})
            data += _numbers_by_sampler({**head, "clock": "paper's"}, table, "all", reported)
            continue
        head["scale"] = str(summary.provenance.get("scale", "paper"))
        limit = _time_limit(summary, case)
        for clock, label in CLOCKS.items():
            numbers = reported if clock == "counted" else {}
            row = {**head, "clock": label}
            rows.append(row | _cells_by_sampler(table, clock, numbers, limit))
            data += _numbers_by_sampler(row, table, clock, numbers, limit)
        rounds = listed_means(mean_runtimes(table, case, "rounds"), number_or_na)
        notes.append(f"{name}: rounds to the target, mean over seeds: {rounds}.")
        notes += _missed_notes(table, name, limit, int(summary.setting("rounds", case)))
    if absent:
        notes.append(f"Not run, only the paper's values are shown: {', '.join(absent)}.")
    notes.append(
        "N/A: some runs did not reach the target; > 1.5: runs were stopped at this time limit "
        "before the target. Runs end at the target, at their time limit, or after all rounds. The "
        "paper's seconds exclude warm-up rounds and candidates' losses; the row “everything” "
        "includes them. Dash: sampler not run."
    )
    return Artefact(pd.DataFrame(data), table=pd.DataFrame(rows), notes=tuple(notes))


def _cells_by_sampler(
    table: pd.DataFrame, clock: str, reported: Mapping[str, Reported], limit: float = np.inf
) -> dict[str, str]:
    """Format a row: each sampler's 10³ s, the smallest marked, and the paper's in brackets.

    If all runs that missed the target ended at the time limit, the limit is shown.
    """
    shortest = table.groupby("sampler")[clock].mean().min()
    cells = {}
    for name in LINES:
        runs = table[table["sampler"] == name]
        missed = runs[~np.isfinite(runs["counted"])]
        text = _seconds(runs[clock] / 1e3) if len(runs) else "–"
        if clock == "counted" and len(missed) and (missed["end"] >= limit).all():
            text = f"> {show(limit / 1e3)}"
        if np.isfinite(shortest) and runs[clock].mean() == shortest:
            text += " *"
        if name in reported:
            text += f" ({reported[name].value})"
        cells[HEADS[name]] = text
    return cells


def _numbers_by_sampler(
    head: Mapping[str, str],
    table: pd.DataFrame,
    clock: str,
    reported: Mapping[str, Reported],
    limit: float = np.inf,
    unit: float = 1e3,
) -> list[dict[str, Any]]:
    """Return a row's numbers by sampler; seconds are empty if any run misses the target."""
    rows = []
    for name in LINES:
        runs = table[table["sampler"] == name]
        if runs.empty and name not in reported:
            continue
        reached = np.isfinite(runs["counted"])
        seconds = runs[clock] if reached.all() else runs[clock][:0]
        rows.append(
            {
                **head,
                "scheme": HEADS[name],
                "seconds": seconds.mean(),
                "sd": round(seconds.std(), 9),
                "runs": len(runs),
                "reached": int(reached.sum()),
                "cut_off": nan_if_infinite(limit),
                "paper_seconds": nan_if_infinite(unit * reported[name].number)
                if name in reported
                else np.nan,
            }
        )
    return rows


def _time_limit(summary: Summary, case: str) -> float:
    """Return the time limit of a case's runs in seconds; infinite if there is no limit."""
    try:
        return float(summary.setting("until.seconds", case) or np.inf)
    except (KeyError, TypeError):
        return np.inf


def _missed_notes(table: pd.DataFrame, data: str, limit: float, rounds: int) -> list[str]:
    """List the samplers whose runs missed the target, by what ended the runs."""
    missed = table[~np.isfinite(table["counted"])]
    sentences = []
    endings = ((True, f"at the time limit of {limit:,.0f} s"), (False, f"after {rounds} rounds"))
    for over, ending in endings:
        runs = missed[(missed["end"] >= limit) == over].groupby("sampler").size()
        run_counts = listed_means(
            {str(name): float(n) for name, n in runs.items()}, lambda n: f"{n:g}"
        )
        if run_counts:
            sentences.append(f"{data}: runs that ended {ending}, before the target: {run_counts}.")
    return sentences


def table3a(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3a: runtimes by the greatest rotation of Rotated MNIST."""
    return _sweep_table(summaries, paper, "table3a", "greatest rotation (°)")


def table3b(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3b: runtimes by the greatest link speed on Dirichlet MNIST."""
    return _sweep_table(summaries, paper, "table3b", "greatest speed (MB/s)")


def table3c(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3c: runtimes by target accuracy of Dirichlet CIFAR-10."""
    values = {
        goal: runtimes(summaries["dirichlet_cifar10"], float(goal))
        for goal in printed(paper, "table3c")
    }
    return _by_value(values, printed(paper, "table3c"), "target", "the target")


def _sweep_table(summaries: Summaries, paper: Paper, table: str, name: str) -> Artefact:
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
        cells, note = _cells_of_proposed(table, printed[value])
        rows.append({name: value} | cells)
        ours = table[table["sampler"].isin(list(PROPOSED))]
        data += _numbers_by_sampler({name: value}, ours, "counted", printed[value], unit=1.0)
        notes.append(f"{value}: {note}")
    return Artefact(
        pd.DataFrame(data),
        table=pd.DataFrame(rows),
        notes=(f"Rounds to {goal}; {'; '.join(notes)}.",),
    )


def _cells_of_proposed(
    table: pd.DataFrame, reported: Mapping[str, Reported]
) -> tuple[dict[str, str], str]:
    """Format the seconds of both proposed samplers with the paper's, and list their rounds."""
    cells, rounds = {}, {}
    for scheme in PROPOSED:
        runs = table[table["sampler"] == scheme]
        if len(runs):
            rounds[scheme] = float(runs["rounds"].mean())
        text = _seconds(runs["counted"]) if len(runs) else "–"
        cells[HEADS[scheme]] = f"{text} ({reported[scheme].value})"
    return cells, listed_means(rounds, number_or_na) or "not run"


def _seconds(values: pd.Series) -> str:
    """Format mean and standard deviation; N/A if a run did not reach the target."""
    if not np.isfinite(values).all():
        return "N/A"
    spread = round(float(values.std()), 9) if len(values) > 1 else np.nan
    return f"{show(values.mean())} ± {show(spread, 2)}"
