"""Client by client: who takes part under each sampler, and how well the final model fits them."""

from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from fedsampling.base.arrays import Array
from fedsampling.base.text import listed, show, show_range
from fedsampling.evidence.fairness import by_client, fairness
from fedsampling.evidence.statistics import Estimate, difference, holm
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, BLUE, GREEN, VERMILION, panels

from .sampler_rows import by_dataset, label

COLOUR_OF_ZERO, SMALLEST = "#d9d9d9", 1e-9  # smaller values count as zero
MAX_TICKS = 6
WORST = "worst_accuracy"
NEVER_SELECTED = "never_selected"


MARKS = {  # of summaries of the clients' accuracies: label, colour and marker
    WORST: ("worst tenth", VERMILION, "<"),
    "median_accuracy": ("median", BLUE, "|"),
    "mean_accuracy": ("mean", BLACK, "o"),
    "best_accuracy": ("best tenth", GREEN, ">"),
}


def clients_shuttle(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw participation and accuracy of each client, by sampler."""
    (summary,) = summaries.values()
    table, order = means(summary), _most_accurate_worst_first(summary)
    return Artefact(
        table.assign(label=table["sampler"].map(label)),
        _figure(table, order, measures(summary)),
        alt="Participation and final accuracy of each client, for each sampler.",
        notes=(_tested_on(table), *_expected(table), *_never_available(table)),
    )


def left_out(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate on which datasets a sampler leaves clients out, and whether that costs accuracy."""
    parts = [
        compared_with_md(measures(summary)).assign(set=name) for name, summary in summaries.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    table["label"] = table["sampler"].map(label)
    titles = {
        name: summary.settings["title"].rpartition(", ")[0] for name, summary in summaries.items()
    }
    cells = table.assign(
        scheme=table["label"],
        title=table["set"].map(titles),
        cell=[_with_asterisks(row) for row in table.itertuples()],
    )
    cells = by_dataset(cells).rename(columns={"scheme": "sampler"})
    return Artefact(table, table=cells, notes=_findings(table))


@cache
def clients_of(summary: Summary) -> pd.DataFrame:
    """Return a row for each run and client, as :func:`fedsampling.evidence.fairness.by_client`.

    The column ``accuracy`` is on training samples where the tests are common (:func:`_tested_on`).
    """
    table = by_client(summary.rows.drop(columns="case"))
    return table.rename(columns={"training_accuracy": "accuracy"})


@cache
def measures(summary: Summary) -> pd.DataFrame:
    """Return a row for each run, as :func:`fedsampling.evidence.fairness.fairness`."""
    return fairness(clients_of(summary))


def means(summary: Summary) -> pd.DataFrame:
    """Average over seeds: a row for each sampler and client, the smallest clients first.

    Of clients of equal size, those that are least often available are first.  ``expected`` is the
    probability of being among MD's m draws with replacement; NaN if clients come and go.
    ``never_selected`` and ``worst_accuracy`` are the means of :func:`measures`, the same for all
    clients of a sampler.
    """
    names = ["samples", "importance", "tests", "offered", "participation", "relative_weight"]
    grouped = clients_of(summary).groupby(["sampler", "client"])
    table = grouped[[*names, "accuracy"]].mean().reset_index()
    of_runs = measures(summary)[[NEVER_SELECTED, WORST]].groupby("sampler").mean().reset_index()
    table = table.merge(of_runs, on="sampler")
    m = int(summary.setting("m", sampler=REFERENCE))
    is_constant = table["offered"].nunique() == 1
    table["expected"] = 1 - (1 - table["importance"]) ** m if is_constant else np.nan
    return table.sort_values(["sampler", "samples", "offered", "client"], ignore_index=True)


def compared_with_md(by_run: pd.DataFrame) -> pd.DataFrame:
    """Compare each sampler with MD, paired by seed; see the declared rule in ``paper.yaml``.

    Returns columns ``sampler``; ``never_selected`` and ``worst_accuracy``, means over seeds; their
    differences from MD's ``<measure>_difference`` with ``…_low`` and ``…_high``, Holm-corrected
    over samplers; ``leaves_out`` and ``costs_accuracy``.  A difference that is the same in all
    seeds has no interval, and decides by its sign.
    """
    columns: dict[str, dict[str, float]] = {}
    for measure in (NEVER_SELECTED, WORST):
        values = by_run[measure].unstack("sampler")
        md = values[REFERENCE]
        pairs = {str(name): (values[name], md) for name in values if name != REFERENCE}
        gaps = {REFERENCE: Estimate(0.0, 0.0, 0.0, len(md)), **holm(pairs, difference)}
        columns[measure] = {name: values[name].mean() for name in gaps}
        columns[f"{measure}_difference"] = {name: gap.value for name, gap in gaps.items()}
        columns[f"{measure}_low"] = {name: gap.low for name, gap in gaps.items()}
        columns[f"{measure}_high"] = {name: gap.high for name, gap in gaps.items()}
    table = pd.DataFrame(columns).rename_axis("sampler").reset_index()
    low, high = table[f"{NEVER_SELECTED}_low"], table[f"{WORST}_high"]
    table["leaves_out"] = low.fillna(table[f"{NEVER_SELECTED}_difference"]) > 0
    table["costs_accuracy"] = high.fillna(table[f"{WORST}_difference"]) < 0
    return table


def _most_accurate_worst_first(summary: Summary) -> list[str]:
    """Name the samplers, that with the most accurate worst tenth first."""
    worst = measures(summary)[WORST].groupby("sampler").mean()
    return [str(name) for name in worst.sort_values(ascending=False, kind="stable").index]


def _figure(table: pd.DataFrame, order: list[str], by_run: pd.DataFrame) -> Figure:
    """Draw heat maps of participation and accuracy, and the spread of the accuracies."""
    first = table[table["sampler"] == order[0]]
    if first["samples"].nunique() > 1:
        along, places = "samples of the client", first["samples"].to_numpy()
    else:
        along, places = "rounds in which the client is available", first["offered"].to_numpy()
    rows = np.arange(len(order))
    height = 1.9 + 0.21 * len(order)
    with panels(1, 3, 12.5, height, sharey=True, width_ratios=[3, 3, 2]) as (figure, axes):
        for axis, name, power, title in (
            (axes[0], "participation", 0.5, "participation rate (grey: never)"),
            (axes[1], "accuracy", 1.0, "final accuracy"),
        ):
            values = [table.loc[table["sampler"] == sampler, name].to_numpy() for sampler in order]
            _heat_map(figure, axis, np.array(values), places, power)
            axis.set_title(title)
            axis.set_xlabel(along)
            axis.xaxis.set_label_position("top")
        axes[0].set_yticks(rows, [label(name) for name in order])
        for measure, (words, colour, marker) in MARKS.items():
            accuracies = by_run[measure].groupby("sampler").mean()[order].to_numpy()
            looks: dict[str, Any] = {"color": colour, "markersize": 5, "clip_on": False}
            axes[2].plot(accuracies, rows, marker, label=words, **looks)
        axes[2].set(title="accuracy over clients", xlabel="accuracy", xlim=(0, 1))
        figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower right", ncols=2)
        axes[2].set_ylim(len(order) - 0.5, -0.5)
    return figure


def _heat_map(figure: Figure, axis: Axes, values: Array, places: Array, power: float) -> None:
    """Draw a row for each sampler and a column for each client; zeros are grey.

    `places`: an ascending number for each client; some of them are printed above.
    """
    colours = mpl.colormaps["viridis"].with_extremes(bad="white", under=COLOUR_OF_ZERO)
    norm = PowerNorm(power, SMALLEST, 1)
    image = axis.imshow(values, aspect="auto", cmap=colours, norm=norm)
    bar = figure.colorbar(image, ax=axis, location="bottom", shrink=0.6, pad=0.01, aspect=40)
    bar.set_ticks(
        [SMALLEST, 0.1, 0.25, 0.5, 0.75, 1], labels=["0", "0.1", "0.25", "0.5", "0.75", "1"]
    )
    _, first = np.unique(places, return_index=True)
    if len(first) > MAX_TICKS:
        first = np.linspace(0, len(places) - 1, MAX_TICKS).astype(int)
    axis.set_xticks(first, [f"{places[place]:,.0f}" for place in first])
    axis.xaxis.tick_top()
    axis.grid(visible=False)


def _expected(table: pd.DataFrame) -> list[str]:
    """Compare MD's participation with its expectation, unless clients come and go."""
    of_md = table[table["sampler"] == REFERENCE]
    if of_md["expected"].isna().any():
        return []
    gap = (of_md["participation"] - of_md["expected"]).abs().max()
    return [
        "MD's participation is within "
        f"{show(100 * gap, 2)} percentage points of its expectation for every client."
    ]


def _tested_on(table: pd.DataFrame) -> str:
    if (table["tests"] == 0).all():
        return "Accuracies are on each client's training samples, since the tests are common."
    sizes = show_range(table["tests"].astype(int))
    return f"Accuracies are on each client's own test samples ({sizes} of them)."


def _never_available(table: pd.DataFrame) -> list[str]:
    """Count the clients that no sampler could select."""
    count = table.loc[table["offered"] == 0, "client"].nunique()
    if not count:
        return []
    clients_are = "1 client is" if count == 1 else f"{count} clients are"
    return [f"{clients_are} never available (white) and so left out by every sampler."]


def _with_asterisks(row: Any) -> str:
    never = f"{show(100 * row.never_selected)} %{'*' if row.leaves_out else ''}"
    return f"{never}; {show(row.worst_accuracy)}{'*' if row.costs_accuracy else ''}"


def _findings(table: pd.DataFrame) -> tuple[str, ...]:
    """State how often samplers leave clients out, and whether this costs accuracy."""
    table = table[table["sampler"] != REFERENCE]  # which is not compared with itself
    leaving = table["leaves_out"]
    costly = int((leaving & table["costs_accuracy"]).sum())
    elsewhere = table[~leaving & table["costs_accuracy"]]
    names = f" ({listed([label(name) for name in elsewhere['sampler']])})" * bool(len(elsewhere))
    return (
        f"In {leaving.sum()} of {len(table)} cases (a sampler on a dataset), the sampler leaves "
        "out significantly more clients than MD. The worst tenth of the clients is significantly "
        f"less accurate than under MD in {costly} of these {leaving.sum()} cases, and in "
        f"{len(elsewhere)} of the other {(~leaving).sum()}{names}.",
        "An asterisk marks values significantly worse than MD's (paired by seed, Holm). A "
        "difference that is the same in all seeds has no interval, and counts by its sign.",
    )


clients_vowel = clients_away_label = clients_shuttle
