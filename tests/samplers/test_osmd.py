"""OSMD: the mirror step, its projection, the estimated gradient, and the limit of probabilities."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from fedsampling.samplers.osmd import OSMD, mirror_step, project, variance_gradient
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Slots, View

from . import rounds


def closest_probabilities(p, floor):
    """Minimise Σ x log(x/p) − x + p over the probabilities of at least `floor`, numerically."""
    n = len(p)
    return minimize(
        lambda x: (x * np.log(x / p) - x + p).sum(),
        np.full(n, 1 / n),
        jac=lambda x: np.log(x / p),
        bounds=[(floor, 1)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x


@pytest.mark.parametrize("alpha", [0.01, 0.4, 0.9])
def test_the_projection_minimises_the_divergence(alpha):
    rng = np.random.default_rng(0)
    for n in (2, 3, 7):
        p = rng.lognormal(sigma=2, size=n)
        projected = project(p, alpha / n)
        np.testing.assert_allclose(projected, closest_probabilities(p, alpha / n), atol=1e-5)
        assert projected.min() >= alpha / n - 1e-12
        assert projected.sum() == pytest.approx(1)


def test_the_projection_keeps_probabilities_that_are_large_enough():
    p = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(project(p, 0.1), p)
    np.testing.assert_allclose(project(p, 1 / 3), 1 / 3)
    np.testing.assert_allclose(project(np.array([0.0, 0, 1]), 0.1), [0.1, 0.1, 0.8])


def test_a_mirror_step_survives_any_gradient():
    p, gradient = np.full(3, 1 / 3), np.array([0.0, -1e9, 0])
    np.testing.assert_allclose(mirror_step(p, gradient, 1.0, 0.3), [0.1, 0.8, 0.1])


def test_the_gradient_is_unbiased_over_all_draws():
    K, p, a = 2, np.array([0.5, 0.3, 0.2]), np.array([1.0, 4, 9])
    mean = sum(
        p[list(drawn)].prod() * variance_gradient(p, a * np.bincount(drawn, minlength=3), K)
        for drawn in product(range(3), repeat=K)
    )
    np.testing.assert_allclose(mean, -a / (K * p**2))


@pytest.mark.parametrize("duplicates", ["independently", "once"])
def test_weights_are_unbiased_over_all_draws_after_learning(duplicates):
    """Each pair of draws is enumerated, with its probability, by the uniforms that lead to it."""
    setup = rounds.sized([1, 2, 5], 1)
    norms = np.array([3.0, 1, 2])
    trained = lambda slots: {"update_norms": norms[slots.client]}  # noqa: E731
    ready = prepared(OSMD(m=2, eta=5.0, duplicates=duplicates), setup)
    for t in range(20):
        rounds.play(ready, setup, t, trained=trained)
    q = ready.state.p[0]
    assert q.max() > 1.5 * q.min()  # it has learned

    scheme, total = ready.scheme, np.zeros(3)
    view = View(setup.n_samples, setup.p, 20, 1)
    state = scheme.begin(ready.state, view, None)
    for drawn in product(range(3), repeat=2):
        slots = Slots.drawn(np.array([drawn]), duplicates)
        omega = scheme.weigh(state, slots, view, None)
        total += q[list(drawn)].prod() * np.bincount(slots.client, omega, 3)
    np.testing.assert_allclose(total, setup.p)


def test_probabilities_converge_to_those_of_least_variance():
    """With constant norms, these are proportional to λ ‖U‖."""
    norms = np.array([1.0, 2, 4, 1, 2])
    setup = rounds.equal(5)
    ready = prepared(OSMD(m=3, eta=2.0, alpha=0.1), setup)
    trained = lambda _, slots: {"update_norms": norms[slots.client]}  # noqa: E731
    path = []
    for slots, omega in rounds.play_all(ready, setup, 2_000, trained=trained):
        np.testing.assert_allclose(omega, 0.2 / (3 * ready.state.q[0, slots.client]))
        path.append(ready.state.p[0].copy())
    mean = np.mean(path[1_000:], axis=0)
    np.testing.assert_allclose(mean, norms / norms.sum(), rtol=0.1)


def test_unavailable_clients_keep_their_probability():
    setup = rounds.equal(4)
    ready = prepared(OSMD(m=2, eta=10.0), setup)
    trained = lambda slots: {"update_norms": 1.0 + slots.client}  # noqa: E731
    for t in range(10):
        slots, _ = rounds.play(ready, setup, t, trained=trained, offered=[0, 1, 3])
        assert set(slots.client) <= {0, 1, 3}
    assert ready.state.p[0, 2] == 0.25
    assert ready.state.p[0].sum() == pytest.approx(1)
    assert ready.state.p[0, 3] > ready.state.p[0, 0]
