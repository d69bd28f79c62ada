"""FedCor: the likelihood's gradient, the greedy selection, and reports of losses."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from fedsampling.samplers.fedcor import FedCor, covariance, fitted, greedy, likelihood_slope
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import equal, play_all


def test_slope_is_the_gradient_of_the_log_likelihood():
    rng = np.random.default_rng(0)
    X, changes, weight = rng.normal(size=(2, 5)), rng.normal(size=(3, 5)), np.array([0.5, 0.8, 1])

    def cost(flat):
        K = flat.reshape(2, 5).T @ flat.reshape(2, 5) + 0.3**2 * np.eye(5)
        normal = multivariate_normal(np.zeros(5), K)
        return -float(weight @ normal.logpdf(changes))

    numeric = approx_fprime(X.ravel(), cost, 1e-6).reshape(2, 5)
    result = likelihood_slope(X, changes, weight, 0.3)
    np.testing.assert_allclose(result, numeric, rtol=1e-3, atol=1e-4)


def test_fitting_finds_clients_whose_losses_change_together():
    rng = np.random.default_rng(1)
    common = rng.normal(size=(40, 2))
    changes = np.concatenate([common[:, [0]] * np.ones(3), common[:, [1]] * np.ones(3)], axis=1)
    X = fitted(rng.normal(size=(4, 6)) / 2, changes, np.ones(40), 0.1, 1500)
    K = covariance(X, 0.1)
    correlation = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert correlation[0, 1:3].min() > 0.9 > 0.4 > np.abs(correlation[0, 3:]).max()


def test_greedy_selection_conditions_the_gaussian_process():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3, 6))
    K, p = X.T @ X + 0.1 * np.eye(6), rng.dirichlet(np.ones(6))
    alpha = rng.uniform(0.5, 1, 6)
    result = greedy(K, p, alpha, 3)
    chosen = []
    for _ in range(3):
        candidates = [k for k in range(6) if k not in chosen]
        posterior = K
        if chosen:
            inverse = np.linalg.inv(K[np.ix_(chosen, chosen)])
            posterior = K - K[:, chosen] @ inverse @ K[chosen]
        gain = {
            k: alpha[k] * sum(p[i] * posterior[i, k] for i in candidates) / posterior[k, k] ** 0.5
            for k in candidates
        }
        chosen.append(max(gain, key=gain.get))
    assert result.tolist() == chosen


def random_losses(runs, n):
    """Return what is observed in each of twelve rounds."""
    return [{"losses": losses} for losses in np.random.default_rng(0).normal(size=(12, runs, n))]


def test_losses_are_reported_in_the_warm_up_and_around_later_updates():
    n, m = 8, 3
    setup = equal(n, runs=2)
    ready = prepared(FedCor(m=m, warm_up=2, interval=4, first_steps=3, later_steps=3), setup)
    reported = []
    for _, omega in play_all(ready, setup, 11, random_losses(2, n)):
        np.testing.assert_allclose(omega, 1 / m)
        reported.append(bool(ready.asked().all()))
    # Warm-up in rounds 0 to 2, whose last change is known in round 3; updates in rounds 4 and 8.
    assert [t for t, is_reported in enumerate(reported) if is_reported] == [0, 1, 2, 3, 4, 5, 8, 9]
    assert ready.state.times[-1] == 8


def test_a_selected_client_is_discounted_until_the_next_update():
    setup = equal(6)
    ready = prepared(FedCor(m=2, warm_up=1, interval=100, first_steps=2), setup)
    *_, (slots, _) = play_all(ready, setup, 3, [{"losses": np.arange(6.0)[None]}] * 3)
    assert sorted(ready.state.alpha[0].tolist()) == pytest.approx([0.9, 0.9, 1, 1, 1, 1])
    assert ready.state.alpha[0, slots.client] == pytest.approx([0.9, 0.9])


def test_observations_are_forgotten_by_age():
    setup = equal(6)
    settings = {"m": 2, "warm_up": 2, "interval": 5, "first_steps": 2, "later_steps": 2}
    ready = prepared(FedCor(history=6, **settings), setup)
    all_kept = prepared(FedCor(history=100, **settings), setup)
    played = [play_all(one, setup, 12, random_losses(1, 6)) for one in (ready, all_kept)]
    positions = [np.array_equal(ready.state.X, all_kept.state.X) for _ in zip(*played, strict=True)]
    # Round 5 is learned in round 6, when the oldest observation (round 0) has age 5; round 10 in
    # round 11, when rounds 0 to 2 are older than 6 rounds.
    assert positions == [True] * 11 + [False]
