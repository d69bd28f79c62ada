"""Theorem 2's recursion on two clients in one dimension, where every outcome can be enumerated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.chen2022optimal.theory import bound, constants, step_limit

from fedsampling.theory.improvement import sampling_variance


def one_round(w, minima, x, eta, q):
    """E‖r⁺‖² for f_i = ½ (x − c_i)², no noise, independent reports: all 2^n outcomes."""
    gradients, optimum, expected = x - minima, w @ minima, 0.0
    for outcome in np.ndindex(*(2,) * len(w)):
        reports = np.array(outcome, bool)
        probability = np.where(reports, q, 1 - q).prod()
        estimate = (w * gradients / q)[reports].sum()
        expected += probability * (x - eta * estimate - optimum) ** 2
    return expected


def sides(w, minima, distance, share, corrected):
    """Both sides of (13) under uniform sampling with m = 1, γ = 1/n, L = μ = 1, M = σ² = 0."""
    n, optimum = len(w), w @ minima
    mismatch = (optimum - minima) ** 2 / 2
    eta = share * step_limit(1 / n, w, 1.0, 0.0)
    left = one_round(w, minima, optimum + distance, eta, np.full(n, 1 / n))
    betas = constants(w, mismatch, 1.0, 0.0, 0.0, corrected)
    return left, bound(distance**2, eta, 1 / n, 1.0, betas)


def test_printed_recursion_fails_near_the_optimum_with_unequal_weights():
    left, right = sides(np.array([0.8, 0.2]), np.array([0.0, 5.0]), 0.01, 0.9, corrected=False)
    assert left > right * 1.001


clients = st.integers(2, 5).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(0.01, 1), min_size=n, max_size=n),
        st.lists(st.floats(-5, 5), min_size=n, max_size=n),
    )
)


@settings(max_examples=60)
@given(clients, st.floats(-3, 3), st.floats(0.01, 0.999))
def test_corrected_recursion_holds_for_all_weights(drawn, distance, share):
    w, minima = map(np.array, drawn)
    left, right = sides(w / w.sum(), minima, distance, share, corrected=True)
    assert left <= right + 1e-9 * (1 + right)


@settings(max_examples=30)
@given(clients, st.floats(-3, 3), st.floats(0.01, 0.999))
def test_printed_recursion_holds_for_equal_weights(drawn, distance, share):
    minima = np.array(drawn[1])
    w = np.full(len(minima), 1 / len(minima))
    left, right = sides(w, minima, distance, share, corrected=False)
    assert left <= right + 1e-9 * (1 + right)


def test_constants_are_those_of_the_theorem():
    w, mismatch = np.array([0.75, 0.25]), np.array([2.0, 3.0])
    printed = constants(w, mismatch, 5.0, 0.5, 0.1, corrected=False)
    weighted = 0.5625 * 2 + 0.0625 * 3
    assert printed.beta2 == pytest.approx(10 * weighted)
    assert printed.beta1 == pytest.approx(10 * 1.5 * weighted + 0.1 * 0.625)
    corrected = constants(w, mismatch, 5.0, 0.5, 0.1, corrected=True)
    assert corrected.beta2 == pytest.approx(10 * 0.75 * (0.75 * 2 + 0.25 * 3))
    equal = np.full(2, 0.5)
    both = [constants(equal, mismatch, 5.0, 0.5, 0.1, corrected) for corrected in (True, False)]
    assert both[0] == pytest.approx(both[1])


def test_theorem_3_as_printed_fails_with_equal_weights_and_norms():
    """At the optimum, with Hessians I, L = 1, M = σ² = 0 and R = 2, its left side is zero."""
    n, R, step, gamma = 8, 2, 1e-4, 1 / 8
    w, minima = np.full(n, 1 / n), np.tile([1.0, -1.0], n // 2)
    share = 1 - (1 - step) ** R  # of the way to its minimum that a client moves
    server = np.sqrt(gamma / (w @ w))
    eta = R * step * server
    assert eta <= min(1 / 2, gamma / (1 + w.max())) / 8
    distance = one_round(w, minima, 0.0, server * share, np.full(n, gamma))
    mismatch = minima**2 / 2
    rest = eta**2 * 72 * (w @ mismatch) - distance / eta
    beta1 = 4 * (1 - gamma) * (w**2 @ mismatch)
    assert eta * beta1 + rest < 0 < eta * beta1 / gamma + rest


def test_independent_sampling_does_not_minimise_the_variance():
    """Of two clients with equal updates exactly one reports, each with probability 1/2."""
    w, q, update = np.full(2, 0.5), np.full(2, 0.5), np.ones(2)
    exactly_one = [(w[i] * update[i] / q[i] - w @ update) ** 2 for i in range(2)]
    assert q @ exactly_one == 0 < sampling_variance(w * update, q)
