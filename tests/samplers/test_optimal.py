"""Optimal client sampling: equation (6) against independent solutions of the same problem."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from fedsampling.errors import InputError
from fedsampling.samplers.optimal import optimal_weights, probabilities

norms = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-6, 1e6)), min_size=1, max_size=40
).map(np.array)


def by_bisection(u, m):
    """Find q_i = min(1, u_i / τ) with Σ q_i = m, which the optimality conditions ask for."""
    low, high = 0.0, u.sum()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, u / middle).sum() > m else (low, middle)
    return np.minimum(1, u / high)


@given(norms, st.data())
@example(np.array([1e-320, 1e-320, 1e300]), None)
@example(np.array([1.0, 1.0, 1.7e308]), None)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_probabilities_meet_their_constraints(u, data):
    m = data.draw(st.integers(1, u.size)) if data else 2
    q = probabilities(u, m)
    assert ((q >= 0) & (q <= 1)).all()
    assert ((q > 0) == (u > 0)).all()
    if (u > 0).sum() > m:
        assert q.sum() == pytest.approx(m)
        if data:
            np.testing.assert_allclose(q, by_bisection(u, m), rtol=1e-7)
    else:
        np.testing.assert_allclose(q[u > 0], 1, atol=1e-12)
    order = np.argsort(u)
    assert (np.diff(q[order]) >= 0).all()
    assert all(np.ptp(q[u == value]) == 0 for value in set(u))  # equal norms, equal chances


@pytest.mark.parametrize("seed", range(5))
def test_no_other_sampling_has_less_variance(seed):
    rng = np.random.default_rng(seed)
    n, m = 6, int(rng.integers(1, 6))
    u = rng.lognormal(sigma=1.5, size=n)
    found = minimize(
        lambda q: (u**2 * (1 - q) / q).sum(),
        np.full(n, m / n),
        jac=lambda q: -((u / q) ** 2),
        method="SLSQP",
        bounds=[(1e-6, 1)] * n,
        constraints={"type": "eq", "fun": lambda q: q.sum() - m},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    q = probabilities(u, m)
    assert (u**2 * (1 - q) / q).sum() <= found.fun * (1 + 1e-9)
    np.testing.assert_allclose(q, found.x, atol=1e-3)


def test_small_case_by_hand():
    # 4 exceeds its share 2·4/7, so it is certain; 1, 1, 1 share the other report.
    np.testing.assert_allclose(probabilities(np.array([1, 4, 1, 1]), 2), [1 / 3, 1, 1 / 3, 1 / 3])


def test_nobody_reports_where_nothing_changed():
    np.testing.assert_array_equal(probabilities(np.zeros(3), 2), 0)


@pytest.mark.parametrize(
    ("u", "m", "message"),
    [
        ([1.0, -1.0], 1, "non-negative"),
        ([1.0, np.nan], 1, "finite"),
        ([1.0, np.inf], 1, "finite"),
        ([1.0, 1.0], 3, "use 1 to 2"),
        ([1.0, 1.0], 0, "use 1 to 2"),
    ],
)
def test_bad_norms_are_refused(u, m, message):
    with pytest.raises(InputError, match=message):
        probabilities(np.array(u), m)


def test_weights_are_unbiased_and_zero_for_the_silent():
    p = np.array([0.2, 0.3, 0.5])
    q = np.array([0.5, 1.0, 0.0])
    omega = optimal_weights(p, q, np.random.default_rng(0), (50_000,))
    assert set(np.unique(omega[:, 0])) == {0.0, 0.4}
    assert omega[:, 0].mean() == pytest.approx(0.2, abs=5 * 0.2 / np.sqrt(50_000))
    assert (omega[:, 1] == 0.3).all()
    assert (omega[:, 2] == 0).all()
