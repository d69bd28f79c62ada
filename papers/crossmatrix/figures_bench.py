"""Tables and figures of the benchmark.

:mod:`.costs` computes the speed-ups on each dataset;
:mod:`fedsampling.report.which_sampler.advice` aggregates them over families and gives advice.
"""

from collections.abc import Set
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata

from fedsampling.base.records import check
from fedsampling.base.text import listed, plural, show, show_interval
from fedsampling.evidence.scores import is_at_edge
from fedsampling.evidence.statistics import mean
from fedsampling.experiments.papers import BENCH, MEASURES, REFERENCE, Paper, load_paper
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, ORANGE, VERMILION, panels
from fedsampling.report.names import is_shipped
from fedsampling.report.which_sampler.advice import (
    INFORMATION,
    NOTHING_BETTER,
    Advice,
    Situation,
    advise,
    by_family,
    over_families,
)
from fedsampling.samplers.protocol.base import Scheme

from .costs import (
    UNITS,
    UNTUNED,
    by_dataset,
    compared_datasets,
    dataset_facts,
    gains_from_tuning,
    grid_scores,
    label,
    shared_worlds,
    speed_ups_by_dataset,
    speed_ups_on,
)

NOT_COMPARED = "No dataset is both tuned and compared yet."
LEAST_SPEED_UP = 0.2  # smaller speed-ups are triangles at the edge of the figure
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
CONFIRMING = "confirm_"
OTHER_WORLDS = {"fresh_": "fresh worlds", CONFIRMING: "fresh worlds and trials"}


def bench_ranks(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw speed-ups over MD: geometric means over families of datasets, with their intervals."""
    if not compared_datasets(summaries):
        with panels(1, 1, height=1.0) as (figure, (axis,)):
            axis.axis("off")
            axis.text(0, 0.5, NOT_COMPARED)
        return Artefact(pd.DataFrame({"scheme": []}), figure, NOT_COMPARED, (NOT_COMPARED,))
    speed_ups = speed_ups_by_dataset(summaries, paper.folder)
    speed_ups = speed_ups[~speed_ups["away"]]
    table = pd.concat(
        [aggregated(speed_ups[speed_ups["measure"] == measure], measure) for measure in MEASURES],
        ignore_index=True,
    )
    needs = {name: " ".join(sorted(kinds)) for name, kinds in information_needs(summaries).items()}
    table["needs"] = table["scheme"].map(needs)
    return Artefact(
        table,
        _bands(table),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with intervals "
        "over families of datasets, and that on its worst family.",
        notes=(_scope(speed_ups, summaries, paper), *_faster_and_slower(table)),
    )


def _bands(table: pd.DataFrame) -> Figure:
    """Draw speed-ups with intervals, a row for each sampler and a panel for each measure."""
    rounds = table[table["measure"] == "rounds"].sort_values(["speed_up", "scheme"])
    order, rows = rounds["scheme"].tolist(), np.arange(len(rounds))
    families = rounds["families"].max()
    height = 1.2 + 0.26 * len(order)
    with panels(1, 3, width=11.6, height=height, sharey=True) as (figure, axes):
        figure.set_layout_engine("constrained", w_pad=0.12)  # inches, for the ranks
        for axis, measure, colour in zip(axes, MEASURES, (BLUE, ORANGE, VERMILION), strict=True):
            part = table[table["measure"] == measure].set_index("scheme").loc[order]
            axis.hlines(rows, part["low"], part["high"], color=colour, linewidth=4, alpha=0.35)
            axis.plot(part["speed_up"], rows, "o", color=colour, markersize=4.5)
            axis.plot(part["worst"], rows, "|", color=BLACK, markersize=6)
            off_scale = part["speed_up"].to_numpy() < LEAST_SPEED_UP
            edge = np.full(off_scale.sum(), LEAST_SPEED_UP)
            axis.plot(edge, rows[off_scale], "<", color=colour, markersize=6)
            axis.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.0)
            axis.set(title=f"{measure}; right: rank", xlabel="speed-up over MD")
            axis.set(xscale="log", xlim=(LEAST_SPEED_UP, 5))
            axis.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
            axis.minorticks_off()
            axis.grid(axis="x")
            for row, (_, cells) in zip(rows, part.iterrows(), strict=True):
                rank = "" if np.isnan(cells["rank"]) else f"{cells['rank']:g}"
                place, coordinates = (1.01, row), ("axes fraction", "data")
                axis.annotate(rank, place, xycoords=coordinates, va="center", fontsize=7.5)
        axes[0].set_ylim(-0.7, len(order) - 0.3)
        axes[0].set_yticks(rows, [_row_label(row, families) for row in rounds.to_dict("records")])
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if not is_shipped(name):
                tick.set(color=VERMILION, fontweight="bold")
    return figure


def _row_label(row: dict[Any, Any], families: int) -> str:
    """Name a sampler, with its number of families if not all, and the runs that missed."""
    extra = [] if row["families"] == families else [f"{row['families']} families"]
    if missed := row["runs"] - row["reached"]:
        extra.append(f"{missed} of {row['runs']} missed")
    return label(row["scheme"]) + (f" ({', '.join(extra)})" if extra else "")


def aggregated(speed_ups: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Aggregate speed-ups and areas over families.

    Returns a row for each sampler: ``speed_up``, ``low``, ``high`` over families; ``worst`` on
    ``worst_family``; ``families``, ``sets``; ``rank`` among the samplers of all families; the
    relative ``area`` with ``area_low``, ``area_high``; ``reached`` of ``runs``.
    """
    samplers = sorted(speed_ups["scheme"].unique())
    logs = by_family(speed_ups, samplers)
    areas = speed_ups["area"].groupby([speed_ups["family"], speed_ups["scheme"]]).mean().unstack()
    counts = speed_ups.groupby("scheme")[["reached", "runs"]].sum()
    rows = []
    for name in samplers:
        of_sampler = logs[name].dropna()
        speed_up = over_families(of_sampler.to_numpy())
        rows.append(
            {
                "measure": measure,
                "scheme": name,
                "label": label(name),
                **speed_up.columns("speed_up"),
                "worst": float(np.exp(of_sampler.min())),
                "worst_family": str(of_sampler.idxmin()),
                "families": len(of_sampler),
                "sets": int((speed_ups["scheme"] == name).sum()),
                **mean(areas[name].dropna().to_numpy()).columns("area", "area_"),
                "reached": int(counts.loc[name, "reached"]),
                "runs": int(counts.loc[name, "runs"]),
            }
        )
    table = pd.DataFrame(rows)
    everywhere = table["families"] == len(logs)
    table.loc[everywhere, "rank"] = rankdata(-table.loc[everywhere, "speed_up"])
    return table


def _matrix(summaries: Summaries, paper: Paper, measure: str) -> Artefact:
    """Tabulate speed-ups over MD by dataset, with intervals over worlds."""
    if not compared_datasets(summaries):
        return Artefact(pd.DataFrame({"scheme": []}), notes=("No dataset has been run yet.",))
    bench, fresh = speed_ups_by_dataset(summaries, paper.folder), _fresh(summaries, paper)
    parts = [bench, fresh] if len(fresh) else [bench]  # an empty one turns counts into floats
    table = pd.concat(parts, ignore_index=True)
    table["fresh"] = np.arange(len(table)) >= len(bench)
    table = table[table["measure"] == measure].reset_index(drop=True)
    differ = pd.read_csv(paper.folder / "datasets.csv").set_index("set")["differ"]
    titles = {name: summary.settings["title"] for name, summary in summaries.items()}
    table["title"] = table["set"].map(titles)
    table["differ"] = table["set"].map(differ).fillna("")
    unit, scale = UNITS[measure]
    table["unit"], table["cost"] = unit, table["cost"] / scale
    cells = table.assign(cell=table.apply(_cell, axis=1), scheme=table["scheme"].map(label))
    cells = cells[~cells["fresh"]]
    return Artefact(
        table,
        table=by_dataset(cells),
        notes=(
            "In brackets: runs that met the target, where some missed it. The CSV also has the "
            "speed-ups in fresh worlds.",
        ),
    )


bench_matrix_rounds = partial(_matrix, measure="rounds")
bench_matrix_bits = partial(_matrix, measure="bits")
bench_matrix_seconds = partial(_matrix, measure="seconds")


def _fresh(summaries: Summaries, paper: Paper) -> pd.DataFrame:
    """Return the speed-ups of the recommended samplers in fresh worlds with fresh trials."""
    parts = [
        speed_ups_on(of, name, summaries, paper.folder)
        for name, of in _reruns(summaries, CONFIRMING).items()
    ]
    return pd.concat(parts) if parts else pd.DataFrame(columns=["measure"])


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
    speed_ups, needs = speed_ups_by_dataset(summaries, paper.folder), information_needs(summaries)
    fresh = _fresh(summaries, paper)
    rows = []
    for measure, (information, unequal, skewed) in product(MEASURES, SITUATIONS):
        situation = Situation(information, False, unequal, skewed)
        usable = [name for name, kinds in needs.items() if situation.allows(kinds)]
        bench, again = (table[table["measure"] == measure] for table in (speed_ups, fresh))
        advice = advise(bench, usable, situation, measure, again if len(again) else None)
        rows.append(_advice_row(advice, situation))
    table = pd.DataFrame(rows)
    shown = table[["measure", "situation", "families", "advice", "best candidate", "regret"]]
    advised = table[table["sampler"] != REFERENCE]
    kinds = len(advised.drop_duplicates(["sampler", "measure", "unequal", "skewed"]))
    note = f"A sampler is recommended in {len(advised)} of these {len(table)} situations"
    if kinds < len(advised):
        note += f", which are {plural(kinds, 'recommendation')} with different information"
    note += "."
    return Artefact(table, table=shown, notes=(note,))


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
        "best candidate": best.text if best else "none",
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


def bench_tuning(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the learning rate of each sampler's best trial."""
    names = [name.removeprefix(TUNING) for name in summaries if name.startswith(TUNING)]
    table = pd.concat(
        [grid_scores(summaries[TUNING + name]).assign(experiment=name) for name in names],
        ignore_index=True,
    )
    best = table[table["chosen"] & table["experiment"].str.startswith(BENCH)]
    wide = best.assign(step=best["step"].map(lambda step: f"{step:g}")).pivot(
        index="sampler", columns="experiment", values="step"
    )
    wide = wide.rename(index=label, columns=lambda name: name.removeprefix(BENCH))
    wide = wide.fillna("–").sort_index(key=lambda index: index.str.casefold())
    grids = table.groupby("experiment")["step"].agg(set)
    ends = map(is_at_edge, best["step"], best["experiment"].map(grids))
    return Artefact(
        table,
        table=wide.rename_axis("sampler", axis=0).rename_axis(None, axis=1).reset_index(),
        notes=(f"{sum(ends)} of {len(best)} choices lie at an end of the grid.",),
    )


def bench_defaults(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate what tuning gains for MD itself, next to the best sampler's gain over tuned MD."""
    names = [name for name in compared_datasets(summaries) if "away" not in name]
    gains = gains_from_tuning(summaries, names)
    if gains.empty:
        reason = "MD has no run with an untuned learning rate."
        return Artefact(gains, table=pd.DataFrame({"": [reason]}), notes=(reason,))
    family = {name: dataset_facts(paper.folder, name)["family"] for name in names}
    rows = []
    for case, words in UNTUNED.items():
        if (part := gains[gains["case"] == case]).empty:
            continue
        logs = np.log(part["gain"]).groupby(part["set"].map(family)).mean().to_numpy()
        rows.append(
            {
                "case": case,
                "learning rate": words,
                **over_families(logs).columns("gain"),
                "families": len(logs),
                "largest": float(np.exp(logs.max())),
            }
        )
    table = pd.DataFrame(rows)
    shown = pd.DataFrame(
        {
            "MD's learning rate": table["learning rate"],
            "cost over tuned MD": [
                show_interval(*row) for row in table[["gain", "low", "high"]].to_numpy()
            ],
            "largest": table["largest"].map(show),
            "families": table["families"],
        }
    )
    return Artefact(table, table=shown)


def bench_reruns(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate speed-ups with other delays, and in fresh worlds, beside those of the benchmark."""
    rows = []
    for start, words in (OTHER_DELAYS | OTHER_WORLDS).items():
        if not (sets := _reruns(summaries, start)):
            continue
        before, again = [], []
        for run, of in sets.items():
            shared = shared_worlds(summaries[run], summaries[of])
            before.append(speed_ups_on(of, of, summaries, paper.folder, shared))
            again.append(speed_ups_on(of, run, summaries, paper.folder))
        kinds = {"before": pd.concat(before), "again": pd.concat(again)}
        samplers = sorted({*kinds["again"]["scheme"]} - {REFERENCE})
        measures = ("seconds",) if start in OTHER_DELAYS else MEASURES
        for measure, name in product(measures, samplers):
            columns: dict[str, object] = {"change": words, "measure": measure, "scheme": name}
            columns["delays"] = start in OTHER_DELAYS
            for kind, table in kinds.items():
                part = table[table["measure"] == measure]
                logs = by_family(part, [name])[name].dropna()
                columns |= over_families(logs.to_numpy()).columns(kind, f"{kind}_")
            part = part[part["scheme"] == name]
            columns |= {"worst": float(np.exp(logs.min())), "families": len(logs)}
            rows.append(columns | {"reached": part["reached"].sum(), "runs": part["runs"].sum()})
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


def _scope(speed_ups: pd.DataFrame, summaries: Summaries, paper: Paper) -> str:
    """Say how many families and datasets there are, which have one world, and which have no run."""
    worlds = speed_ups.groupby("set")["worlds"].max()
    single = [summaries[str(name)].settings["title"] for name in worlds.index[worlds == 1]]
    declared = load_paper(paper.key, paper.folder.parent).experiments
    missing = [
        spec["title"]
        for name, spec in declared.items()
        if name.startswith(BENCH) and not {name, TUNING + name} <= summaries.keys()
    ]
    return (
        f"{speed_ups['family'].nunique()} families, {len(worlds)} datasets; a single world on: "
        f"{listed(single) or 'none'}. Declared and not run: {listed(missing) or 'none'}."
    )


def _faster_and_slower(table: pd.DataFrame) -> list[str]:
    """Name the samplers whose intervals over families lie on one side of MD."""
    sentences = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != REFERENCE)]
        part = part.sort_values("speed_up", ascending=False)
        faster, slower = part[part["low"] > 1], part[part["high"] < 1]
        sentences.append(
            f"In {measure}, faster than MD (interval over families above 1): "
            f"{'; '.join(faster['label']) or 'none'}. Slower (below 1): "
            f"{'; '.join(slower['label']) or 'none'}."
        )
    return sentences
