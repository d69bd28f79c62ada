"""Runtime to a target, of harshvardhan2025latency: Figure 2, Tables 1, 2 and 3d.

:func:`runtimes` is what tables, figures and claims share: when a run first reaches its target, on
two clocks.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.artefacts.drawing import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    Line,
    legend_below,
    panels,
    style,
)
from fedsampling.artefacts.kit import Artefact, Draw, Summaries
from fedsampling.evidence.numbers import show
from fedsampling.evidence.summaries import Summary
from fedsampling.papers import Paper

TARGET = 2.95  # of Quadratic's normalised test loss
CLOCKS = {"counted": "as the paper counts", "all": "everything counted"}
LINES = {
    "submodular": Line("DelayHetSubmodular", VERMILION),
    "sampling": Line("DelayHetSampling", BLUE),
    "random": Line("random", BLACK),
    "flanp": Line("FLANP", GREEN),
    "divfl": Line("DivFL", ORANGE),
    "power_of_choice": Line("Power-of-Choice", PURPLE),
    "approx_opt": Line("ApproxOptSampling", SKY),
    "luo2022": Line("Luo et al.", YELLOW),
}
PROPOSED = ("submodular", "sampling")
NA = np.nan  # the target was not reached
# Tables 1 and 2, 10³ s, in the order of the seven schemes of LINES, by data set and target.
REPORTED: dict[str, dict[tuple[str, float], tuple[float, ...]]] = {
    "synthetic": {
        ("Quadratic", TARGET): (0.57, 0.593, 0.714, 3.5, 0.635, 0.68, 0.803),
        ("Dirichlet MNIST", 0.95): (0.687, 0.224, 0.586, 0.162, 0.491, 0.5, 0.582),
        ("Rotated MNIST", 0.93): (0.845, 0.513, 1.122, 0.36, 1.186, 0.804, 0.605),
        ("Dirichlet FashionMNIST", 0.83): (1.672, 0.966, 2.773, 1.694, 2.597, 2.961, 4.038),
        ("Rotated FashionMNIST", 0.77): (1.635, 0.795, 4.142, 1.097, 3.304, 1.876, 3.432),
        ("Dirichlet CIFAR-10", 0.67): (1.1, 1.516, 1.102, 1.188, 1.12, 1.106, 1.557),
        ("Rotated CIFAR-10", 0.66): (1.436, 2.43, 2.296, NA, 2.928, 1.896, 1.794),
        ("FEMNIST", 0.80): (14.68, 4.75, 24.98, 19.75, 29.045, 64.2, NA),
        ("Shakespeare", 0.43): (0.8353, 0.807, 3.055, 3.682, 3.549, 1.857, 1.217),
    },
    "nycmesh": {
        ("Quadratic", TARGET): (1.67, 7.109, 63.27, 76.562, 49.08, 62.72, 39.96),
        ("Dirichlet MNIST", 0.95): (1.596, 0.992, 70.35, 1.022, 31.91, 34.23, 23.37),
        ("Rotated MNIST", 0.93): (2.499, 5.356, 114.3, 2.694, 102.1, 50.60, 46.34),
        ("Dirichlet FashionMNIST", 0.83): (18.81, 8.63, 190.3, 5.838, 113.6, 155.6, 123.6),
        ("Rotated FashionMNIST", 0.77): (27.86, 14.74, 252.3, 22.1, 179.5, 130.1, 89.51),
        ("Dirichlet CIFAR-10", 0.67): (4.635, 3.297, 32.94, NA, 43.36, 34.21, 25.55),
        ("Rotated CIFAR-10", 0.66): (4.328, 4.944, 56.57, NA, 77.51, 51.56, 48.86),
        ("FEMNIST", 0.80): (52.25, 52.52, 1029, 79.363, 307.5, 1125, NA),
        ("Shakespeare", 0.43): (3.11, 6.965, 127.2, 467.2, 147, 85.53, 73.03),
    },
}
SEVEN = tuple(LINES)[:7]


def loss(rows: pd.DataFrame, dimension: int) -> pd.DataFrame:
    """Compute each run's course of loss and clocks.

    Parameters
    ----------
    rows : DataFrame
        A summary's rows.
    dimension : int
        d: the square loss, twice the test loss, is divided by √d.

    Returns
    -------
    DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``at``, ``loss``, and the seconds until then on
        either clock: ``counted``, the largest delay of those who trained, and ``all``, with what
        was asked before.
    """
    keys = ["case", "sampler", "seed", "at"]
    names = ["test_loss", "seconds", "asking_seconds"]
    chosen = rows[rows["metric"].isin(names) & (rows["at"] >= 0)]
    wide = chosen.pivot(index=keys, columns="metric", values="value").sort_index()
    spent = wide[["seconds", "asking_seconds"]].fillna(0.0)
    spent = spent.groupby(level=keys[:3]).cumsum()
    found = pd.DataFrame(
        {
            "loss": 2 * wide["test_loss"] / np.sqrt(dimension),
            "counted": spent["seconds"],
            "all": spent["seconds"] + spent["asking_seconds"],
        }
    )
    return found.reset_index().dropna(subset=["loss"])


def runtimes(summary: Summary, target: float = TARGET) -> pd.DataFrame:
    """Find when each run first is at or below the target.

    Returns
    -------
    DataFrame
        Columns ``case``, ``sampler``, ``seed``, ``rounds``, ``counted``, ``all``: infinite where
        the target was not met.
    """
    course = loss(summary.rows, summary.settings["settings"]["dataset"].get("dimension", 500))
    found = []
    for key, run in course.groupby(["case", "sampler", "seed"], sort=False):
        met = run[run["loss"] <= target]
        values = tuple(met.iloc[0][["at", "counted", "all"]]) if len(met) else (np.inf,) * 3
        found.append((*key, *map(float, values)))
    return pd.DataFrame(found, columns=["case", "sampler", "seed", "rounds", "counted", "all"])


def mean_runtimes(table: pd.DataFrame, case: str, clock: str = "counted") -> dict[str, float]:
    """Average a case's runtimes over seeds, by scheme; infinite where one run is."""
    here = table[table["case"] == case]
    return {str(name): float(part[clock].mean()) for name, part in here.groupby("sampler")}


def table1(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate runtimes with synthetic delays."""
    return _table(summaries["quadratic"], "synthetic")


def table2(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate runtimes on NYCMesh."""
    return _table(summaries["quadratic"], "nycmesh")


def figure2(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the test loss of Quadratic against runtime, in three situations."""
    parts = {
        "(a) heterogeneous data, no delays": (summaries["quadratic_no_delays"], "none"),
        "(b) clients alike, NYCMesh": (summaries["quadratic_iid"], "nycmesh"),
        "(c) heterogeneous data, NYCMesh": (summaries["quadratic"], "nycmesh"),
    }
    tables, notes = [], []
    with style():
        figure, axes = panels(1, 3, width=11.6, height=4.2, sharey=True)
        for panel, (title, (summary, case)) in zip(axes, parts.items(), strict=True):
            dimension = summary.settings["settings"]["dataset"].get("dimension", 500)
            course = loss(summary.rows, dimension)
            course = course[course["case"] == case]
            tables.append(course.assign(panel=title[:3]))
            alone = case == "none"
            _courses(panel, course, 1.0 if alone else 1e3, log=not alone)
            panel.set(yscale="log", title=title)
            panel.set_xlabel("runtime (rounds of 1 s)" if alone else "runtime (10³ s)")
            notes.append(f"{title}: {_reached(runtimes(summary), case)}.")
        axes[0].set_ylabel("normalised test loss")
        legend_below(figure, axes, 5)
    return Artefact(
        pd.concat(tables, ignore_index=True),
        figure,
        alt="Normalised test loss falling with runtime, by scheme, in three situations.",
        notes=(*notes, "Runtimes to 2.95 are means over seeds as the paper counts them."),
    )


def table3d(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the runtime to the target against the clients of a round."""
    summary = summaries["quadratic_clients"]
    table = runtimes(summary)
    table["clients"] = [int(name.removeprefix("m-")) for name in table["sampler"]]
    table = table.sort_values(["clients", "seed"])[["clients", "seed", "rounds", *CLOCKS]]
    with style():
        figure, (axes,) = panels(1, 1, width=5.2, height=3.6)
        for (clock, label), colour in zip(CLOCKS.items(), (BLUE, ORANGE), strict=True):
            met = table[np.isfinite(table[clock])]
            mean = met.groupby("clients")[clock].mean() / 1e3
            axes.plot(mean.index, mean, "-", color=colour, label=label)
            axes.plot(met["clients"], met[clock] / 1e3, "o", ms=3.5, color=colour, alpha=0.6)
        axes.set_xticks(sorted(table["clients"].unique()))
        axes.set(xlabel="clients of a round", ylabel="runtime to 2.95 (10³ s)", ylim=(0, None))
        axes.legend()
    missed = table[~np.isfinite(table["counted"])].groupby("clients").size()
    rounds = table.groupby("clients")["rounds"].mean()
    listed = ", ".join(f"{m}: {show(value)}" for m, value in rounds.items())
    notes = [f"Rounds to 2.95 by clients of a round, mean over seeds: {listed}."]
    notes += [f"{count} runs with {m} clients do not reach 2.95." for m, count in missed.items()]
    return Artefact(table, figure, alt="Runtime by clients of a round.", notes=tuple(notes))


ARTEFACTS: dict[str, Draw] = {
    "figure2": figure2,
    "table1": table1,
    "table2": table2,
    "table3d": table3d,
}


def _table(summary: Summary, case: str) -> Artefact:
    table = runtimes(summary)
    here = table[table["case"] == case]
    rows = []
    for (data, target), values in REPORTED[case].items():
        reported = dict(zip(SEVEN, values, strict=True))
        head = {"data": data, "target": f"{target:g}", "clock": CLOCKS["counted"]}
        if data == "Quadratic":
            rows.append(head | _cells(here, "counted", reported))
            rows.append(head | {"clock": CLOCKS["all"]} | _cells(here, "all", {}))
        else:
            rows.append(head | _cells(here[:0], "counted", reported))
    means = mean_runtimes(table, case, "rounds")
    rounds = ", ".join(
        f"{LINES[name].label} {show(means[name])}" for name in LINES if name in means
    )
    return Artefact(
        pd.DataFrame(rows),
        notes=(
            f"Rounds to the target, mean over seeds: {rounds} (∞: not in "
            f"{summary.settings['settings']['rounds']} rounds).",
            "Rows of the other data sets have the paper's values alone: they were not run.",
            "The paper's seconds leave out warm-up rounds and the losses of candidates; the second "
            "row counts them.",
        ),
    )


def _cells(table: pd.DataFrame, clock: str, reported: Mapping[str, float]) -> dict[str, str]:
    means = {str(name): float(part[clock].mean()) for name, part in table.groupby("sampler")}
    least = min(means.values(), default=np.inf)
    cells = {}
    for name, line in LINES.items():
        text = "N/A" if name in means else "–"
        if np.isfinite(means.get(name, np.inf)):
            seconds = table.loc[table["sampler"] == name, clock] / 1e3
            text = f"{show(seconds.mean())} ± {show(round(float(seconds.std()), 9), 2)}"
            text += " *" if means[name] == least else ""
        if name in reported:
            known = np.isfinite(reported[name])
            text += f" ({reported[name]:g})" if known else " (N/A)"
        cells[line.label] = text
    return cells


def _courses(axes: Axes, course: pd.DataFrame, unit: float, log: bool) -> None:
    for name, line in LINES.items():
        runs = course[(course["sampler"] == name) & ((course["at"] > 0) | (not log))]
        for number, (_, run) in enumerate(runs.groupby("seed")):
            label = line.label if number == 0 else None
            x = run["counted"] / unit
            axes.plot(x, run["loss"], color=line.colour, lw=1.2, alpha=0.85, label=label)
    axes.axhline(TARGET, color=BLACK, linestyle=":", lw=1.0)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")


def _reached(table: pd.DataFrame, case: str) -> str:
    means = mean_runtimes(table, case)
    parts: Sequence[str] = [
        f"{LINES[name].label} {show(means[name])} s"
        if np.isfinite(means[name])
        else f"{LINES[name].label} not in every run"
        for name in LINES
        if name in means
    ]
    return "2.95 after " + ", ".join(parts)
