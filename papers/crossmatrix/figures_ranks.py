"""Speed-ups of all samplers over MD, aggregated over families of datasets, as a figure."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsampling.base.text import listed
from fedsampling.evidence.statistics import mean
from fedsampling.experiments.cross_matrix import BENCH, MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper, load_paper
from fedsampling.experiments.shorthand import TUNING
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, ORANGE, VERMILION, legend_below, panels
from fedsampling.report.names import is_shipped
from fedsampling.report.which_sampler.cells import by_family, over_families

from .figures_bench import information_needs
from .sampler_rows import label
from .speed_ups import compared_datasets, speed_ups_by_dataset

NOT_COMPARED = "No dataset is both tuned and compared yet."
LEAST_SPEED_UP = 0.2  # smaller speed-ups are triangles at the edge of the figure


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
        bands(table),
        alt="Speed-up of each sampler over MD sampling in rounds, bits and seconds, with intervals "
        "over families of datasets, and that on its worst family.",
        notes=(_scope(speed_ups, summaries, paper), *_faster_and_slower(table)),
    )


def bands(table: pd.DataFrame) -> Figure:
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
            worst = part["worst"].where(part["worst"] >= LEAST_SPEED_UP)
            axis.plot(worst, rows, "x", color=BLACK, ms=4, clip_on=False, in_layout=False)
            off_scale = (part["speed_up"] < LEAST_SPEED_UP).to_numpy()
            missed = _mostly_missed(part).to_numpy()
            for hollow, fill in ((False, colour), (True, "white")):
                looks: dict[str, Any] = {"color": colour, "mfc": fill, "zorder": 2.5}
                kind = missed == hollow
                dots, edge = kind & ~off_scale, kind & off_scale
                axis.plot(part["speed_up"][dots], rows[dots], "o", ms=4.8, **looks)
                at_edge = [LEAST_SPEED_UP] * edge.sum()
                axis.plot(at_edge, rows[edge], "<", ms=6, clip_on=False, in_layout=False, **looks)
            axis.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.0)
            axis.set(title=f"{measure}; right: rank", xlabel="speed-up over MD")
            axis.set(xscale="log", xlim=(LEAST_SPEED_UP, 5))
            axis.set_xticks([0.25, 0.5, 1, 2, 4], ["¼", "½", "1", "2", "4"])
            axis.minorticks_off()
            axis.grid(axis="x")
            for row, (_, cells) in zip(rows, part.iterrows(), strict=True):
                rank = "–" if np.isnan(cells["rank"]) else f"{cells['rank']:g}"
                place, coordinates = (1.01, row), ("axes fraction", "data")
                axis.annotate(rank, place, xycoords=coordinates, va="center", fontsize=7.5)
        axes[0].set_ylim(-0.7, len(order) - 0.3)
        axes[0].set_yticks(rows, [_row_label(row, families) for row in rounds.to_dict("records")])
        for name, tick in zip(order, axes[0].get_yticklabels(), strict=True):
            if not is_shipped(name):
                tick.set(color=VERMILION, fontweight="bold")
        _explain_marks(axes[0])
        legend_below(figure, axes[:1], 4)
    return figure


def _mostly_missed(table: pd.DataFrame) -> pd.Series:
    """Whether most runs miss the target: the speed-up then shows the penalty for misses."""
    return table["reached"] < table["runs"] / 2


def _explain_marks(axis: Axes) -> None:
    looks: dict[str, Any] = {"color": BLACK, "linestyle": "none"}
    axis.plot([], [], marker="o", ms=4.8, label="geometric mean over families", **looks)
    axis.plot([], [], marker="o", ms=4.8, mfc="white", label="not reached by most runs", **looks)
    axis.plot([], [], marker="x", ms=4, label="worst family", **looks)
    axis.plot([], [], marker="<", ms=6, label="below the scale", **looks)


def _row_label(row: dict[Any, Any], families: int) -> str:
    """Name a sampler, with its number of families if not all, and the runs that missed."""
    extra = [] if row["families"] == families else [f"{row['families']} families"]
    if row["reached"] < row["runs"] / 2:
        extra.append("not reached")
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
    table["rank"] = table["speed_up"].where(everywhere).rank(ascending=False)
    return table


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
        f"{listed(single) or 'none'}. Datasets declared and not run: {listed(missing) or 'none'}."
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
