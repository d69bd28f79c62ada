"""Intervals and comparisons, against scipy, limit cases and simulation."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fedsampling.evidence import statistics
from fedsampling.evidence.statistics import (
    ROUNDING,
    Estimate,
    bound,
    compare,
    decibels,
    difference,
    first_reached,
    holm,
    is_outside,
    is_within,
    mean,
    percent,
    ratio,
    show_estimate,
)

FINITE = st.floats(-1e6, 1e6)


class TestMean:
    @given(st.lists(FINITE, min_size=2, max_size=20), st.sampled_from([0.9, 0.95, 0.99]))
    def test_interval_is_students(self, values, level):
        result = mean(values, level)
        se = stats.sem(values)
        assert result.n == len(values)
        assert result.value == pytest.approx(np.mean(values))
        if np.ptp(values) <= ROUNDING * np.abs(values).max():
            assert np.isnan([result.low, result.high]).all()
            return
        assume(se > 1e-300)
        low, high = stats.t.interval(level, len(values) - 1, result.value, se)
        assert (result.low, result.high) == (pytest.approx(low), pytest.approx(high))

    def test_one_run_gives_no_interval(self):
        result = mean([3.0])
        assert (result.value, result.n) == (3, 1)
        assert np.isnan([result.low, result.high]).all()

    def test_a_diverged_run_is_not_dropped(self):
        assert np.isnan(mean([1.0, np.nan, 2.0]).value)


def test_a_share_in_per_cent():
    assert percent(Estimate(0.5, 0.25, 1.0, 7)) == Estimate(50, 25, 100, 7)


class TestCompare:
    @pytest.mark.parametrize("n", [3, 5, 10, 30])
    @pytest.mark.parametrize(("draw", "minimum"), [("normal", 0.92), ("exponential", 0.85)])
    def test_interval_covers_as_often_as_it_says(self, n, draw, minimum, monkeypatch):
        """With few seeds, skewed differences are covered too rarely: by BCa, 73 % of them at three.

        Both samplers share the noise of a seed: an unpaired interval would cover too often.
        """
        monkeypatch.setattr(statistics, "RESAMPLES", 499)
        rng, repetitions = np.random.default_rng(2), 600
        expected = {"normal": 0.0, "exponential": 1.0}[draw]
        covered = 0
        for _ in range(repetitions):
            common, noise = rng.normal(size=n), getattr(rng, draw)(size=n)
            result = compare(common + noise, common, difference)
            covered += result.low <= expected <= result.high
        # Four standard errors are 3.6 points at 95 %.
        assert minimum < covered / repetitions < 0.985

    def test_few_seeds_have_students_interval_of_their_contrasts(self):
        first, second = np.random.default_rng(6).uniform(1, 2, (2, 5))
        assert compare(first, second, difference) == mean(first - second)
        logs, times = mean(np.log(first / second)), compare(first, second, ratio)
        expected = np.exp([logs.value, logs.low, logs.high])
        assert [times.value, times.low, times.high] == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("contrast", "statistic"),
        [
            (difference, lambda a, b, axis: (a - b).mean(axis)),
            (ratio, lambda a, b, axis: np.exp(np.log(a / b).mean(axis))),
            (decibels, lambda a, b, axis: 10 * np.log10(a.mean(axis) / b.mean(axis))),
        ],
        ids=["difference", "ratio", "decibels"],
    )
    def test_many_skewed_seeds_have_scipys_bca_interval(self, contrast, statistic):
        """Up to a twentieth of its width, the error of 9999 resamples."""
        rng = np.random.default_rng(2)
        first, second = np.exp(0.3 * rng.exponential(size=20) ** 2), rng.uniform(1, 2, 20)
        result = compare(first, second, contrast)
        expected = stats.bootstrap(
            (first, second), statistic, paired=True, n_resamples=9999, method="BCa", rng=1
        ).confidence_interval
        error = 0.05 * (expected.high - expected.low)
        assert (result.low, result.high) == pytest.approx(tuple(expected), abs=error)

    @pytest.mark.parametrize("seeds", [3, 19, 20])
    def test_any_number_of_seeds_has_the_same_value(self, seeds):
        first, second = np.random.default_rng(6).uniform(1, 2, (2, seeds))
        times, level = compare(first, second, ratio), compare(first, second, decibels)
        assert times.value == pytest.approx(np.exp(np.log(first / second).mean()))
        assert level.value == pytest.approx(10 * np.log10(first.mean() / second.mean()))
        assert times.low < times.value < times.high
        assert level.low < level.value < level.high

    def test_a_lower_level_gives_a_narrower_interval(self):
        values = np.random.default_rng(3).normal(1, 2, 200)
        result, narrow = (compare(values, 0 * values, difference, level) for level in (0.95, 0.9))
        assert result.low < narrow.low < narrow.high < result.high
        assert result.low == pytest.approx(mean(values).low, abs=0.05)

    def test_decibels_of_few_seeds_cover_the_true_ratio_of_means(self):
        drawn = np.random.default_rng(8).gamma(9, size=(400, 2, 8))
        values = [compare(*pair, decibels) for pair in drawn]
        assert 0.92 < np.mean([estimate.low < 0 < estimate.high for estimate in values]) < 0.98

    @pytest.mark.parametrize("n", [2, 3, 30])
    @pytest.mark.parametrize("contrast", [difference, ratio, decibels])
    @pytest.mark.parametrize("rounding", [0.0, 1e-15])
    def test_contrasts_that_are_equal_up_to_rounding_have_no_interval(self, n, contrast, rounding):
        first = np.linspace(1, 2, n)
        second = first - 0.5 if contrast is difference else 3 * first
        result = compare(first * (1 + rounding * (np.arange(n) % 2)), second, contrast)
        assert np.isfinite(result.value)
        assert np.isnan([result.low, result.high]).all()

    @pytest.mark.parametrize("n", [1, 2])
    def test_too_few_runs_give_no_interval(self, n):
        result = compare(np.arange(n) ** 2.0, np.arange(n) * 3.0, difference)
        assert np.isnan([result.low, result.high]).all()
        assert result.n == n

    @pytest.mark.parametrize("lost", [np.nan, np.inf])
    def test_a_diverged_run_gives_no_interval(self, lost):
        result = compare([1.0, lost, 2.0, 4.0], [1.0, 1.0, 1.0, 2.0], difference)
        assert not np.isfinite(result.value)
        assert np.isnan([result.low, result.high]).all()


class TestHolm:
    def test_levels_rise_from_the_clearest_to_the_first_that_is_open(self):
        rng = np.random.default_rng(8)
        noise, zero = rng.normal(size=(3, 10)), np.zeros(10)
        pairs = {"open": (noise[0], zero), "clear": (noise[1] + 9, zero), "too": (noise[2], zero)}
        result = holm(pairs, difference)
        assert list(result) == list(pairs)
        assert result["clear"] == compare(*pairs["clear"], difference, 1 - 0.05 / 3)
        assert result["open"] == compare(*pairs["open"], difference, 1 - 0.05 / 2)
        assert result["too"] == compare(*pairs["too"], difference, 1 - 0.05 / 2)

    def test_comparisons_are_ordered_by_their_distance_from_the_reference(self):
        rng = np.random.default_rng(8)
        at_one, at_e = np.exp(rng.normal(0, 0.1, (2, 2, 8)))
        at_e[0] *= np.e
        pairs = {"near one": at_one, "near e": at_e}
        result = holm(pairs, ratio, reference=1.0)
        assert result["near e"] == compare(*at_e, ratio, 1 - 0.05 / 2)
        assert result["near one"] == compare(*at_one, ratio, 0.95)
        result = holm(pairs, ratio, reference=np.e)
        assert result["near one"] == compare(*at_one, ratio, 1 - 0.05 / 2)
        assert result["near e"] == compare(*at_e, ratio, 0.95)

    def test_a_comparison_without_an_interval_excludes_nothing(self):
        noise = np.random.default_rng(8).normal(100, 1, 5)
        pairs = {"varies": (noise, np.zeros(5)), "constant": (np.ones(5), np.zeros(5))}
        result = holm({"one": ([1.0], [2.0]), **pairs}, difference)
        assert np.isnan([result["one"].low, result["constant"].low]).all()
        assert result["varies"] == compare(*pairs["varies"], difference, 1 - 0.05 / 3)


@pytest.mark.parametrize(
    ("low", "high", "within", "outside"),
    [
        (-1.0, 1.0, True, False),
        (0.5, 1.1, False, False),
        (-2.0, 2.0, False, False),
        (1.1, 2.0, False, True),
        (-3.0, -1.1, False, True),
        (1.0, 2.0, False, False),
        (np.nan, np.nan, False, False),
        (0.0, np.inf, False, False),
    ],
)
def test_an_interval_is_within_the_margin_or_outside_as_a_whole(low, high, within, outside):
    for reference in (0.0, 7.0):
        estimate = Estimate(reference, low + reference, high + reference, 9)
        assert is_within(estimate, reference, 1.0) == within
        assert is_outside(estimate, reference, 1.0) == outside


def test_first_reached_is_the_first_time_at_or_below_the_target():
    assert first_reached([0, 10, 20, 30], [9.0, 4.0, 5.0, 1.0], 4.0) == 10
    assert first_reached([0, 10], [9.0, np.nan], 1.0) == np.inf


@pytest.mark.parametrize(("error", "comparisons"), [(0.05, 1), (0.001, 1), (0.001, 76_000)])
def test_the_bound_on_many_comparisons_is_bonferronis(error, comparisons):
    chance = 2 * stats.norm.sf(bound(error, comparisons))  # that one comparison passes it
    assert chance * comparisons == pytest.approx(error)


def test_an_estimate_shows_its_interval_if_it_has_one_and_its_runs():
    assert show_estimate(Estimate(5.31, 5.1, 5.52, 100), "dB") == "5.31 dB [5.10, 5.52] (100 seeds)"
    assert show_estimate(Estimate(-1.0, -2.0, 0.5, 3)) == "−1.00 [−2.00, 0.500] (3 seeds)"
    assert show_estimate(Estimate(5.0, np.nan, np.nan, 1), "%") == "5.00 % (1 seed)"
