"""Intervals and comparisons over seeds: all statistics of the report.

References
----------
Efron: Better bootstrap confidence intervals. JASA 1987 (BCa).
Schuirmann: A comparison of the two one-sided tests procedure … J. Pharmacokinet. Biopharm. 1987.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import SimpleNamespace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.text import plural, show
from fedsampling.evidence.looks import Looks

LEVEL = 0.95
RESAMPLES = 9999
MIN_BOOTSTRAP_SEEDS = 20
MIN_SIGN_TEST_SEEDS = 5  # a one-sided sign test can reject at 5 %
ROUNDING = 1e-12  # relative size of differences that come from rounding alone
_looks: ContextVar[Looks | None] = ContextVar("looks", default=None)


@contextmanager
def allowing_for(looks: Looks) -> Iterator[None]:
    """Allow in all intervals for a declared plan of looks.

    Within this context, every interval has one method, Student's, at the level that the plan
    requires of each look. A claim's rule is then judged as it is, and no interval of it can forget
    the looks.
    """
    token = _looks.set(looks)
    try:
        yield
    finally:
        _looks.reset(token)


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Parameters
    ----------
    value, low, high : float
        The interval is NaN for a single run, and if all runs agree up to rounding: then they
        measure no spread, as with a handful of test samples; it is not zero.
    n : int
        Number of runs.
    level : float
        Coverage of the interval.
    look_level : float, optional
        Level of a single look, if the interval allows for several; see :func:`allowing_for`.
    """

    value: float
    low: float
    high: float
    n: int
    level: float = LEVEL
    look_level: float | None = None

    def columns(self, name: str, prefix: str = "") -> dict[str, float]:
        """Return columns of a table: the value, and the ends of the interval after a prefix."""
        return {name: self.value, f"{prefix}low": self.low, f"{prefix}high": self.high}


def percent(share: Estimate) -> Estimate:
    """Convert a share, or a difference of shares, to per cent."""
    return replace(share, value=100 * share.value, low=100 * share.low, high=100 * share.high)


def mean(values: ArrayLike, level: float = LEVEL) -> Estimate:
    """Return the mean over seeds with Student's t-interval, if they differ.

    See :func:`allowing_for`.
    """
    values = np.asarray(values, np.float64)
    n, centre = len(values), float(values.mean())
    looks = _looks.get()
    of_one_look = looks.level(level) if looks else level
    differ = n > 1 and np.ptp(values) > ROUNDING * np.abs(values).max()
    half = float(half_width(values.std(ddof=1), n, of_one_look)) if differ else np.nan
    return Estimate(centre, centre - half, centre + half, n, level, of_one_look if looks else None)


def half_width(deviation: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Array:
    """Half the width of Student's t-interval of a mean over `n` seeds; of several means at once."""
    counts = np.asarray(n)
    # Quantiles are slow, and most counts are equal.
    if counts.ndim:
        distinct, places = np.unique(counts, return_inverse=True)
        quantile = stdtrit(distinct - 1, (1 + level) / 2)[places].reshape(counts.shape)
    else:
        quantile = _quantile(int(counts), level)
    half: Array = quantile * np.asarray(deviation) / np.sqrt(counts)
    return half


@lru_cache(maxsize=4096)
def _quantile(n: int, level: float) -> float:
    return float(stdtrit(n - 1, (1 + level) / 2))


@dataclass(frozen=True)
class Contrast:
    """A way to compare two samplers: differences, ratios or decibels.

    Parameters
    ----------
    of : callable
        Maps one number of each sampler to the scale on which seeds are averaged.
    back : callable
        Maps this scale to the reported scale; increasing.
    of_means : bool
        Whether the means over seeds are compared, instead of averaging the seeds' contrasts.
    equal : float
        The reported value of two equal samplers.
    """

    of: Callable[[Array, Array], Array]
    back: Callable[[Array], Array] = np.asarray
    of_means: bool = False
    equal: float = 0.0


# With any number of seeds a ratio is the geometric mean of the seeds' ratios.  Decibels compare
# mean squared deviations, which are expectations: they are the ratio of the two means.
difference = Contrast(np.subtract)
ratio = Contrast(lambda first, second: np.log(first) - np.log(second), np.exp, equal=1.0)
decibels = Contrast(lambda first, second: 10 * (np.log10(first) - np.log10(second)), of_means=True)


def compare(
    first: ArrayLike,
    second: ArrayLike,
    contrast: Contrast,
    level: float = LEVEL,
    fewest: int | None = None,
) -> Estimate:
    """Contrast two samplers over the same seeds, with a paired interval.

    Below :data:`MIN_BOOTSTRAP_SEEDS` seeds, the interval is Student's, because bootstrap intervals
    of so few values are too short.  It uses the seeds' contrasts, or the jackknife's pseudo-values
    if means are contrasted.  Otherwise, it is the BCa bootstrap's.

    Parameters
    ----------
    first, second : float array, shape (n,)
        One number per seed, in the same order of seeds.
    contrast : Contrast
        :data:`difference`, :data:`ratio` or :data:`decibels`.
    level : float
        Coverage; 0.9 for an equivalence test at 5 %.
    fewest : int, optional
        Smallest number of seeds among the comparisons that decide together: it chooses the method
        of all of them.

    Returns
    -------
    Estimate
        Without an interval for fewer than three seeds, if a run diverged, or if all seeds have the
        same contrast up to rounding.

    References
    ----------
    Tukey: Bias and confidence in not-quite large samples. Ann. Math. Statist. 1958 (jackknife).
    """
    return _Comparison(first, second, contrast, fewest).estimate(level)


class _Comparison:
    """Two samplers over the same seeds: :func:`compare` at any level; all share the resamples."""

    def __init__(
        self, first: ArrayLike, second: ArrayLike, contrast: Contrast, fewest: int | None = None
    ) -> None:
        self.first, self.second = np.asarray(first, np.float64), np.asarray(second, np.float64)
        self.contrast = contrast
        self.n = len(self.first)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.ptp(contrast.of(self.first, self.second))  # NaN if a run diverged
            self.centre = float(_contrasted(self.first, self.second, contrast, -1))
            rounding = _rounding(self.first, self.second, contrast)
        self.differ = bool(np.isfinite(spread) and spread > rounding)
        self.too_few = (fewest or self.n) < MIN_BOOTSTRAP_SEEDS

    def estimate(self, level: float) -> Estimate:
        """Return the contrast with its interval."""
        if _looks.get() is not None or self.too_few or not self.differ:
            return self._by_student(level)
        return self._by_bootstrap(level)

    def _by_student(self, level: float) -> Estimate:
        with np.errstate(divide="ignore", invalid="ignore"):
            on_scale = mean(_pseudo_values(self.first, self.second, self.contrast), level)
        half = on_scale.high - on_scale.value
        numbers = np.array([self.centre, self.centre - half, self.centre + half])
        value, low, high = map(float, self.contrast.back(numbers))
        if self.n < 3 or not self.differ:
            low = high = np.nan
        return replace(on_scale, value=value, low=low, high=high)

    def _by_bootstrap(self, level: float) -> Estimate:
        from scipy.stats import bootstrap  # slow to import, and rarely needed

        interval = bootstrap(
            (self.first, self.second),
            self._statistic,
            paired=True,
            confidence_level=level,
            n_resamples=0,  # those of `bootstrap_result` are enough
            bootstrap_result=SimpleNamespace(bootstrap_distribution=self._resampled),
            method="BCa",
        ).confidence_interval
        value = float(self.contrast.back(np.asarray(self.centre)))
        return Estimate(value, float(interval.low), float(interval.high), self.n, level)

    def _statistic(self, first: Array, second: Array, axis: int) -> Array:
        return self.contrast.back(_contrasted(first, second, self.contrast, axis))

    @cached_property
    def _resampled(self) -> Array:
        return self.contrast.back(_resampled(self.first, self.second, self.contrast))


def _rounding(first: Array, second: Array, contrast: Contrast) -> float:
    """Return how much a seed's contrast changes if its numbers change by rounding."""
    rounded = [
        contrast.of(first * (1 + ROUNDING), second),
        contrast.of(first, second * (1 + ROUNDING)),
    ]
    return float(np.abs(np.stack(rounded) - contrast.of(first, second)).sum(0).max())


def _contrasted(first: Array, second: Array, contrast: Contrast, axis: int) -> Array:
    """Contrast two samplers over all seeds of an axis."""
    if contrast.of_means:
        return contrast.of(first.mean(axis), second.mean(axis))
    return np.asarray(contrast.of(first, second).mean(axis))


def _resampled(first: Array, second: Array, contrast: Contrast) -> Array:
    """Contrast two samplers over the seeds of each resample; shape (RESAMPLES,)."""
    seeds = _resamples(len(first))
    if contrast.of_means:
        return contrast.of(first[seeds].mean(-1), second[seeds].mean(-1))
    return np.asarray(contrast.of(first, second)[seeds].mean(-1))


@lru_cache(maxsize=2)
def _resamples(n: int) -> Ints:
    """Draw resamples of n seeds; fixed, so that an interval depends only on the runs."""
    return np.random.default_rng(0).integers(0, n, (RESAMPLES, n))


def _pseudo_values(first: Array, second: Array, contrast: Contrast) -> Array:
    """Return the jackknife's pseudo-values, whose mean estimates the contrast, shape (n,)."""
    n = len(first)
    if not contrast.of_means or n == 1:
        return contrast.of(first, second)
    left_out = contrast.of(first.sum() - first, second.sum() - second)
    return np.asarray(n * contrast.of(first.mean(), second.mean()) - (n - 1) * left_out)


def holm(
    pairs: Mapping[str, tuple[ArrayLike, ArrayLike]],
    contrast: Contrast,
    reference: float | None = None,
) -> dict[str, Estimate]:
    """Compare several pairs of samplers, with intervals that decide one claim jointly.

    Comparisons are ordered by their distance from `reference` in standard errors, the largest
    first.  For k comparisons, the first interval has level 1 − α/k, the second 1 − α/(k − 1), and
    so on until an interval contains the reference; all further intervals have the level of this
    interval.  If all true values equal the reference, the probability that any interval excludes it
    is at most α = 5 %.  All intervals have one method, the one for the fewest seeds.

    Parameters
    ----------
    pairs : mapping
        The numbers of two samplers per seed, by the name of the comparison.
    contrast : Contrast
    reference : float, optional
        The value of no effect, on the reported scale; by default that of two equal samplers.

    Returns
    -------
    dict of str to Estimate
        In the order of `pairs`.

    References
    ----------
    Holm: A simple sequentially rejective multiple test procedure. Scand. J. Statist. 1979.
    """
    reference = contrast.equal if reference is None else reference
    fewest = min((len(np.asarray(first)) for first, _ in pairs.values()), default=0)
    comparisons = {
        name: _Comparison(first, second, contrast, fewest)
        for name, (first, second) in pairs.items()
    }
    uncorrected = {name: comparison.estimate(LEVEL) for name, comparison in comparisons.items()}
    adjusted: dict[str, Estimate] = {}
    remaining, is_rejecting = len(pairs), True
    for name in sorted(pairs, key=lambda name: -_distance(uncorrected[name], reference)):
        adjusted[name] = comparisons[name].estimate(1 - (1 - LEVEL) / remaining)
        is_rejecting = is_rejecting and _excludes(adjusted[name], reference)
        if is_rejecting:
            remaining = max(remaining - 1, 1)
    return {name: adjusted[name] for name in pairs}


def _excludes(estimate: Estimate, reference: float) -> bool:
    """Whether the interval lies above or below a value; False without an interval."""
    return estimate.low > reference or estimate.high < reference


def _distance(estimate: Estimate, reference: float) -> float:
    """Return the distance from a reference in half widths of the interval; −1 without interval."""
    half = (estimate.high - estimate.low) / 2
    if not np.isfinite(half):
        return -1.0
    return abs(estimate.value - reference) / half if half > 0 else np.inf


def bound(error: float, comparisons: int = 1) -> float:
    """Return a bound that the largest |z| exceeds with probability `error` at most.

    Parameters
    ----------
    error : float
        Family-wise error probability, two-sided, of standard normal z.
    comparisons : int
        Number of values; Bonferroni's correction.
    """
    return float(-ndtri(error / (2 * comparisons)))


def is_within(estimate: Estimate, reference: float, margin: float) -> bool:
    """Whether the interval lies inside ``reference ± margin``; False without an interval."""
    return reference - margin <= estimate.low and estimate.high <= reference + margin


def never_varies_beyond(
    first: ArrayLike, second: ArrayLike, contrast: Contrast, margin: float
) -> bool:
    """Whether five or more seeds all have the same contrast, within `margin` of equality.

    Such seeds have no interval. By a sign test, the median over seeds is within the margin: if it
    were not, all n seeds would be with probability 2^−n at most, 3 % for five.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        contrasts = contrast.of(first, second)
        rounding = _rounding(first, second, contrast)
        never_varies = bool(np.ptp(contrasts) <= rounding)
        values = np.asarray(contrast.back(contrasts))
    is_close = bool((np.abs(values - contrast.equal) <= margin).all())
    return len(first) >= MIN_SIGN_TEST_SEEDS and never_varies and is_close


def is_outside(estimate: Estimate, reference: float, margin: float) -> bool:
    """Whether the interval lies outside ``reference ± margin``; False without an interval."""
    return estimate.high < reference - margin or estimate.low > reference + margin


def first_reached(at: ArrayLike, values: ArrayLike, target: float) -> float:
    """Return the first `at` at which a curve is at most `target`; infinite if it never is.

    Infinite values are *censored*: medians include them, and tables show them as ``>T``.
    """
    below = np.flatnonzero(np.asarray(values) <= target)
    return float(np.asarray(at)[below[0]]) if len(below) else np.inf


def show_estimate(estimate: Estimate, unit: str = "") -> str:
    """Format an estimate as ``5.31 dB [5.10, 5.52] (100 seeds)``."""
    text = f"{show(estimate.value)} {unit}".rstrip()
    if np.isfinite([estimate.low, estimate.high]).all():
        text += f" [{show(estimate.low)}, {show(estimate.high)}]"
    return f"{text} ({plural(estimate.n, 'seed')})"


def show_estimates(estimates: Mapping[str, Estimate]) -> str:
    """Format several estimates, each after its name."""
    parts = (f"{name}: {show_estimate(estimate)}" for name, estimate in estimates.items())
    return "; ".join(parts) or "not run"
