"""Steady levels of rizk2022importance: gaps in dB, drifts, errors, and gradient noise."""

import numpy as np
import pandas as pd

from fedsampling.evidence.statistics import Estimate, compare, decibels, difference, mean
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Part

from .lines import TRACKED

STEADY = 0.8  # steady state: the last fifth of the rounds
DRIFT_SINCE = 2 / 3  # the drift of a curve is tested over the last third of the rounds
NEGLIGIBLE_DRIFT = 0.25  # as a fraction of the claim's margin
BALANCED = "balanced"  # classification with as many positive as negative training samples

Run = tuple[Summary, str, str]  # an experiment, a sampler and a case of it


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
