"""Aggregates over sets: against SciPy, enumeration of all resamples, and repeated experiments."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fedsampling.base.streams import stream
from fedsampling.evidence.across_sets import aggregate, friedman, improvement, interquartile_mean

NUMBERS = st.floats(-1e6, 1e6)


@settings(derandomize=True, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 30)), elements=NUMBERS))
def test_the_mean_of_the_middle_half_is_scipys_trimmed_mean(scores):
    np.testing.assert_allclose(
        interquartile_mean(scores), stats.trim_mean(scores, 0.25, axis=-1), rtol=1e-9, atol=1e-6
    )


def test_an_outlier_does_not_move_it():
    scores = np.arange(8.0)
    assert interquartile_mean(scores) == 3.5
    scores[-1] = 1e9
    assert interquartile_mean(scores) == 3.5


def test_the_interval_is_that_of_all_resamples():
    strata = [np.array([[0.0, 4.0]]), np.array([[1.0, 7.0, 9.0]])]
    every = [
        interquartile_mean([*a, *a, *a, *b, *b])
        for a in product(strata[0][0], repeat=2)
        for b in product(strata[1][0], repeat=3)
    ]
    assert len(every) == 4 * 27
    found = aggregate(strata, stream(0, "test"), level=0.8, resamples=40_000)
    # The quantiles of 108 equally likely values are met but for a jump to a neighbour.
    around = np.quantile(every, [0.09, 0.11, 0.89, 0.91])
    assert around[0] <= found.low[0] <= around[1]
    assert around[2] <= found.high[0] <= around[3]
    assert found.value[0] == interquartile_mean(3 * [0, 4] + 2 * [1, 7, 9])


def test_a_set_with_more_seeds_weighs_no_more():
    few, many = np.arange(6.0).reshape(2, 3), 10 * np.arange(8.0).reshape(2, 4)
    found = aggregate([few, many], stream(0, "test"))
    again = aggregate([few, np.repeat(many, 5, axis=1)], stream(0, "test"))
    np.testing.assert_allclose(found.value, again.value)


def test_differences_between_sets_are_no_uncertainty():
    found = aggregate([np.full((1, 3), 1.0), np.full((1, 3), 100.0)], stream(0, "test"))
    assert found.low[0] == found.value[0] == found.high[0] == 50.5


def test_intervals_cover_what_endless_runs_would_give():
    rng = stream(1, "test")
    centres = np.array([0.0, 1.0, 3.0, 4.0, 9.0])
    endless = centres[:, None] + rng.standard_normal((5, 200_000))
    truth = interquartile_mean(endless.ravel())
    repeats, covered = 300, 0
    for _ in range(repeats):
        strata = [(c + rng.standard_normal((1, 10))) for c in centres]
        found = aggregate(strata, rng, resamples=400)
        covered += int(found.low[0] <= truth <= found.high[0])
    # Of ten runs a set, percentile intervals cover a little less than 0.95: a true coverage from
    # 0.90 to 0.97 fails here with a chance of 1e-4 (binomial).
    assert stats.binom.ppf(1e-4, repeats, 0.90) <= covered <= stats.binom.ppf(0.9999, repeats, 0.97)


def test_ranks_compare_schemes_on_the_same_seeds():
    seeds = stream(2, "test").standard_normal((3, 6))
    # The first is better by a hair on every seed: unpaired, nobody could tell.
    strata = [np.stack([run + 1e-6, run, run - 5.0]) for run in seeds]
    found = aggregate(strata, stream(0, "test"))
    assert found.rank.tolist() == found.rank_low.tolist() == found.rank_high.tolist() == [1, 2, 3]
    assert found.low[0] < found.value[1] < found.high[0]


def test_equals_share_a_rank_and_a_scheme_that_was_not_run_everywhere_has_none():
    one = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 6.0]])
    other = np.array([[3.0, 4.0], [3.0, 4.0], [np.nan, np.nan]])
    found = aggregate([one, other], stream(0, "test"))
    assert found.rank.tolist()[:2] == [1.5, 1.5]
    assert np.isnan([found.rank[2], found.rank_low[2], found.rank_high[2]]).all()
    assert found.value[2] == interquartile_mean(one[2])


@pytest.mark.parametrize("runs", [1, 3])
def test_the_same_stream_gives_the_same_numbers(runs: int):
    strata = [stream(k, "test").standard_normal((4, runs)) for k in range(2)]
    first, second = (aggregate(strata, stream(0, "test")) for _ in range(2))
    np.testing.assert_array_equal(first.low, second.low)
    np.testing.assert_array_equal(first.rank_high, second.rank_high)


def test_a_chance_to_be_better_is_mann_and_whitneys_mean_over_sets_with_ties_counted_half():
    rng = stream(2, "test")
    strata = [rng.integers(0, 5, (3, runs)).astype(float) for runs in (4, 6)]
    strata[1][2] = np.nan  # was not run there
    found = improvement(strata, 0, stream(0, "test"), resamples=10)
    each = [
        [stats.mannwhitneyu(own, part[0]).statistic / part.shape[1] ** 2 for own in part]
        for part in strata
    ]
    assert found.value[0] == 0.5
    assert found.value[1] == pytest.approx((each[0][1] + each[1][1]) / 2)
    assert found.value[2] == pytest.approx(each[0][2])


def test_the_interval_of_a_chance_is_that_of_all_resamples():
    part = np.array([[1.0, 4.0], [2.0, 9.0]])
    drawn = product(range(2), repeat=2)
    every = [np.mean([part[1][i] > part[0][j] for i in runs for j in runs]) for runs in drawn]
    found = improvement([part], 0, stream(0, "test"), level=0.5, resamples=20_000)
    assert (found.low[1], found.high[1]) == tuple(np.quantile(every, [0.25, 0.75]))


# Demšar 2006, Table 5 (a): Nemenyi's critical values at 5 %, by the number of classifiers.
CRITICAL = {3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


@pytest.mark.parametrize("schemes", CRITICAL)
def test_friedman_and_nemenyi_are_demsars(schemes: int):
    sets = 14
    costs = stream(3, "test").random((sets, schemes))
    found = friedman(costs)
    np.testing.assert_allclose(found.rank, (costs.argsort(1).argsort(1) + 1).mean(0))
    total = (found.rank**2).sum() - schemes * (schemes + 1) ** 2 / 4
    statistic = 12 * sets / (schemes * (schemes + 1)) * total
    assert found.statistic == pytest.approx(statistic)
    assert found.p == pytest.approx(stats.chi2.sf(statistic, schemes - 1))
    width = np.sqrt(schemes * (schemes + 1) / (6 * sets))
    assert found.critical == pytest.approx(CRITICAL[schemes] * width, rel=5e-4)


def test_schemes_that_all_miss_share_their_rank():
    found = friedman(np.array([[1.0, np.inf, np.inf], [2.0, 3.0, np.inf]]))
    assert found.rank.tolist() == [1.0, 2.25, 2.75]


def test_datasets_that_tell_no_schemes_apart_prefer_none():
    found = friedman(np.full((2, 3), np.inf))
    assert (found.rank.tolist(), found.statistic, found.p) == ([2.0, 2.0, 2.0], 0.0, 1.0)
