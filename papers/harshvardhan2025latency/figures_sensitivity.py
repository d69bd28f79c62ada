"""How the order of samplers on Quadratic depends on settings that the paper does not state.

Every setting of Quadratic's rows in Tables 1 and 2 that the paper does not state is varied, one at
a time.  DelayHetSampling's settings are varied from a stricter bound, B_p < 1 everywhere, which has
its own row.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from fedsampling.base.records import check
from fedsampling.base.text import grouped
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, legend_below, panels
from fedsampling.samplers.flanp import Flanp

from .printed_tables import DELAYS, LINES, SEVEN, TABLES, printed
from .time_to_target import in_seconds, mean_runtimes, runtimes, target

BASE, REPORTED = "as chosen", "the paper"
# Settings in words, with their values; labels in ``paper.yaml`` are <setting>-<value>.
OF_ALL = {
    "step": "learning rate {}",
    "batch": "batches of {}",
    "log_mean": "computation: mean of ln s {}",
    "log_sd": "computation: deviation of ln s {}",
    "cap": "computation: at most {} s",
    "noise_median": "noise: as large as communication",
    "gain": "antenna gain {} dB",
}
OF_ONE = {
    "m": "{} clients per round",
    "share": "B at most {} of its bound",
    "rule-clip": "entries of B capped",
    "solver-exact": "exact subset",
    "solver-vertex": "exact distribution",
    "solver-slsqp": "solver SLSQP",
    "bound-everywhere": "$B_p$ < 1 everywhere",
    "iterations": "{} iterations",
    "start-fast": "solver starts at 1/τ",
    "duplicates-independently": "client drawn twice trains twice",
    "weights-covered": "weights by represented clients",
    "d": "{} candidates",
    "c": "constant {}",
}
STAGES = {  # of FLANP: how they end
    "gradient": "stages to {accuracy} of norm²",
    "statistical": "statistical stages",
    "rounds": "stages of one round",
}
COLUMNS = ["delays", "setting", "scheme", "seconds", "over_random"]
APART = 1.25  # factor between two circles of samplers that miss the target in one setting


def quadratic_sensitivity(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Quadratic's runtimes (Tables 1 and 2) over random selection's, for every setting."""
    table = varied(summaries, paper)
    names = list(dict.fromkeys(table["setting"]))
    words = [in_words(name, summaries["quadratic_variants"]) for name in names]
    columns = [name for name in DELAYS if name in set(table["delays"])]
    width, height = 3.4 + 3.2 * len(columns), 0.21 * len(names) + 1.3
    with panels(1, len(columns), width, height, sharey=True) as (figure, axes):
        for panel, delays in zip(axes, columns, strict=True):
            rows = table[table["delays"] == delays]
            _draw(panel, rows, names)
            chosen = rows[(rows["scheme"] == "random") & (rows["setting"] == BASE)]["seconds"]
            panel.set_title(f"{DELAYS[delays]} (random: {in_seconds(float(chosen.iloc[0]))})")
        axes[0].set_yticks(range(len(names)), words, fontsize=8)
        legend_below(figure, axes, 4)
    rounds = summaries["quadratic_sensitivity"].settings["settings"]["rounds"]
    notes = (
        "Circles at the right edge: some run did not reach the target. If a setting concerns one "
        "sampler, only that sampler is shown; the others, and random selection, are unchanged.",
        "DelayHetSampling has B_p < 1 everywhere in all rows but our settings and the exact "
        "distribution: compare it with the row of this bound.",
        f"Rows that concern all samplers end after {rounds} rounds, which is earlier on the clock "
        "for FLANP, whose first rounds are short, than for the others.",
    )
    return Artefact(
        table,
        figure,
        alt="Runtime over random selection's by sampler, one row for each varied setting.",
        notes=notes,
    )


def in_words(setting: str, variants: Summary) -> str:
    """Write a setting of :func:`varied` in words, with the sampler if it concerns only one."""
    if setting in (BASE, REPORTED):
        return {BASE: "our settings", REPORTED: "the paper"}[setting]
    if setting not in variants.settings["samplers"]:
        name, value = setting.rsplit("-", 1)
        return grouped(OF_ALL[name].format(value))
    record = variants.settings["samplers"][setting]
    sampler = next(name for name in SEVEN if setting.startswith(f"{name}-"))
    changed = setting.removeprefix(f"{sampler}-")
    if sampler == "flanp":
        stages = check(Flanp, dict(record), "")
        accuracy = np.format_float_positional(stages.accuracy, trim="-")
        rule = STAGES[stages.stop].format(accuracy=accuracy)
        return f"FLANP: {stages.first} first, {rule}"
    name, value = changed.rsplit("-", 1)
    return f"{LINES[sampler].label}: {OF_ONE.get(changed, OF_ONE.get(name, '')).format(value)}"


class Setting(NamedTuple):
    """Mean runtimes in one setting."""

    delays: str
    name: str  # what differs from the chosen setting; or BASE, or REPORTED
    seconds: Mapping[str, float]  # by sampler
    random: float  # seconds of random selection


def varied(summaries: Summaries, paper: Paper) -> pd.DataFrame:
    """Tabulate mean runtimes of all settings.

    Returns columns ``delays``; ``setting``: "the paper", "as chosen", or the label of the setting
    that differs; ``scheme``; ``seconds`` to the target as the paper counts them, infinite if a run
    misses it; ``over_random``: divided by random selection's seconds in the same setting, or in the
    chosen setting if only one sampler's setting differs.
    """
    goal = target(paper, "quadratic")
    chosen, shared, variants_of_one = (
        summaries[name] for name in ("quadratic", "quadratic_sensitivity", "quadratic_variants")
    )
    base = runtimes(chosen, goal)
    settings: list[Setting] = []
    for delays, artefact in TABLES.items():
        cells = printed(paper, artefact)["quadratic"]
        reported = {name: 1e3 * seconds.number for name, seconds in cells.items()}
        settings.append(Setting(delays, REPORTED, reported, reported["random"]))
        if means := mean_runtimes(base, delays):
            settings.append(Setting(delays, BASE, means, means["random"]))
    table = runtimes(shared, goal)
    for case, record in shared.settings["cases"].items():
        delays, means = record["delays"]["name"], mean_runtimes(table, case)
        name = case.removeprefix(f"{delays}-")
        settings.append(Setting(delays, name, means, means["random"]))
    table = runtimes(variants_of_one, goal)
    schemes = {record["name"]: name for name, record in chosen.settings["samplers"].items()}
    variants = [
        (schemes[record["name"]], label)
        for label, record in variants_of_one.settings["samplers"].items()
    ]
    variants.sort(key=lambda variant: (SEVEN.index(variant[0]), variant[1]))
    for delays in variants_of_one.settings["cases"]:
        random, means = mean_runtimes(base, delays)["random"], mean_runtimes(table, delays)
        for scheme, label in variants:
            settings.append(Setting(delays, label, {scheme: means[label]}, random))
    run_delays = {setting.delays for setting in settings if setting.name != REPORTED}
    rows = [
        (each.delays, each.name, name, each.seconds[name], _over(each.seconds[name], each.random))
        for each in settings
        if each.delays in run_delays
        for name in LINES
        if name in each.seconds
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _over(seconds: float, random: float) -> float:
    """Divide by random selection's seconds: 0 if only these are infinite, NaN if both are."""
    return seconds / random if np.isfinite([seconds, random]).any() else np.nan


def _draw(axes: Axes, table: pd.DataFrame, names: Sequence[str]) -> None:
    place = {name: number for number, name in enumerate(names)}
    finite = table["over_random"].replace([np.inf, 0.0], np.nan)
    edge = 1.6 * float(finite.max())
    # Samplers that miss the target in the same setting stand side by side.
    lost = table[np.isinf(table["over_random"])]
    edges = edge * APART ** lost.groupby("setting").cumcount()
    axes.axhspan(-0.5, 0.5, color="#f0f0f0", zorder=0)
    axes.axvline(1, color=BLACK, lw=0.8)
    for name in SEVEN:
        rows, line = table[table["scheme"] == name], LINES[name]
        y = rows["setting"].map(place)
        x = rows["over_random"]
        met = np.isfinite(x) & (x > 0)
        axes.plot(x[met], y[met], "o", ms=4.5, color=line.colour, alpha=0.85, label=line.label)
        missed = np.isinf(x)
        axes.plot(edges[rows.index[missed]], y[missed], "o", ms=5, mfc="none", color=line.colour)
    axes.plot([], [], "o", ms=5, mfc="none", color=BLACK, label="misses the target")
    axes.set(xscale="log", ylim=(len(names) - 0.5, -0.5), xlabel="runtime over random selection's")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
