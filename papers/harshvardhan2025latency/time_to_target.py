"""Time to a target, for the tables, figures and claims of Harshvardhan et al. 2025.

:func:`course` returns each run's accuracy or loss over time, :func:`runtimes` the time at which it
reaches its target: ``target/<experiment>`` in ``reported.csv``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from fedsampling.base.text import show, show_interval
from fedsampling.evidence.statistics import Estimate
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import LINES
from .run_settings import record

NARROW = 0.9  # level of the intervals of equivalence tests at 5 %
CLOCKS = {"counted": "paper's", "all": "everything"}  # columns of :func:`runtimes`
# Table 3, top: the experiment with the paper's usual value, and the experiment with the others.
SWEEPS = {"table3a": ("rotated_mnist", "rotation"), "table3b": ("dirichlet_mnist", "links")}
DIRECTIONS = {"table3a": 1, "table3b": -1}  # of the seconds along their columns, as claimed
KEYS = ["case", "sampler", "seed", "at"]
VARIED = ("flanp", "sampling")  # samplers that were run in several readings
MAIN_READING = "sampling-start"  # DelayHetSampling with Assumption 3 alone, where it was run


def target(paper: Paper, row: str, summaries: Summaries | None = None) -> float:
    """Return the accuracy or normalised loss that a row's runs have to reach.

    This is the paper's target, or, if it is lower, the accuracy at which our runs end.
    """
    theirs, runs = paper.reported(f"target/{row}"), (summaries or {}).get(row)
    return theirs if runs is None or falls(runs) else min(theirs, end(runs))


def end(summary: Summary, key: str = "target", case: str | None = None) -> float:
    """Return the accuracy, or the `seconds`, at which runs end; infinite if there is no limit."""
    until = summary.setting("until", case or next(iter(summary.settings["cases"]))) or {}
    return float(until.get(key) or np.inf)


def row_runtimes(summaries: Summaries, row: str, case: str, goal: float) -> pd.DataFrame:
    """Return the runtimes of a row with one kind of delays, in the main reading.

    This is the main reading of the row's claim: on Quadratic the ten draws of the problem, and
    DelayHetSampling with Assumption 3 alone where it was run.
    """
    pair: Callable[[Summary, float], pd.DataFrame] = runtimes
    if row == "quadratic" and "quadratic_problems" in summaries:
        pair, row = by_problem, "quadratic_problems"
    main = row_summary(summaries, row, case)
    if main is None:
        return pd.DataFrame(columns=[*KEYS[:3], *CLOCKS, "rounds", "end", "last"], dtype=float)
    variants = row_summary(summaries, f"{row}_sampling", case)
    parts = [pair(summary, goal) for summary in (main, variants) if summary]
    table = pd.concat(parts, ignore_index=True)
    table = table[table["case"] == case]
    if MAIN_READING in set(table["sampler"]):
        table = table[table["sampler"] != "sampling"]
        table = table.assign(sampler=table["sampler"].replace({MAIN_READING: "sampling"}))
    return table[table["sampler"].isin(list(LINES))]


def row_summary(summaries: Summaries, row: str, case: str) -> Summary | None:
    """Return the experiment of a row with one kind of delays, ``<row>_<case>`` or ``<row>``."""
    return summaries.get(f"{row}_{case}", summaries.get(row))


@cache  # figures, alternatives and claims share the table: never modify it
def course(summary: Summary, case: str | None = None) -> pd.DataFrame:
    """Compute each run's accuracy or loss over time, on two clocks.

    ``value`` is the accuracy, averaged over clients if each has its own tests; for Quadratic the
    normalised loss, which is twice the test loss over √d. ``counted`` are seconds as the paper
    counts them: the largest delay of the clients that train in each round, summed; ``all`` also
    counts warm-up rounds and candidates' losses.
    """
    quality = "test_loss" if falls(summary) else "accuracy"
    chosen = summary.select(metric=[quality, "seconds", "asking_seconds"], case=case, since=0)
    wide = chosen.pivot(index=KEYS, columns="metric", values="value").sort_index()
    spent = wide[["seconds", "asking_seconds"]].fillna(0.0)
    spent = spent.groupby(level=KEYS[:3]).cumsum()
    value = wide[quality]
    if falls(summary):
        dataset = summary.setting("dataset", next(iter(summary.settings["cases"])))
        from fedsampling.data.datasets.quadratic import Quadratic

        value = 2 * value / np.sqrt(Quadratic.model_validate(dataset).dimension)
    columns = {"value": value, "counted": spent["seconds"], "all": spent.sum(axis=1)}
    return pd.DataFrame(columns).reset_index().dropna(subset=["value"])


def falls(summary: Summary) -> bool:
    """Whether smaller values are better: Quadratic has a loss, the others an accuracy."""
    return "test_loss" in summary.metrics


@cache  # shared, too
def runtimes(summary: Summary, goal: float) -> pd.DataFrame:
    """Return when each run first reaches a target.

    Returns columns ``case``, ``sampler``, ``seed``; ``rounds``, ``counted`` and ``all``, infinite
    if the target was not reached; ``end`` and ``last``, the counted seconds and the rounds at the
    end of the run.  Runs end at the target, at their time limit, or after all rounds.
    """
    track = course(summary)
    met = track["value"] <= goal if falls(summary) else track["value"] >= goal
    ends = track.groupby(KEYS[:3], sort=False)[["counted", "at"]].last()
    ends = ends.rename(columns={"counted": "end", "at": "last"})
    first = track[met].groupby(KEYS[:3])[["at", "counted", "all"]].first().astype(np.float64)
    first = first.reindex(ends.index, fill_value=np.inf).rename(columns={"at": "rounds"})
    return first.join(ends).reset_index()


def by_problem(summary: Summary, goal: float) -> pd.DataFrame:
    """Return :func:`runtimes` of an experiment whose cases are draws of the problem.

    In the result, ``case`` is the kind of delays; ``seed`` is the draw, by which samplers are
    paired; if seeds are draws of their own, they already pair the samplers.
    """
    table = runtimes(summary, goal)
    cases = summary.settings["cases"]
    delays = {case: summary.setting("delays.name", case) for case in cases}
    if summary.settings.get("worlds"):
        return table.assign(case=table["case"].map(delays))
    drawn = {case: changes.get("problem_seed", 0) for case, changes in cases.items()}
    return table.assign(seed=table["case"].map(drawn), case=table["case"].map(delays))


def readings(main: pd.DataFrame, *variants: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Combine all readings of FLANP with all readings of DelayHetSampling, the main ones first.

    `variants` are :func:`runtimes` whose labels begin with ``flanp`` or ``sampling``; in a result,
    the readings are named "flanp" and "sampling".
    """
    table = pd.concat([main, *variants], ignore_index=True)
    labels = list(dict.fromkeys(table["sampler"]))
    unvaried = table[~table["sampler"].str.startswith(VARIED)]
    tables = {}
    flanps, samplings = ([label for label in labels if label.startswith(name)] for name in VARIED)
    for pair in product(flanps, samplings):
        parts = [
            table[table["sampler"] == label].assign(sampler=name)
            for label, name in zip(pair, VARIED, strict=True)
        ]
        tables[pair] = pd.concat([unvaried, *parts], ignore_index=True)
    main_sampling = MAIN_READING if MAIN_READING in labels else "sampling"
    return dict(sorted(tables.items(), key=lambda item: item[0] != ("flanp", main_sampling)))


def at_least(table: pd.DataFrame) -> pd.DataFrame:
    """Return lower bounds of :func:`runtimes` in counted seconds, by seed and sampler."""
    bounds = table.assign(seconds=table[["counted", "end"]].min(axis=1))
    return bounds.pivot(index="seed", columns="sampler", values="seconds")


def mean_runtimes(table: pd.DataFrame, case: str, clock: str = "counted") -> dict[str, float]:
    """Average a case's runtimes over seeds, by sampler; infinite if a run misses the target."""
    rows = table[table["case"] == case]
    return {str(name): float(part[clock].mean()) for name, part in rows.groupby("sampler")}


def main_reading(summaries: Summaries, table: str) -> str:
    """Return the label of DelayHetSampling's main reading in one of :data:`SWEEPS`."""
    variants = summaries.get(f"{SWEEPS[table][1]}_sampling")
    was_run = variants is not None and MAIN_READING in variants.settings["samplers"]
    return MAIN_READING if was_run else "sampling"


def sweep_runtimes(summaries: Summaries, paper: Paper, table: str, sampling: str) -> pd.DataFrame:
    """Return the runtimes of the proposed samplers with synthetic delays in one of :data:`SWEEPS`.

    The value in Table 1 is left out if its experiment has another scale than the sweep's.

    `sampling`: label of a reading of DelayHetSampling; readings other than "sampling" have
    experiments of their own, whose names end in ``_sampling``. Returns the columns of
    :func:`runtimes`, and ``value``, the varied setting as in ``reported.csv``.
    """
    goal = target(paper, SWEEPS[table][0])
    vary: Callable[[Any], float] = {
        "table3a": lambda settings: settings.dataset.partition.degrees,
        "table3b": lambda settings: settings.delays.speed[1] / 1e6,  # MB/s
    }[table]
    names: Sequence[str] = SWEEPS[table]
    if sampling != "sampling":
        names = (*names, *(f"{name}_sampling" for name in names))
    available = [summaries[name] for name in names if name in summaries]
    scale = available[-1].provenance["scale"]
    labels = {"submodular": "submodular", sampling: "sampling"}
    parts = []
    for summary in (each for each in available if each.provenance["scale"] == scale):
        values = {
            case: f"{vary(record(summary, case)):g}"
            for case in summary.settings["cases"]
            if summary.setting("delays.name", case) == "synthetic"
        }
        times = runtimes(summary, goal)
        times = times.assign(value=times["case"].map(values), sampler=times["sampler"].map(labels))
        parts.append(times.dropna(subset=["value", "sampler"]))
    return pd.concat(parts, ignore_index=True)


def with_interval(estimate: Estimate) -> str:
    """Write an estimate with its interval."""
    return show_interval(estimate.value, estimate.low, estimate.high)


def mean_in_seconds(seconds: pd.Series) -> str:
    """Write the mean of the runs' seconds, or how many runs miss the target."""
    missed = int(np.isinf(seconds).sum())
    if missed:
        return f"misses the target in {missed} of {len(seconds)} runs"
    return in_seconds(float(seconds.mean()))


def in_seconds(seconds: float) -> str:
    """Write seconds, or N/A if they are infinite."""
    return f"{show(seconds)} s" if np.isfinite(seconds) else "N/A"


def listed_means(means: Mapping[str, float], write: Callable[[float], str]) -> str:
    """List samplers with their means, in the order of :data:`LINES`."""
    return ", ".join(f"{LINES[name].label} {write(means[name])}" for name in LINES if name in means)


def nan_if_infinite(number: float) -> float:
    """Return NaN, which a table leaves empty, in place of an infinite number."""
    return number if np.isfinite(number) else np.nan
