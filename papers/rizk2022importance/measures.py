"""Measures that figures and claims of Rizk et al. 2022 share: gaps in dB, drifts, noise."""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pandas as pd

from fedsampling.base.text import plural
from fedsampling.evidence.rules import above
from fedsampling.evidence.statistics import (
    Estimate,
    compare,
    decibels,
    difference,
    first_reached,
    holm,
    mean,
)
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Part
from fedsampling.report.drawing.artefacts import Summaries
from fedsampling.report.drawing.style import SCHEMES as COLOURS
from fedsampling.report.drawing.style import Line

STEADY = 0.8  # steady state: the last fifth of the rounds
DRIFT_SINCE = 2 / 3  # the drift of a curve is tested over the last third of the rounds
NEGLIGIBLE_DRIFT = 0.25  # as a fraction of the claim's margin

Run = tuple[Summary, str, str]  # an experiment, a sampler and a case of it

# Samplers by their names in runs.
TRUE, APPROXIMATE, TRACKED = "isfedavg-optimal", "isfedavg-approximate", "isfedavg-tracked"
STANDARD = "standard"  # the paper's standard FedAvg, whose steps are not divided by E_k
ESTIMATED = "isfedavg-tracked-estimated"  # a variant that a server could run

# Comparisons made in every population, the sampler with the higher MSD first.
GAPS = {
    "FedAvg over true": (STANDARD, TRUE),
    "FedAvg over tracked": (STANDARD, TRACKED),
    "FedAvg divided by E_k over true": ("fedavg", TRUE),
    "tracked over true": (TRACKED, TRUE),
}
# Experiments over populations, each with the experiment and the name of its standard FedAvg.
BASELINES = {"sensitivity": ("uncorrected", "fedavg"), "few": ("few_standard", "standard")}

SCHEMES = {
    "fedavg": Line("FedAvg", COLOURS["uniform"]),
    TRUE: Line("ISFedAvg, true (44), (48)", COLOURS["isfedavg_optimal"]),
    APPROXIMATE: Line("ISFedAvg, approximate (49), (50)", COLOURS["isfedavg_approximate"]),
    TRACKED: Line("ISFedAvg, tracked (52), (53)", COLOURS["isfedavg_tracked"]),
}
BASELINE_NAMES = ("standard", "divided by E_k")  # FedAvg's steps
WINDOWS = ("FedAvg falls", "(49)–(50) fall")
CELL = ["experiment", "case", "baseline", "window"]  # the combinations over which c3 is judged
OTHERS = {TRUE: "optimal", TRACKED: "tracked"}  # ISFedAvg's other probabilities
BALANCED = "balanced"  # classification with as many positive as negative training samples
LINES = {
    STANDARD: SCHEMES["fedavg"],
    **{name: line for name, line in SCHEMES.items() if name != "fedavg"},
    ESTIMATED: Line(
        r"tracked, $\sigma^2_{s,k}$ estimated", COLOURS["isfedavg_tracked"], variant=True
    ),
    "fedavg": Line("FedAvg, steps divided by $E_k$", COLOURS["uniform"], variant=True),
}


def steady_since(summary: Summary, case: str = "base") -> float:
    """Return the first round that counts as steady state."""
    return STEADY * float(summary.setting("rounds", case))


def steady_levels(*runs: Run) -> tuple[pd.Series, pd.Series]:
    """Return the steady-state MSDs of two samplers by seed; both of the same seeds."""
    first, second = (
        summary.per_seed(sampler, "msd", case, steady_since(summary, case))
        for summary, sampler, case in runs
    )
    first, second = first.align(second, join="inner")
    return first, second


def gap(above: Run, below: Run) -> Estimate:
    """Estimate by how many dB one sampler's steady-state MSD is above another's."""
    return compare(*steady_levels(above, below), decibels)


def drift(summary: Summary, sampler: str, case: str = "base", metric: str = "msd") -> Estimate:
    """Estimate how much a curve changes over the last third of its rounds.

    Returns least-squares slope of each seed's curve times the number of these rounds; mean over
    seeds with a 95 % t-interval.  In dB for the MSD, otherwise in the metric's unit.
    """
    rounds = float(summary.setting("rounds", case))
    rows = summary.select(sampler, metric, case, since=DRIFT_SINCE * rounds)
    curves = rows.pivot(index="seed", columns="at", values="value")
    values = curves.to_numpy(np.float64)
    values = 10 * np.log10(values) if metric == "msd" else values
    centred = curves.columns.to_numpy(np.float64) - np.mean(curves.columns)
    slopes = values @ centred / (centred @ centred)
    return mean(slopes * (1 - DRIFT_SINCE) * rounds)


def steady(moves: Estimate, margin: float) -> Part:
    """Decide from a curve's :func:`drift` whether the curve is steady.

    Returns "open" if the interval's half-width exceeds the claim's margin; "holds" if the interval
    contains zero or lies within a quarter of the margin; otherwise "fails".
    """
    if not (moves.high - moves.low) / 2 <= margin:
        return "open"
    limit = NEGLIGIBLE_DRIFT * margin
    small = -limit <= moves.low and moves.high <= limit
    return "holds" if small or moves.low <= 0 <= moves.high else "fails"


def fastest(summaries: Summaries) -> pd.DataFrame:
    """Compare the approximate probabilities with all other samplers while the MSDs fall.

    Returns a row for each population (``experiment`` and ``case``), ``baseline`` of
    :data:`BASELINE_NAMES`, ``window`` of :data:`WINDOWS` and ``other`` sampler: ``higher_db``, its
    mean difference from (49)–(50) in dB, with ``low`` and ``high``, Holm-corrected over the others;
    ``until``, the last round of the window; ``seeds``; and ``part``: "holds" if all others are
    higher, "fails" if any is lower, otherwise "open".
    """
    used = {"regression", "standard", *BASELINES, *(standard for standard, _ in BASELINES.values())}
    return _fastest(tuple((name, summaries[name]) for name in sorted(used & set(summaries)))).copy()


@cache  # a figure, its alternatives and a claim read these thousands of bootstrap intervals
def _fastest(summaries: tuple[tuple[str, Summary], ...]) -> pd.DataFrame:
    rows = []
    for experiment, case, panel, baselines in _populations(dict(summaries)):
        approximate = panel, APPROXIMATE, case
        for name, baseline in zip(BASELINE_NAMES, baselines, strict=True):
            rivals = {"FedAvg": baseline}
            rivals |= {label: (panel, sampler, case) for sampler, label in OTHERS.items()}
            for window, falling in zip(WINDOWS, (baseline, approximate), strict=True):
                until = _falls_until(*falling)
                lowest = _mean_decibels(*approximate, until)
                pairs = {
                    rival: (_mean_decibels(*run, until).loc[lowest.index], lowest)
                    for rival, run in rivals.items()
                }
                higher = holm(pairs, difference)
                parts = [above(gain, 0.0) for gain in higher.values()]
                part = "fails" if "fails" in parts else "open" if "open" in parts else "holds"
                cell = (experiment, case, name, window)
                rows += [
                    (*cell, rival, gain.value, gain.low, gain.high, until, gain.n, part)
                    for rival, gain in higher.items()
                ]
    columns = ["other", "higher_db", "low", "high", "until", "seeds", "part"]
    return pd.DataFrame(rows, columns=[*CELL, *columns])


def _populations(summaries: Summaries) -> Iterator[tuple[str, str, Summary, tuple[Run, Run]]]:
    """Yield every population once, with both baselines: standard, and divided by E_k."""
    panel, base = summaries["regression"], "base"
    standard = summaries["standard"], STANDARD, base
    yield "regression", base, panel, (standard, (panel, "fedavg", base))
    for experiment, panel, baseline in sensitivity_populations(summaries):
        case = baseline[2]
        if panel.settings["cases"][case]:  # without changes it is the regression's population
            yield experiment, case, panel, (baseline, (panel, "fedavg", case))


def sensitivity_populations(summaries: Summaries) -> Iterator[tuple[str, Summary, Run]]:
    """Yield the sensitivity experiments with the run of standard FedAvg in each population."""
    for experiment, (baseline, sampler) in BASELINES.items():
        if {experiment, baseline} <= summaries.keys():
            for case in summaries[experiment].settings["cases"]:
                yield experiment, summaries[experiment], (summaries[baseline], sampler, case)


def _falls_until(summary: Summary, sampler: str, case: str) -> float:
    """Return the first measured round after the start at which the mean MSD is steady."""
    rows = summary.select(sampler, "msd", case)
    curve = rows.groupby("at")["value"].mean()
    level = float(summary.per_seed(sampler, "msd", case, steady_since(summary, case)).mean())
    first_measured = float(curve.index[curve.index > 0].min())
    return max(first_reached(curve.index, curve, level), first_measured)


def _mean_decibels(summary: Summary, sampler: str, case: str, until: float) -> pd.Series:
    """Average each seed's MSD in dB over the rounds after the first, up to `until`."""
    rows = summary.select(sampler, "msd", case, until=until)
    rows = rows[rows["at"] > 0]
    decibel = pd.Series(10 * np.log10(rows["value"].to_numpy()), index=rows["seed"])
    return decibel.groupby(level="seed").mean()


def populations(summaries: Summaries) -> pd.DataFrame:
    """Estimate the gaps of c1 and c4 in every population of the sensitivity experiments.

    Returns columns ``experiment``, ``case``, ``comparison`` (a name of :data:`GAPS`), ``gap_db``,
    ``low``, ``high``, ``seeds``.
    """
    rows = []
    for experiment, panel, standard in sensitivity_populations(summaries):
        case = standard[2]
        for comparison, (upper, lower) in GAPS.items():
            above = standard if upper == STANDARD else (panel, upper, case)
            estimate = gap(above, (panel, lower, case))
            values = (estimate.value, estimate.low, estimate.high, estimate.n)
            rows.append((experiment, case, comparison, *values))
    columns = ["experiment", "case", "comparison", "gap_db", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def population_in_words(experiment: str, summary: Summary, case: str) -> str:
    """Write how a case's population differs, such as ``4 agents 10⁴ times noisier; draw 1``."""
    changes = summary.settings["cases"].get(case) or {}
    dataset, draw = changes.get("dataset", {}), changes.get("problem_seed", 0)
    noise, eigenvalues = dataset.get("noise"), dataset.get("eigenvalues")
    if isinstance(noise, Mapping):
        return (
            f"{plural(noise['few'], 'agent')} {_power(noise['factor'])} times noisier; draw {draw}"
        )
    if eigenvalues:
        return f"eigenvalues of covariances from {eigenvalues[0]:g} to {eigenvalues[1]:g}"
    if noise and noise[0] < noise[1]:
        return f"noise variances that differ by up to {_power(noise[1] / noise[0])}"
    if noise:
        return "equal noise variances"
    if draw:
        return f"draw {draw} of the population"
    return f"the chosen population with the seeds of {experiment}"


def _power(number: float) -> str:
    """Write a power of ten, such as 10⁴."""
    digits = str(round(np.log10(number)))
    return "10" + digits.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def error_levels(summary: Summary, case: str = "base") -> tuple[Estimate, Estimate, Estimate]:
    """Estimate the mean errors (%) of FedAvg and ISFedAvg over the last fifth, and the gain."""
    since = steady_since(summary, case)
    fedavg, tracked = (
        100 * summary.per_seed(name, "error", case, since) for name in ("fedavg", TRACKED)
    )
    return mean(fedavg), mean(tracked), compare(fedavg, tracked, difference)


def gradient_deviations(summary: Summary) -> pd.DataFrame:
    """Compare the mean estimate with the exact gradient, by model and sampler."""
    rows = []
    for (case, sampler), group in summary.rows.groupby(["case", "sampler"], sort=False):
        values = {name: part["value"].to_numpy() for name, part in group.groupby("metric")}
        z = (values["mean"] - values["exact"]) / values["se"]
        noise, se = float(values["noise"].mean()), float(values["noise_se"].mean())
        rows.append((case, sampler, len(z), float(np.abs(z).max()), noise, se))
    columns = ["case", "sampler", "coordinates", "largest_z", "noise", "noise_se"]
    return pd.DataFrame(rows, columns=columns)
