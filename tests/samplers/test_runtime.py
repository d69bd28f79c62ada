"""Sampling by estimated runtime from gradient norms."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup
from fedsampling.samplers.runtime import (
    ApproxOpt,
    Luo,
    approximately_optimal,
    luo_probabilities,
    runtime_objective,
)

from .rounds import equal, mean_weights, play, play_all, sized


def clients(n, tail, seed=0):
    rng = np.random.default_rng(seed)
    delays = 30 + rng.lognormal(4, 2, n) if tail else rng.uniform(15, 100, n)
    return delays, rng.lognormal(size=n) / n


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("c", [0.0, 0.1, 100.0])
def test_luo_agrees_with_the_minimum_of_the_authors_method(c, tail):
    delays, scores = clients(30, tail)
    q = luo_probabilities(delays, scores, c)
    optimum = minimize(
        lambda x: np.log(runtime_objective(delays, scores, c, x)),
        np.full(30, 1 / 30),
        method="SLSQP",
        bounds=[(1e-7, 1)] * 30,
        constraints=[{"type": "eq", "fun": lambda x: x.sum() - 1}],
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert q.sum() == pytest.approx(1)
    assert np.log(runtime_objective(delays, scores, c, q)) <= optimum.fun + 1e-6


def test_slow_and_unimportant_clients_are_drawn_less_often():
    q = luo_probabilities(np.array([1.0, 5.0, 1.0]), np.array([1.0, 1.0, 0.2]), 0.1)
    assert q[0] > q[1:].max()
    assert luo_probabilities(np.ones(3), np.array([1.0, 1.0, 0.0]), 0.0)[2] < 2e-7
    np.testing.assert_allclose(luo_probabilities(np.ones(4), np.zeros(4), 1.0), 0.25)


@pytest.mark.parametrize("tail", [False, True])
def test_approximately_optimal_is_no_worse_than_its_starts(tail):
    delays, scores = clients(40, tail)
    q = approximately_optimal(delays, scores, 0.1, 8)
    value = runtime_objective(delays, scores, 0.1, q, 8)
    for start in (luo_probabilities(delays, scores, 0.1), np.full(40, 1 / 40)):
        assert value < runtime_objective(delays, scores, 0.1, start, 8)
    assert q.min() > 0
    # No small exchange between two clients is better: a local minimum.
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, 40, (200, 2)):
        step = 1e-4 * min(q[i], q[j])
        moved = q.copy()
        moved[i] += step
        moved[j] -= step
        assert runtime_objective(delays, scores, 0.1, moved, 8) >= value * (1 - 1e-7)


def test_trust_constr_starts_at_the_uniform_distribution_and_improves():
    delays, scores = clients(20, True)
    uniform = np.full(20, 1 / 20)
    problem = (delays, scores, 0.1, 5)
    np.testing.assert_allclose(approximately_optimal(*problem, 0, "trust-constr"), uniform)
    result = approximately_optimal(*problem, 60, "trust-constr")
    value = runtime_objective(delays, scores, 0.1, result, 5)
    assert value < runtime_objective(delays, scores, 0.1, uniform, 5)
    # With finite differences it meets the minimum of the other solver, after more iterations.
    differences = approximately_optimal(*problem, 300, "trust-constr", "2-point")
    best = runtime_objective(delays, scores, 0.1, approximately_optimal(*problem), 5)
    assert runtime_objective(delays, scores, 0.1, differences, 5) == pytest.approx(best, rel=0.01)


def test_for_one_draw_both_objectives_are_the_same():
    delays, scores = clients(12, False)
    q = approximately_optimal(delays, scores, 0.2, 1)
    luo = luo_probabilities(delays, scores, 0.2)
    value = runtime_objective(delays, scores, 0.2, luo)
    assert runtime_objective(delays, scores, 0.2, q) == pytest.approx(value, rel=1e-6)
    assert value == pytest.approx(luo @ delays * ((scores**2 / luo).sum() + 0.2))


@pytest.mark.parametrize("scheme", [Luo, ApproxOpt])
@pytest.mark.parametrize("duplicates", ["independently", "once"])
def test_draws_follow_the_probabilities_and_weights_are_their_inverse(scheme, duplicates):
    runs, m = 30, 4
    delays, p = clients(12, False)[0], np.arange(1, 13) / 78
    gradients = np.tile(np.random.default_rng(0).standard_normal((12, 5)), (runs, 1, 1))
    scores = p * np.linalg.norm(gradients[0], axis=1)
    q = (
        luo_probabilities(delays, scores, 0.5)
        if scheme is Luo
        else approximately_optimal(delays, scores, 0.5 * scores.sum() ** 2, m)
    )
    setup = Setup(np.ones(12, np.int64), p, runs, delays=delays)
    sampler = prepared(scheme(m=m, c=0.5, duplicates=duplicates), setup)
    slots, omega = play(sampler, setup, observed={"delays": delays, "gradients": gradients})
    assert slots.times.sum() == runs * m
    np.testing.assert_allclose(omega, p[slots.client] / q[slots.client] / m * slots.times)
    drawn = np.bincount(slots.client, slots.times, 12) / (runs * m)
    # 120 draws: six standard errors, a false alarm in one of 48 comparisons has probability 1e-7.
    assert (np.abs(drawn - q) < 6 * np.sqrt(q * (1 - q) / (runs * m)) + 0.01).all()


@pytest.mark.parametrize(("scheme", "odds"), [(Luo, [4, 1, 2]), (ApproxOpt, [1, 1, 2])])
def test_luo_remembers_the_largest_norm_and_approx_opt_the_last(scheme, odds):
    setup = equal(3, delays=np.ones(3))
    ready = prepared(scheme(m=1, c=0.0), setup)
    gradients = np.array([[4.0, 1, 1], [1, 1, 2]])[:, None, :, None]
    observed = [{"delays": setup.delays, "gradients": of_round} for of_round in gradients]
    *_, (slots, omega) = play_all(ready, setup, 2, observed)
    share = np.array(odds)[slots.client] / sum(odds)
    assert 1 / 3 / omega == pytest.approx(share, rel=1e-3)


def test_approx_opt_solves_with_its_solver():
    setup = sized(np.arange(3, 11), delays=clients(8, True)[0])
    gradients = np.random.default_rng(0).standard_normal((1, 8, 2))
    settings = {"solver": "trust-constr", "solver_iterations": 5}
    ready = prepared(ApproxOpt(m=4, c=0.5, **settings), setup)
    play(ready, setup, observed={"delays": setup.delays, "gradients": gradients})
    scores = setup.p * np.linalg.norm(gradients[0], axis=1)
    c = 0.5 * scores.sum() ** 2
    expected = approximately_optimal(setup.delays, scores, c, 4, 5, "trust-constr")
    np.testing.assert_allclose(ready.state.q[0], expected)


@pytest.mark.parametrize("scheme", [Luo, ApproxOpt])
def test_gradients_of_a_diverged_run_do_not_stop_the_others(scheme):
    setup = sized(np.arange(3, 11), 2, delays=np.arange(1.0, 9))
    gradients = np.random.default_rng(0).standard_normal((2, 8, 2))
    lost = np.stack([np.full((8, 2), np.nan), gradients[1]])
    played = []
    for of_second_round in (gradients, lost):
        observed = [{"delays": setup.delays, "gradients": g} for g in (gradients, of_second_round)]
        *_, last = play_all(prepared(scheme(m=3, c=0.5), setup), setup, 2, observed)
        played.append(last)
    (slots, omega), (slots_with_lost, omega_with_lost) = played
    assert np.isfinite(omega_with_lost).all()
    second = slots.run == 1
    np.testing.assert_array_equal(slots_with_lost.client[second], slots.client[second])
    np.testing.assert_array_equal(omega_with_lost[second], omega[second])


QUICK = {"solver": "trust-constr", "solver_iterations": 2}


@pytest.mark.parametrize("size", [8, 15])
def test_with_all_clients_as_candidates_approx_opt_is_the_exact_one(size):
    setup = sized(np.arange(3, 11), 3, delays=clients(8, False)[0])
    gradients = np.random.default_rng(0).standard_normal((3, 8, 2))
    observed = {"delays": setup.delays, "gradients": gradients}
    samplers = ApproxOpt(m=4, **QUICK), ApproxOpt(m=4, candidates=size, **QUICK)
    played = [play(prepared(sampler, setup), setup, observed=observed) for sampler in samplers]
    (all_slots, all_omega), (slots, omega) = played
    np.testing.assert_array_equal(slots.client, all_slots.client)
    np.testing.assert_array_equal(omega, all_omega)


def test_approx_opt_with_candidates_is_unbiased():
    setup = sized(np.arange(3, 11), 250, delays=np.arange(1.0, 9))
    gradients = np.broadcast_to(np.linspace(3, 1, 8)[:, None], (250, 8, 1))
    observed = {"delays": setup.delays, "gradients": gradients}
    ready = prepared(ApproxOpt(m=4, candidates=4, **QUICK), setup)
    mean, error = mean_weights(*play(ready, setup, observed=observed), setup)
    assert (abs(mean - setup.p) < 4.5 * error).all()
