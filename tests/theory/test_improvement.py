"""The gain of optimal client sampling agrees with sums over all sets of reports."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.samplers.optimal import approximate_probabilities, probabilities
from fedsampling.theory.improvement import improvement_factor, sampling_variance, variance_ratio


def test_variance_is_that_of_all_sets_of_reporters():
    rng = np.random.default_rng(0)
    n = 5
    w, U = rng.dirichlet(np.ones(n)), rng.normal(size=(n, 3))
    q = rng.uniform(0.2, 1, size=n)
    expected = 0.0
    for reports in product([0, 1], repeat=n):
        S = np.array(reports)
        chance = np.prod(np.where(S, q, 1 - q))
        expected += chance * ((((S / q - 1) * w) @ U) ** 2).sum()
    norms = w * np.linalg.norm(U, axis=1)
    assert sampling_variance(norms, q) == pytest.approx(expected)


def test_an_update_that_is_never_reported_is_lost():
    assert sampling_variance(np.array([1.0, 0]), np.array([0.0, 0])) == np.inf
    assert sampling_variance(np.array([1.0, 0]), np.array([1.0, 0])) == 0


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=1, max_size=30).map(np.array),
    st.data(),
)
def test_ratio_and_factor_stay_where_the_theorems_need_them(norms, data):
    n, m = norms.size, data.draw(st.integers(1, norms.size))
    alpha = variance_ratio(norms, probabilities(norms, m), m)
    assert 0 <= alpha <= 1 + 1e-12
    assert m / n - 1e-12 <= improvement_factor(alpha, n, m) <= 1
    # No other probabilities do better, Algorithm 2's among them.
    rough = variance_ratio(norms, approximate_probabilities(norms, m, 1), m)
    assert rough >= alpha * (1 - 1e-9)


def test_equal_updates_are_the_worst_case_and_few_updates_the_best():
    n, m = 8, 3
    equal = variance_ratio(np.ones(n), probabilities(np.ones(n), m), m)
    assert equal == pytest.approx(1)
    assert improvement_factor(equal, n, m) == pytest.approx(m / n)
    norms = np.array([5.0, 0, 0, 1, 0, 2, 0, 0])
    assert variance_ratio(norms, probabilities(norms, m), m) == 0
    assert improvement_factor(0.0, n, m) == 1


def test_full_participation_and_no_update_leave_nothing_to_gain():
    assert variance_ratio(np.ones(4), np.ones(4), 4) == 0
    assert variance_ratio(np.zeros(4), np.zeros(4), 2) == 0


def test_many_rounds_at_once_are_each_by_itself():
    norms = np.random.default_rng(0).lognormal(size=(6, 9))
    q = np.stack([probabilities(row, 2) for row in norms])
    np.testing.assert_allclose(
        variance_ratio(norms, q, 2),
        [variance_ratio(a, b, 2) for a, b in zip(norms, q, strict=True)],
    )
