"""Samplers over several datasets: geometric means, probability of improvement, Friedman's test.

Every run on every dataset has a score.  :func:`aggregate` takes a sampler's mean within each
dataset, then the geometric mean over datasets; it also returns the worst dataset and the win rate.
:func:`improvement` estimates how often a sampler beats a reference, by any amount.
:func:`friedman` uses one cost per dataset and tests whether the datasets agree on an order.  The
first two generalise to other seeds on these datasets, the last to other datasets.

References
----------
Fleming, Wallace: How not to lie with statistics: the correct way to summarize benchmark results.
Communications of the ACM 1986 (geometric means of ratios).
Agarwal, Schwarzer, Castro, Courville, Bellemare: Deep Reinforcement Learning at the Edge of the
Statistical Precipice. NeurIPS 2021 (arXiv 2108.13264), section 4.3 (stratified bootstrap).
Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 2006, section 3.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.evidence.statistics import LEVEL, RESAMPLES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregates:
    """Aggregates over all datasets, by sampler.

    Parameters
    ----------
    value, low, high : float array, shape (samplers,)
        Geometric mean over datasets of the means over runs, and its percentile interval.
    rank, rank_low, rank_high : float array, shape (samplers,)
        1 for the largest; ties share the mean of their ranks. NaN for a sampler that was not run on
        every dataset.
    worst : float array, shape (samplers,)
        Smallest mean of a dataset.
    worst_set : int array, shape (samplers,)
        Index of that dataset.
    win_rate : float array, shape (samplers,)
        Share of the other samplers with a smaller mean, ties counted half; mean over datasets.
    """

    value: Array
    low: Array
    high: Array
    rank: Array
    rank_low: Array
    rank_high: Array
    worst: Array
    worst_set: NDArray[np.int64]
    win_rate: Array


def geometric_mean(means: ArrayLike) -> Array:
    """Return the geometric mean over datasets, shape (datasets, ...) → (...).

    NaN means that a sampler was not run on a dataset.  If any mean is zero or negative (gains can
    be negative), the result is zero.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(np.asarray(means, np.float64), 0.0))
    result: Array = np.exp(np.nanmean(logs, axis=0))
    return result


def aggregate(
    strata: Sequence[Array],
    rng: np.random.Generator,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Aggregates:
    """Aggregate scores over datasets with equal weights, with a stratified bootstrap.

    Runs are resampled within each dataset, so an interval covers other seeds on these datasets, not
    other datasets.  A resample has the same seeds for all samplers, because samplers with the same
    seed share clients and batches.

    Parameters
    ----------
    strata : sequence of float arrays, shape (samplers, runs)
        One per dataset; a row of NaN where a sampler was not run.
    level : float
        Coverage. With n runs per dataset percentile intervals are too short by about √((n − 1)/n).

    References
    ----------
    Agarwal et al. 2021, appendix A.4.
    """
    from scipy.stats import rankdata  # slow to import

    means = np.stack([part.mean(-1) for part in strata])
    value = geometric_mean(means)
    picks = _resampled_runs(strata, rng, resamples)
    resampled = [part[:, runs].mean(-1) for part, runs in zip(strata, picks, strict=True)]
    values = geometric_mean(np.stack(resampled))
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(values, tails, axis=1)
    everywhere = ~np.isnan(means).any(0)
    rank, rank_low, rank_high = ranks = np.full((3, len(value)), np.nan)
    ranks[0, everywhere] = rankdata(-value[everywhere])
    ranks[1:, everywhere] = np.quantile(
        rankdata(-values[everywhere].T, axis=1), tails, axis=0, method="nearest"
    )
    return Aggregates(
        value,
        low,
        high,
        rank,
        rank_low,
        rank_high,
        worst=np.nanmin(means, axis=0),
        worst_set=np.nanargmin(means, axis=0),
        win_rate=win_rates(means),
    )


@dataclass(frozen=True)
class WinProbabilities:
    """Probability that a run of a sampler beats a run of the reference, by sampler.

    Parameters
    ----------
    value, low, high : float array, shape (samplers,)
        Mean over the datasets that the sampler was run on, and its percentile interval.
    """

    value: Array
    low: Array
    high: Array


def improvement(
    strata: Sequence[Array],
    reference: int,
    rng: np.random.Generator,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> WinProbabilities:
    """Estimate P(X > Y) of a sampler's score X and the reference's Y, ties counted half.

    The estimate is the share of all pairs of runs on a dataset (Mann and Whitney's statistic),
    averaged over datasets.  Runs are resampled as in :func:`aggregate`.

    Parameters
    ----------
    strata : sequence of float arrays, shape (samplers, runs)
        One per dataset; a row of NaN where a sampler was not run.
    reference : int
        Row of the reference, which must have been run on every dataset.
    level : float

    References
    ----------
    Agarwal et al. 2021, section 4.3 and appendix A.4.
    """
    all_runs = [np.arange(part.shape[1])[None] for part in strata]
    value, values = (
        np.nanmean(
            [_win_shares(part, runs, reference) for part, runs in zip(strata, picks, strict=True)],
            axis=0,
        )
        for picks in (all_runs, _resampled_runs(strata, rng, resamples))
    )
    low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2), axis=1)
    return WinProbabilities(value.squeeze(-1), low, high)


@dataclass(frozen=True)
class Friedman:
    """Result of Friedman's test of whether datasets agree on the order of samplers.

    Parameters
    ----------
    rank : float array, shape (samplers,)
        Mean rank over datasets; 1 for a sampler that is best on all of them.
    statistic, p : float
        Friedman's chi-squared with (samplers − 1) degrees of freedom, corrected for ties, and the
        probability of a value as large if no dataset preferred any sampler.
    critical : float
        Nemenyi's critical difference at 5 %, corrected for all pairs: samplers whose mean ranks
        differ by less do not differ significantly.
    """

    rank: Array
    statistic: float
    p: float
    critical: float


def friedman(costs: Array, level: float = LEVEL) -> Friedman:
    """Test whether samplers differ, from their ranks on each dataset.

    Parameters
    ----------
    costs : float array, shape (datasets, samplers)
        Smaller is better; infinite costs tie. At least three samplers.
    level : float

    References
    ----------
    Demšar 2006, section 3.2.2: Friedman 1937, and Nemenyi 1963 with the Studentised range of
    infinite degrees of freedom divided by √2.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range  # slow to import

    ranks = rankdata(costs, axis=1)
    n, k = costs.shape
    tied = bool((ranks == ranks[:, :1]).all())  # whose correction divides zero by zero
    statistic, p = (0.0, 1.0) if tied else friedmanchisquare(*ranks.T)
    quantile = studentized_range.ppf(level, k, np.inf) / np.sqrt(2)
    critical = float(quantile * np.sqrt(k * (k + 1) / (6 * n)))
    return Friedman(ranks.mean(0), float(statistic), float(p), critical)


def _resampled_runs(
    strata: Sequence[Array], rng: np.random.Generator, resamples: int
) -> list[NDArray[np.int64]]:
    """Draw the runs of each resample in each dataset, each of shape (resamples, runs)."""
    return [rng.integers(part.shape[1], size=(resamples, part.shape[1])) for part in strata]


def _win_shares(scores: Array, picks: NDArray[np.int64], reference: int) -> Array:
    """Return the share of pairs of resampled runs that beat the reference.

    A pair counts as often as both of its runs were picked.  All sums are exact: whole numbers and
    halves.

    Parameters
    ----------
    scores : float array, shape (samplers, runs)
    picks : int array, shape (resamples, runs)
        The same runs for all samplers.
    reference : int

    Returns
    -------
    float array, shape (samplers, resamples)
    """
    runs = np.arange(scores.shape[1])
    counts = (picks[:, :, None] == runs).sum(1)
    first, second = scores[:, :, None], scores[reference]
    pairs = (first > second) + (first == second) / 2
    share = ((counts @ pairs) * counts).sum(-1) / picks.shape[1] ** 2
    not_run = np.isnan(scores) @ counts.T > 0
    return np.where(not_run, np.nan, share)


def win_rates(means: Array) -> Array:
    """Return each sampler's share of beaten samplers: (datasets, samplers) → (samplers,)."""
    first, second = means[:, :, None], means[:, None, :]
    played = ~np.isnan(first + second) & ~np.eye(means.shape[1], dtype=bool)
    won = (first > second) + (first == second) / 2
    games = played.sum(2)
    shares = np.where(played, won, 0.0).sum(2) / np.maximum(games, 1)
    with np.errstate(invalid="ignore"):  # with a single sampler the result is NaN
        rate: Array = shares.sum(0) / (games > 0).sum(0)
    return rate
