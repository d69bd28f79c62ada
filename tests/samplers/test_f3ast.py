"""F3AST: the greedy selection, tracked rates, and mean weights."""

from itertools import combinations

import numpy as np

from fedsampling.samplers.f3ast import F3AST, greedy, tracked
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import play, sized


def test_the_selection_reduces_the_variance_most():
    rng = np.random.default_rng(0)
    p, rates = rng.dirichlet(np.ones(6)), rng.uniform(0.1, 0.9, 6)

    def descent(chosen):  # of H(r) = Σ p²/r along the chosen clients, by differences
        step = 1e-6 * np.isin(np.arange(6), chosen)
        return (p**2 / rates - p**2 / (rates + step)).sum()

    best = max(combinations(range(6), 2), key=descent)
    assert sorted(greedy(p, rates, 2, np.zeros(6))) == list(best)


def test_ties_are_broken_at_random():
    equal = np.full(4, 0.25)
    assert greedy(equal, equal, 2, np.array([0.9, 0.1, 0.5, 0.3])).tolist() == [1, 3]


def test_a_rate_is_an_exponential_average():
    rates, member = np.array([0.5, 0.5]), np.array([True, False])
    np.testing.assert_allclose(tracked(rates, member, 0.1), [0.55, 0.45])


def test_mean_weights_converge_to_importances_under_unequal_availability():
    n, rounds = 6, 3000
    setup = sized([1, 2, 3, 4, 5, 6])
    ready = prepared(F3AST(m=2, beta=0.005), setup)
    available = np.random.default_rng(1).random((rounds, n)) < np.linspace(0.3, 0.9, n)
    total = np.zeros(n)
    for t, present in enumerate(available):
        offered = np.flatnonzero(present)
        if not len(offered):
            continue
        slots, omega = play(ready, setup, t, offered=offered)
        if t >= rounds // 2:
            total[slots.client] += omega
    np.testing.assert_allclose(total / (rounds // 2), setup.p, rtol=0.12)
