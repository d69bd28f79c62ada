"""Tables 1, 2 and 3a to 3c of harshvardhan2025latency, and readings of Quadratic's rows."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.evidence.numbers import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper, Reported
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.samplers.latency import ITERATIONS

from .claims import reading_finding
from .runtimes import (
    CLOCKS,
    DATA,
    DELAYS,
    LINES,
    PROPOSED,
    SWEEPS,
    TABLES,
    bound_in_words,
    by_problem,
    listed_means,
    mean_runtimes,
    number_or_na,
    printed,
    readings,
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
        summary = summaries.get(experiment)
        table = pd.DataFrame(columns=["case", "sampler", *CLOCKS, "end"], dtype=float)
        if summary is not None:
            table = runtimes(summary, goal)
            table = table[table["case"] == case]
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
                "cut_off": _finite(limit),
                "paper_seconds": _finite(unit * reported[name].number)
                if name in reported
                else np.nan,
            }
        )
    return rows


def _finite(number: float) -> float:
    """Return NaN, which a table leaves empty, in place of an infinite number."""
    return number if np.isfinite(number) else np.nan


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
    runs = sweep_runtimes(summaries, paper, table)
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


def flanp_rules(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate c1 and c10 (Quadratic in Tables 1 and 2) by FLANP's rule for stages."""
    draws = by_problem(summaries["quadratic_problems"], target(paper, "quadratic"))
    seconds = {case: mean_runtimes(draws, case).get("random", np.nan) for case in DELAYS}
    texts = [
        f"{show(seconds[case])} s ({DELAYS[case]})" for case in DELAYS if np.isfinite(seconds[case])
    ]
    return _by_reading(
        summaries,
        paper,
        "flanp",
        _flanp_in_words,
        f"First row: our choice. Random selection takes {' and '.join(texts)} on average over "
        f"{draws['seed'].nunique()} draws of the problem. The paper's FLANP takes 3,500 s and "
        "76,562 s.",
        "Two clients have 200 samples for 500 coefficients, ten clients have 1,000: the size of "
        "the first stage matters most, then its length.",
    )


def sampling_readings(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate c1 and c10 (Quadratic in Tables 1 and 2) by DelayHetSampling's readings."""
    note = "First row: the main reading. FLANP starts with 2 clients and has its own rule."
    return _by_reading(summaries, paper, "sampling", _sampling_in_words, note)


def quadratic_draws(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Quadratic's rows of Tables 1 and 2 over draws of the problem."""
    table = by_problem(summaries["quadratic_problems"], target(paper, "quadratic"))
    rows: list[dict[str, str]] = []
    data: list[dict[str, Any]] = []
    for case, delays in DELAYS.items():
        for name, line in LINES.items():
            runs = table[(table["case"] == case) & (table["sampler"] == name)]["counted"]
            if runs.empty:
                continue
            reached = int(np.isfinite(runs).sum())
            head = {"delays": delays, "sampler": line.label}
            seconds = {"median": runs.median(), "least": runs.min(), "most": runs.max()}
            rows.append(
                head
                | {"reached": f"{reached} of {len(runs)}"}
                | {f"{name} (s)": number_or_na(value) for name, value in seconds.items()}
            )
            data.append(
                head
                | {"reached": reached, "runs": len(runs)}
                | {name: _finite(value) for name, value in seconds.items()}
            )
    return Artefact(
        pd.DataFrame(data),
        table=pd.DataFrame(rows),
        notes=("A run that misses the target counts as longer than all others.",),
    )


def _by_reading(
    summaries: Summaries,
    paper: Paper,
    scheme: str,
    described: Callable[[Mapping[str, Any]], dict[str, str]],
    *notes: str,
) -> Artefact:
    """Judge c1 and c10 with each reading of a sampler, whose settings `described` puts in words."""
    chosen = summaries["quadratic_problems"]
    variants = summaries[f"quadratic_problems_{scheme}"]
    samplers = variants.settings["samplers"] | chosen.settings["samplers"]
    tables = (by_problem(runs, target(paper, "quadratic")) for runs in (chosen, variants))
    rows, data = [], []
    for labels, table in readings(*tables).items():
        (label,) = (label for label in labels if label.startswith(scheme))
        reading = described(samplers[label])
        cells = dict(reading)
        for claim, case in (("c1", "synthetic"), ("c10", "nycmesh")):
            judged = _judged(table, claim, case, scheme, paper)
            cells |= _cells_of(judged, claim, case)
            if judged:
                data.append({**reading, "delays": DELAYS[case], **judged})
        rows.append(cells)
    return Artefact(pd.DataFrame(data), table=pd.DataFrame(rows), notes=notes)


def _judged(
    table: pd.DataFrame, claim: str, case: str, scheme: str, paper: Paper
) -> dict[str, Any]:
    """Return a sampler's runtime over the draws of Quadratic, and the verdict of its claim."""
    table = table[table["case"] == case]
    runs = table[table["sampler"] == scheme]
    if runs.empty:
        return {}
    return {
        "seconds": _finite(float(runs["counted"].mean())),
        "reached": int(np.isfinite(runs["counted"]).sum()),
        "runs": len(runs),
        "verdict": reading_finding(table, paper.claims[claim], paper, "quadratic").verdict,
    }


def _cells_of(judged: Mapping[str, Any], claim: str, case: str) -> dict[str, str]:
    column = f"{DELAYS[case]} (s)"
    if not judged:
        return {column: "–", claim: "–"}
    reached = f"reached in {judged['reached']} of {judged['runs']}"
    seconds = judged["seconds"]
    return {column: show(seconds) if np.isfinite(seconds) else reached, claim: judged["verdict"]}


def _flanp_in_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Describe FLANP's stages."""
    if settings.get("stop") == "statistical":
        end = f"at {settings['constant']:g}/(n s)"
    elif settings.get("stop") == "rounds":
        end = f"after {settings['rounds']} round{'s'[: settings['rounds'] > 1]}"
    else:
        end = f"at {settings.get('accuracy', 0.1):g} of the start"
    return {"first clients": str(settings["first"]), "a stage ends": end}


def _sampling_in_words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Describe DelayHetSampling's bound and iterations."""
    iterations = f"{settings.get('iterations', ITERATIONS):,}"
    return {"bound": bound_in_words(settings), "iterations": iterations}
