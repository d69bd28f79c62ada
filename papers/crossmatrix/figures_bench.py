"""Tables of the benchmark: speed-ups on each dataset and in reruns, and advice by situation.

:mod:`.speed_ups` computes the speed-ups on each dataset;
:mod:`fedsampling.report.which_sampler.advice` aggregates them over families and gives advice.
"""

from collections.abc import Mapping, Sequence, Set
from itertools import product

import numpy as np
import pandas as pd

from fedsampling.base.records import check
from fedsampling.base.text import plural, show, show_interval
from fedsampling.experiments.cross_matrix import BENCH, MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.which_sampler.advice import (
    INFORMATION,
    NOTHING_BETTER,
    RUNS_IN,
    Advice,
    Situation,
)
from fedsampling.report.which_sampler.cells import Cell, by_family, over_families
from fedsampling.samplers.protocol.base import Scheme

from .figures_new_families import DELAYS, speed_ups_on_new_families
from .sampler_rows import by_dataset, label
from .speed_ups import (
    compared_datasets,
    has_own_samples,
    shared_worlds,
    speed_ups_by_dataset,
    speed_ups_on,
)

# Names of the measures in tables, and what they are divided by.
UNITS = {"rounds": ("rounds", 1.0), "bits": ("Mbit sent by clients", 1e6), "seconds": ("s", 1.0)}
MANY_CLIENTS = 100
SITUATIONS = [
    (information, unequal, skewed)
    for unequal, skewed in ((None, None), *product((False, True), repeat=2))
    for information in map(frozenset, ((), ("delays",), ("losses", "updates"), INFORMATION))
]
# Reruns of the benchmark's datasets: how their experiments' names begin, and what differs. Only
# seconds depend on the delays.
OTHER_DELAYS = {
    "varying_": "delays vary around each client's mean",
    "ordered_": "large clients are slow",
}
FAILURES = {
    "failing_": "a fifth of the selected clients fails, delays vary",
    "deadline_": "a deadline of 80 s, delays vary",
}
CONFIRMING = "confirm_"
OTHER_WORLDS = {"fresh_": "fresh worlds", CONFIRMING: "fresh worlds and trials"}


def bench_matrix_rounds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the speed-ups in rounds."""
    return _matrix(summaries, paper, "rounds")


def bench_matrix_bits(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the speed-ups in bits."""
    return _matrix(summaries, paper, "bits")


def bench_matrix_seconds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the speed-ups in seconds."""
    return _matrix(summaries, paper, "seconds")


def _matrix(summaries: Summaries, paper: Paper, measure: str) -> Artefact:
    """Tabulate speed-ups over MD by dataset, with intervals over worlds."""
    if not compared_datasets(summaries):
        return Artefact(pd.DataFrame({"scheme": []}), notes=("No dataset has been run yet.",))
    parts = zip(RUNS_IN, _evidence(summaries, paper), strict=True)
    tables = [part.assign(runs_in=name) for name, part in parts if len(part)]
    table = pd.concat(tables, ignore_index=True)
    table = table[table["measure"] == measure].reset_index(drop=True)
    own = [name for name, summary in summaries.items() if has_own_samples(summary)]
    differ = pd.read_csv(paper.folder / "datasets.csv").set_index("set")["differ"]
    differ = differ.drop(own, errors="ignore")
    titles = {name: summary.settings["title"] for name, summary in summaries.items()}
    table["title"] = table["set"].map(titles)
    table["differ"] = table["set"].map(differ).fillna("")
    unit, scale = UNITS[measure]
    table["unit"], table["cost"] = unit, table["cost"] / scale
    cells = table.assign(cell=table.apply(_cell, axis=1), scheme=table["scheme"].map(label))
    cells = cells[cells["runs_in"] == RUNS_IN[0]]
    return Artefact(
        table,
        table=by_dataset(cells),
        notes=(
            "In brackets: runs that met the target, where some missed it. The CSV also has the "
            "speed-ups in fresh worlds and on new families.",
        ),
    )


def _evidence(summaries: Summaries, paper: Paper) -> list[pd.DataFrame]:
    """Return the speed-ups of each of :data:`RUNS_IN`; a table without runs is empty."""
    bench = speed_ups_by_dataset(summaries, paper.folder)
    fresh = [
        speed_ups_on(of, name, summaries, paper.folder)
        for name, of in _reruns(summaries, CONFIRMING).items()
    ]
    reruns = [
        pd.concat(fresh) if fresh else pd.DataFrame(),
        *(speed_ups_on_new_families(summaries, paper.folder, start) for start in DELAYS),
    ]
    return [bench, *(runs if len(runs) else bench[:0] for runs in reruns)]


def _reruns(summaries: Summaries, start: str) -> dict[str, str]:
    """Return experiments whose names start so, with the benchmark's on the same dataset."""
    names = {name: BENCH + name.removeprefix(start) for name in summaries if name.startswith(start)}
    return {name: of for name, of in names.items() if {of, TUNING + of} <= summaries.keys()}


def _cell(row: pd.Series) -> str:
    met = "" if row["reached"] == row["runs"] else f" ({row['reached']}/{row['runs']})"
    return show(row["speed_up"]) + met


def bench_advice(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the advice in several situations."""
    if not compared_datasets(summaries):
        return Artefact(pd.DataFrame({"measure": []}), notes=("No dataset has been run yet.",))
    evidence, needs = _evidence(summaries, paper), information_needs(summaries)
    everywhere = _advise(evidence, needs)
    table = pd.DataFrame([_advice_row(*each) for each in everywhere])
    shown = table[["measure", "situation", "families", "advice", "best candidate", "regret"]]
    advised = table[table["sampler"] != REFERENCE]
    kinds = len(advised.drop_duplicates(["sampler", "measure", "unequal", "skewed"]))
    note = f"A sampler is recommended in {len(advised)} of these {len(table)} situations"
    if kinds < len(advised):
        note += f", which are {plural(kinds, 'recommendation')} with different information"
    note += "."
    many = pd.read_csv(paper.folder / "datasets.csv").set_index("set")["clients"] >= MANY_CLIENTS
    alone = [
        _advise([runs[runs["set"].map(many) == side] for runs in evidence], needs)
        for side in (False, True)
    ]
    advice = [[each for each, _ in situations] for situations in (everywhere, *alone)]
    return Artefact(table, table=shown, notes=(note, _by_clients(*advice)))


def _advise(
    evidence: Sequence[pd.DataFrame], needs: Mapping[str, Set[str]]
) -> list[tuple[Advice, Situation]]:
    """Return the advice in every situation and measure, from the speed-ups of RUNS_IN."""
    advised = []
    for measure in MEASURES:
        of_measure = [runs[runs["measure"] == measure] for runs in evidence]
        cells: dict[tuple[bool | None, bool | None], Cell] = {}
        for information, unequal, skewed in SITUATIONS:
            situation = Situation(information, False, unequal, skewed)
            if (unequal, skewed) not in cells:
                cells[unequal, skewed] = Cell.of(situation, *of_measure)
            usable = [name for name, kinds in needs.items() if situation.allows(kinds)]
            advised.append((cells[unequal, skewed].advise(usable, measure), situation))
    return advised


def _by_clients(everywhere: Sequence[Advice], few: Sequence[Advice], many: Sequence[Advice]) -> str:
    """Say whether the advice depends on the number of clients: few, or :data:`MANY_CLIENTS`."""
    same = [
        sum(part.sampler == whole.sampler for part, whole in zip(side, everywhere, strict=True))
        for side in (few, many)
    ]
    differing = [
        (whole, candidate.speed_up)
        for whole, part in zip(everywhere, many, strict=True)
        if whole.sampler != part.sampler
        for candidate in (*part.recommended, *part.others)
        if candidate.sampler == whole.sampler
    ]
    there = {
        f"{label(whole.sampler)} in {whole.measure} "
        f"{show_interval(mean.value, mean.low, mean.high)} on "
        f"{mean.n} famil{'y' if mean.n == 1 else 'ies'}"
        for whole, mean in differing
    }
    return (
        f"By the number of clients: from datasets with fewer than {MANY_CLIENTS} alone, the advice "
        f"is the same in {same[0]} of {len(everywhere)} situations; from those with "
        f"{MANY_CLIENTS} or more, in {same[1]}"
        + (f" (the speed-up there: {'; '.join(sorted(there))})." if there else ".")
    )


def _advice_row(advice: Advice, situation: Situation) -> dict[str, object]:
    best = next(iter((*advice.recommended, *advice.others)), None)
    regret, of_md = (next(iter(advice.regret.get(rule, ())), np.nan) for rule in ("advice", "md"))
    return {
        "measure": advice.measure,
        "situation": situation.in_words,
        **{name: name in situation.information for name in INFORMATION},
        "unequal": "any" if situation.unequal is None else situation.unequal,
        "skewed": "any" if situation.skewed is None else situation.skewed,
        "sampler": advice.sampler,
        "families": advice.families,
        "datasets": advice.datasets,
        "worlds": advice.worlds[1],
        "advice": label(advice.sampler) if advice.recommended else NOTHING_BETTER,
        "best candidate": f"{best.name}, {best.in_words(advice.measure)}" if best else "none",
        "regret": f"{show(regret)} (MD: {show(of_md)})" if np.isfinite(regret) else "–",
        "mean_regret": regret,
        "mean_regret_md": of_md,
    }


def information_needs(summaries: Summaries) -> dict[str, Set[str]]:
    """Return the information that each sampler needs, with the settings it was run with."""
    records = {
        str(name): record
        for summary in summaries.values()
        for name, record in summary.settings["samplers"].items()
    }
    return {name: check(Scheme, record, "").needs for name, record in records.items()}


def bench_reruns(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate speed-ups with other delays, failures or worlds, beside those of the benchmark."""
    rows = []
    for start, words in (OTHER_DELAYS | FAILURES | OTHER_WORLDS).items():
        if not (sets := _reruns(summaries, start)):
            continue
        before, again = [], []
        for run, of in sets.items():
            shared = shared_worlds(summaries[run], summaries[of])
            before.append(speed_ups_on(of, of, summaries, paper.folder, shared))
            again.append(speed_ups_on(of, run, summaries, paper.folder))
        in_benchmark, in_rerun = pd.concat(before), pd.concat(again)
        samplers = sorted({*in_rerun["scheme"]} - {REFERENCE})
        measures = ("seconds",) if start in OTHER_DELAYS else MEASURES
        for measure, name in product(measures, samplers):
            changed = {"change": words, "measure": measure, "scheme": name}
            changed["delays"] = start in OTHER_DELAYS
            rows.append(changed | _rerun_row(in_benchmark, in_rerun, measure, name))
    if not rows:
        reason = "No dataset was run again."
        return Artefact(pd.DataFrame(), table=pd.DataFrame({"": [reason]}), notes=(reason,))
    table = pd.DataFrame(rows).sort_values(["change", "measure", "again"], ascending=False)
    table["sampler"] = table["scheme"].map(label)
    shown = table[["change", "measure", "sampler"]].assign(
        **{
            words: [
                show_interval(*row)
                for row in table[[kind, f"{kind}_low", f"{kind}_high"]].to_numpy()
            ]
            for kind, words in (("before", "in the benchmark"), ("again", "again"))
        },
        worst=table["worst"].map(show),
        families=table["families"],
        missed=table["runs"] - table["reached"],
    )
    return Artefact(table, table=shown)


def _rerun_row(
    before: pd.DataFrame, again: pd.DataFrame, measure: str, sampler: str
) -> dict[str, object]:
    """Return a sampler's speed-ups over families before and again; the others of the rerun."""
    before, again = (table[table["measure"] == measure] for table in (before, again))
    logs_before = by_family(before, [sampler])[sampler].dropna()
    logs_again = by_family(again, [sampler])[sampler].dropna()
    of_sampler = again[again["scheme"] == sampler]
    return {
        **over_families(logs_before.to_numpy()).columns("before", "before_"),
        **over_families(logs_again.to_numpy()).columns("again", "again_"),
        "worst": float(np.exp(logs_again.min())),
        "families": len(logs_again),
        "reached": of_sampler["reached"].sum(),
        "runs": of_sampler["runs"].sum(),
    }
