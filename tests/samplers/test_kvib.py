"""K-Vib: probabilities from the norms of earlier rounds."""

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import minimize

from fedsampling.samplers.kvib import KVib, follow_leader, mixing
from fedsampling.samplers.optimal import probabilities
from fedsampling.samplers.protocol.prepared import prepared

from . import rounds

norms = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-6, 1e6)), min_size=1, max_size=40
).map(np.array)


def test_probabilities_minimise_the_regularised_cost_so_far():
    rng = np.random.default_rng(0)
    for K in (1, 2, 4):
        feedback, gamma = rng.lognormal(sigma=2, size=6), 0.1
        optimum = minimize(
            lambda p, w=feedback + gamma: (w / p).sum(),
            np.full(6, K / 6),
            jac=lambda p, w=feedback + gamma: -w / p**2,
            bounds=[(1e-9, 1)] * 6,
            constraints={"type": "eq", "fun": lambda p, K=K: p.sum() - K},
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        p = follow_leader(feedback, gamma, K, 0.0)
        assert ((feedback + gamma) / p).sum() <= optimum.fun * (1 + 1e-6)
        np.testing.assert_allclose(p, optimum.x, atol=2e-3)


def test_probabilities_are_uniform_without_feedback_or_with_full_mixing():
    np.testing.assert_allclose(follow_leader(np.array([9.0, 1, 0]), 1.0, 2, 1.0), 2 / 3)
    np.testing.assert_allclose(follow_leader(np.zeros(3), 1.0, 2, 0.1), 2 / 3)
    assert mixing(100, 10, 500) == (100 / 5000) ** (1 / 3)
    assert mixing(100, 1, 1) == 1


def test_with_constant_norms_probabilities_converge_to_the_optimal_ones():
    norms, n = np.array([1.0, 2, 4, 0.5, 1]), 5
    setup = rounds.equal(n)
    ready = prepared(KVib(m=2, horizon=10**9, gamma=1e-3), setup)
    trained = lambda _, slots: {"update_norms": norms[slots.client]}  # noqa: E731
    for slots, omega in rounds.play_all(ready, setup, 1500, trained=trained):
        np.testing.assert_allclose(omega, 1 / n / ready.state.q[0, slots.client])
    np.testing.assert_allclose(ready.state.q[0], probabilities(norms, 2), rtol=0.12)
