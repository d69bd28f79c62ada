"""Intervals and comparisons over seeds: the only statistics that the report rests on.

References
----------
Efron: Better bootstrap confidence intervals. JASA 1987 (BCa).
Schuirmann: A comparison of the two one-sided tests procedure … J. Pharmacokinet. Biopharm. 1987.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

Array = NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 9999


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Parameters
    ----------
    value, low, high : float
        NaN interval where one run alone gives none.
    n : int
        Runs that it rests on.
    """

    value: float
    low: float
    high: float
    n: int


def mean(values: ArrayLike, level: float = LEVEL) -> Estimate:
    """Mean over seeds with Student's t-interval."""
    values = np.asarray(values, np.float64)
    n, centre = len(values), float(values.mean())
    if n < 2:
        return Estimate(centre, np.nan, np.nan, n)
    half = float(stdtrit(n - 1, (1 + level) / 2) * values.std(ddof=1) / np.sqrt(n))
    return Estimate(centre, centre - half, centre + half, n)


def compare(
    first: ArrayLike,
    second: ArrayLike,
    contrast: Callable[[Array, Array], Array],
    level: float = LEVEL,
) -> Estimate:
    """Contrast two schemes over the same seeds, with a paired BCa bootstrap interval.

    Parameters
    ----------
    first, second : float array, shape (n,)
        One number per seed, in the same order of seeds.
    contrast : callable
        Of the two means, such as their difference or their ratio in dB.
    level : float
        Coverage; 0.9 for an equivalence test at 5 %.

    Returns
    -------
    Estimate
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    value = float(contrast(first.mean(), second.mean()))
    spread = np.ptp(first - second)  # NaN where a run diverged
    if len(first) < 3 or spread == 0 or not np.isfinite(spread):
        same = value if spread == 0 and len(first) > 1 else np.nan
        return Estimate(value, same, same, len(first))
    from scipy.stats import bootstrap  # slow to import, and few stages compare

    found = bootstrap(
        (first, second),
        lambda a, b, axis: contrast(a.mean(axis), b.mean(axis)),
        paired=True,
        confidence_level=level,
        n_resamples=RESAMPLES,
        method="BCa",
        rng=np.random.default_rng(0),  # the interval is a function of the runs alone
    )
    low, high = found.confidence_interval
    return Estimate(value, float(low), float(high), len(first))


def difference(first: Array, second: Array) -> Array:
    """First − second, a contrast for :func:`compare`."""
    return first - second


def decibels(first: Array, second: Array) -> Array:
    """10 log10(first / second), a contrast for :func:`compare`."""
    return np.asarray(10 * np.log10(first / second))


def bound(error: float, comparisons: int = 1) -> float:
    """Bound that the largest of some standard normal |z| exceeds with probability `error` at most.

    Parameters
    ----------
    error : float
        Family-wise, two-sided.
    comparisons : int
        How many there are; Bonferroni's correction.
    """
    return float(-ndtri(error / (2 * comparisons)))


def equivalence(estimate: Estimate, reference: float, margin: float) -> str:
    """Compare an interval with ``reference ± margin``.

    Returns
    -------
    {"equivalent", "different", "inconclusive"}
        Equivalent if the whole interval lies within, different if all of it lies outside.
    """
    if not np.isfinite([estimate.low, estimate.high]).all():
        return "inconclusive"
    if reference - margin <= estimate.low and estimate.high <= reference + margin:
        return "equivalent"
    if estimate.high < reference - margin or estimate.low > reference + margin:
        return "different"
    return "inconclusive"


def first_reached(at: ArrayLike, values: ArrayLike, target: float) -> float:
    """First `at` where a falling curve is at or below `target`; infinite if it never is.

    Infinite values are *censored*: they take part in medians and are shown as ``>T``.
    """
    below = np.flatnonzero(np.asarray(values) <= target)
    return float(np.asarray(at)[below[0]]) if len(below) else np.inf
