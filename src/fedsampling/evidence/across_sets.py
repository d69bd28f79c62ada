"""Schemes over several datasets at once: means, chances to be better, and whether datasets agree.

Every run on every dataset has a score.  :func:`aggregate` takes a scheme's interquartile mean,
which resists outliers and uses more of the scores than the median; :func:`improvement` asks how
often it beats a reference, by however much; :func:`friedman` forgets the seeds and asks whether the
datasets agree on an order.  The first two say what other seeds on these datasets would give, the
last what other datasets would.

References
----------
Agarwal, Schwarzer, Castro, Courville, Bellemare: Deep Reinforcement Learning at the Edge of the
Statistical Precipice. NeurIPS 2021 (arXiv 2108.13264), section 4.3.
Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 2006, section 3.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.evidence.statistics import LEVEL, RESAMPLES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregates:
    """Aggregates over all datasets, by scheme.

    Parameters
    ----------
    value, low, high : float array, shape (schemes,)
        Interquartile mean and its percentile interval.
    rank, rank_low, rank_high : float array, shape (schemes,)
        1 for the largest; ties share the mean of their ranks. NaN for a scheme that was not run on
        every dataset.
    """

    value: Array
    low: Array
    high: Array
    rank: Array
    rank_low: Array
    rank_high: Array


def interquartile_mean(scores: ArrayLike) -> Array:
    """Mean of the middle half along the last axis, shape (..., n) → (...).

    ⌊n/4⌋ scores are left out at each end.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=-1)
    cut = ordered.shape[-1] // 4
    middle: Array = ordered[..., cut : ordered.shape[-1] - cut].mean(-1)
    return middle


def aggregate(
    strata: Sequence[Array],
    rng: np.random.Generator,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Aggregates:
    """Aggregate scores over datasets, which weigh the same, with a stratified bootstrap.

    Runs are resampled within each dataset, so that an interval describes other seeds on these
    datasets, not other datasets.  A resample has the same seeds for all schemes: they share clients
    and batches, and ranks compare them in pairs.

    Parameters
    ----------
    strata : sequence of float arrays, shape (schemes, runs)
        One per dataset; a row of NaN where a scheme was not run.
    level : float
        Coverage. With n runs per dataset percentile intervals are too short by about √((n − 1)/n).

    References
    ----------
    Agarwal et al. 2021, appendix A.4.
    """
    from scipy.stats import rankdata  # slow to import

    value = np.array([interquartile_mean(own) for own in _of_schemes(strata)])
    resampled = _resampled(strata, rng, resamples)
    values = np.stack([interquartile_mean(own) for own in _of_schemes(resampled)])
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(values, tails, axis=1)
    everywhere = ~np.any([np.isnan(part[:, 0]) for part in strata], axis=0)
    ranks = np.full((3, len(value)), np.nan)
    ranks[0, everywhere] = rankdata(-value[everywhere])
    ranks[1:, everywhere] = np.quantile(
        rankdata(-values[everywhere].T, axis=1), tails, axis=0, method="nearest"
    )
    return Aggregates(value, low, high, *ranks)


@dataclass(frozen=True)
class Chances:
    """By scheme, the probability that its run is better than one of the reference.

    Parameters
    ----------
    value, low, high : float array, shape (schemes,)
        Mean over the datasets that the scheme was run on, and its percentile interval.
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
) -> Chances:
    """Estimate P(X > Y) of a scheme's score X and the reference's Y, ties counted half.

    Of all pairs of runs on a dataset (Mann and Whitney's statistic), then the mean over datasets;
    resampled as :func:`aggregate` does.

    Parameters
    ----------
    strata : sequence of float arrays, shape (schemes, runs)
        One per dataset; a row of NaN where a scheme was not run.
    reference : int
        Its row, present in all.
    level : float

    References
    ----------
    Agarwal et al. 2021, section 4.3 and appendix A.4.
    """
    value = np.nanmean([_beaten(part, reference) for part in strata], axis=0)
    resampled = _resampled(strata, rng, resamples)
    values = np.nanmean([_beaten(part, reference) for part in resampled], axis=0)
    low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2), axis=1)
    return Chances(value, low, high)


@dataclass(frozen=True)
class Friedman:
    """Whether datasets agree on the order of schemes.

    Parameters
    ----------
    rank : float array, shape (schemes,)
        Mean over datasets, 1 for the best everywhere.
    statistic, p : float
        Friedman's chi-squared with (schemes − 1) degrees of freedom, corrected for ties, and the
        probability of one as large if no dataset preferred any scheme.
    critical : float
        Nemenyi's critical difference at 5 %: two schemes whose mean ranks are closer are not told
        apart, over all pairs together.
    """

    rank: Array
    statistic: float
    p: float
    critical: float


def friedman(costs: Array, level: float = LEVEL) -> Friedman:
    """Test whether schemes differ over datasets, each of which ranks them.

    Parameters
    ----------
    costs : float array, shape (datasets, schemes)
        The smaller the better; infinite ones tie. Three schemes or more.
    level : float

    References
    ----------
    Demšar 2006, section 3.2.2: Friedman 1937, and Nemenyi 1963 with the Studentised range of
    endless degrees of freedom divided by √2.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range  # slow to import

    ranks = rankdata(costs, axis=1)
    n, k = costs.shape
    tied = bool((ranks == ranks[:, :1]).all())  # whose correction divides zero by zero
    statistic, p = (0.0, 1.0) if tied else friedmanchisquare(*ranks.T)
    apart = studentized_range.ppf(level, k, np.inf) / np.sqrt(2)
    critical = float(apart * np.sqrt(k * (k + 1) / (6 * n)))
    return Friedman(ranks.mean(0), float(statistic), float(p), critical)


def _resampled(strata: Sequence[Array], rng: np.random.Generator, resamples: int) -> list[Array]:
    """Draw runs within each dataset, the same for all schemes, shape (schemes, resamples, runs)."""
    drawn = [rng.integers(part.shape[1], size=(resamples, part.shape[1])) for part in strata]
    return [part[:, runs] for part, runs in zip(strata, drawn, strict=True)]


def _beaten(scores: Array, reference: int) -> Array:
    """Return the share of pairs that beat the reference, shape (schemes, ..., runs) → (…)."""
    shares = []
    for own in scores:  # one scheme at a time: all pairs of all resamples are many
        first, second = own[..., :, None], scores[reference][..., None, :]
        share = ((first > second) + (first == second) / 2).mean((-2, -1))
        shares.append(np.where(np.isnan(own).any(-1), np.nan, share))
    return np.stack(shares)


def _of_schemes(strata: Sequence[Array]) -> list[Array]:
    """Join each scheme's scores on the datasets that it was run on, along the last axis.

    Runs are repeated until all datasets have as many, so that all weigh the same.
    """
    most = math.lcm(*(part.shape[-1] for part in strata))
    equal = [np.repeat(part, most // part.shape[-1], axis=-1) for part in strata]
    return [
        np.concatenate([part[k] for part in equal if not np.isnan(part[k]).any()], axis=-1)
        for k in range(len(equal[0]))
    ]
