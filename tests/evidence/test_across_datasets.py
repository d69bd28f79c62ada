"""Aggregates over sets: against SciPy, enumeration of all resamples, and repeated experiments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fedsampling.base.streams import stream
from fedsampling.evidence.across_datasets import aggregate, friedman, geometric_mean, improvement

MEANS = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(1e-6, 1e6)
)


@given(MEANS)
def test_datasets_are_joined_by_scipys_geometric_mean(means):
    np.testing.assert_allclose(geometric_mean(means), stats.gmean(means, axis=0), rtol=1e-9)


def test_a_dataset_that_is_missed_makes_the_mean_zero_and_one_not_run_does_not_count():
    assert geometric_mean([[4.0, 4.0, 4.0], [0.0, np.nan, -1.0]]).tolist() == [0, 4, 0]


def test_no_dataset_is_trimmed_however_bad():
    four = [np.full((2, 5), 1.0) for _ in range(4)]
    bad = np.array([[1.0] * 5, [0.5] * 5])
    result = aggregate([*four, bad], stream(0, "test"))
    # An interquartile mean over the 25 runs would leave out all five of the bad dataset.
    assert stats.trim_mean([1.0] * 20 + [0.5] * 5, 0.25) == 1
    assert result.value[1] == pytest.approx(0.5 ** (1 / 5))
    assert (result.worst[1], result.worst_set[1]) == (0.5, 4)
    assert result.high[1] < 1


def test_the_win_rate_counts_the_others_that_are_beaten_on_each_dataset():
    first = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 0.0]])  # means 2, 2 and 0.5
    second = np.array([[1.0, 1.0], [2.0, 2.0], [np.nan, np.nan]])
    result = aggregate([first, second], stream(0, "test"))
    assert result.win_rate.tolist() == [(0.75 + 0) / 2, (0.75 + 1) / 2, 0]


def test_the_interval_is_that_of_all_resamples():
    strata = [np.array([[1.0, 4.0]]), np.array([[1.0, 7.0, 9.0]])]
    all_values = [
        np.sqrt(np.mean(a) * np.mean(b))
        for a in product(strata[0][0], repeat=2)
        for b in product(strata[1][0], repeat=3)
    ]
    assert len(all_values) == 4 * 27
    result = aggregate(strata, stream(0, "test"), level=0.8, resamples=40_000)
    # The quantiles of 108 equally likely values are met but for a jump to a neighbour.
    around = np.quantile(all_values, [0.09, 0.11, 0.89, 0.91])
    assert around[0] <= result.low[0] <= around[1]
    assert around[2] <= result.high[0] <= around[3]
    assert result.value[0] == pytest.approx(np.sqrt(2.5 * 17 / 3))


def test_a_set_with_more_seeds_weighs_no_more():
    first, second = 1 + np.arange(6.0).reshape(2, 3), 10 + np.arange(8.0).reshape(2, 4)
    result = aggregate([first, second], stream(0, "test"))
    repeated = aggregate([first, np.repeat(second, 5, axis=1)], stream(0, "test"))
    np.testing.assert_allclose(result.value, repeated.value)


def test_differences_between_sets_are_no_uncertainty():
    result = aggregate([np.full((1, 3), 1.0), np.full((1, 3), 100.0)], stream(0, "test"))
    np.testing.assert_allclose([result.low[0], result.value[0], result.high[0]], 10)


def test_intervals_cover_what_endless_runs_would_give():
    rng = stream(1, "test")
    centres = np.array([6.0, 7.0, 9.0, 10.0, 15.0])
    truth = stats.gmean(centres)
    repeats, covered = 300, 0
    for _ in range(repeats):
        strata = [(c + rng.standard_normal((1, 10))) for c in centres]
        result = aggregate(strata, rng, resamples=400)
        covered += int(result.low[0] <= truth <= result.high[0])
    # Of ten runs a set, percentile intervals cover a little less than 0.95: a true coverage from
    # 0.90 to 0.97 fails here with a chance of 1e-4 (binomial).
    assert stats.binom.ppf(1e-4, repeats, 0.90) <= covered <= stats.binom.ppf(0.9999, repeats, 0.97)


def test_ranks_compare_schemes_on_the_same_seeds():
    seeds = stream(2, "test").standard_normal((3, 6))
    # The first is better by a hair on every seed: unpaired, nobody could tell.
    strata = [np.stack([run + 1e-6, run, run - 5.0]) for run in 9.0 + seeds]
    result = aggregate(strata, stream(0, "test"))
    assert (
        result.rank.tolist() == result.rank_low.tolist() == result.rank_high.tolist() == [1, 2, 3]
    )
    assert result.low[0] < result.value[1] < result.high[0]


def test_equals_share_a_rank_and_a_scheme_that_was_not_run_everywhere_has_none():
    first = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 6.0]])
    second = np.array([[3.0, 4.0], [3.0, 4.0], [np.nan, np.nan]])
    result = aggregate([first, second], stream(0, "test"))
    assert result.rank.tolist()[:2] == [1.5, 1.5]
    assert np.isnan([result.rank[2], result.rank_low[2], result.rank_high[2]]).all()
    assert result.value[2] == pytest.approx(5.5)


@pytest.mark.parametrize("runs", [1, 3])
def test_the_same_stream_gives_the_same_numbers(runs):
    strata = [stream(k, "test").random((4, runs)) for k in range(2)]
    first, second = (aggregate(strata, stream(0, "test")) for _ in range(2))
    np.testing.assert_array_equal(first.low, second.low)
    np.testing.assert_array_equal(first.rank_high, second.rank_high)


def test_a_chance_to_be_better_is_mann_and_whitneys_mean_over_sets_with_ties_counted_half():
    rng = stream(2, "test")
    strata = [rng.integers(0, 5, (3, runs)).astype(float) for runs in (4, 6)]
    strata[1][2] = np.nan  # was not run there
    result = improvement(strata, 0, stream(0, "test"), resamples=10)
    chances = [
        [stats.mannwhitneyu(scores, part[0]).statistic / part.shape[1] ** 2 for scores in part]
        for part in strata
    ]
    assert result.value[0] == 0.5
    assert result.value[1] == pytest.approx((chances[0][1] + chances[1][1]) / 2)
    assert result.value[2] == pytest.approx(chances[0][2])


def test_the_interval_of_a_chance_is_that_of_all_resamples():
    part = np.array([[1.0, 4.0], [2.0, 9.0]])
    drawn = product(range(2), repeat=2)
    chances = [np.mean([part[1][i] > part[0][j] for i in runs for j in runs]) for runs in drawn]
    result = improvement([part], 0, stream(0, "test"), level=0.5, resamples=20_000)
    assert (result.low[1], result.high[1]) == tuple(np.quantile(chances, [0.25, 0.75]))


# Demšar 2006, Table 5 (a): Nemenyi's critical values at 5 %, by the number of classifiers.
CRITICAL = {3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


@pytest.mark.parametrize("schemes", CRITICAL)
def test_friedman_and_nemenyi_are_demsars(schemes):
    sets = 14
    costs = stream(3, "test").random((sets, schemes))
    result = friedman(costs)
    np.testing.assert_allclose(result.rank, (costs.argsort(1).argsort(1) + 1).mean(0))
    total = (result.rank**2).sum() - schemes * (schemes + 1) ** 2 / 4
    statistic = 12 * sets / (schemes * (schemes + 1)) * total
    assert result.statistic == pytest.approx(statistic)
    assert result.p == pytest.approx(stats.chi2.sf(statistic, schemes - 1))
    width = np.sqrt(schemes * (schemes + 1) / (6 * sets))
    assert result.critical == pytest.approx(CRITICAL[schemes] * width, rel=5e-4)


def test_schemes_that_all_miss_share_their_rank():
    result = friedman(np.array([[1.0, np.inf, np.inf], [2.0, 3.0, np.inf]]))
    assert result.rank.tolist() == [1.0, 2.25, 2.75]


def test_datasets_that_tell_no_schemes_apart_prefer_none():
    result = friedman(np.full((2, 3), np.inf))
    assert (result.rank.tolist(), result.statistic, result.p) == ([2.0, 2.0, 2.0], 0.0, 1.0)
