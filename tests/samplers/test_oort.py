"""Oort: utilities as in Algorithm 1, the pacer, and exploration."""

from math import log, sqrt

import numpy as np
from tests.samplers.rounds import equal, play_with_losses

from fedsampling.samplers.oort import Oort, admitted, statistical_utility, system_utility, utilities


def test_statistical_utility_is_that_of_single_samples():
    losses = [np.array([0.5, 2.0, 1.0]), np.array([3.0])]
    samples = np.array([len(part) for part in losses])
    result = statistical_utility(samples, np.array([sqrt((part**2).mean()) for part in losses]))
    printed = [len(part) * sqrt(sum(loss**2 for loss in part) / len(part)) for part in losses]
    np.testing.assert_allclose(result, printed)


def test_utilities_follow_the_box_line_by_line():
    U, D = np.array([2.0, 10.0, 6.0]), np.array([4.0, 40.0, 5.0])
    L, R, T, alpha = np.array([3, 1, 7]), 9, 5.0, 2.0
    expected = []
    for u, d, last in zip(U, D, L, strict=True):
        util = (u - 2) / 8 + sqrt(0.1 * log(R) / last)
        if d > T:
            util *= (T / d) ** alpha
        expected.append(util)
    result = utilities(U, system_utility(D, T, alpha), L, R, clip=1.0)
    np.testing.assert_allclose(result, expected)
    # Larger utilities are cut off; where nothing distinguishes clients only time does.
    assert utilities(U, np.ones(3), np.ones(3), 1, clip=0.5).tolist() == [0, 1, 1]
    assert utilities(np.ones(3), np.ones(3), np.ones(3), 1).tolist() == [1, 1, 1]


def test_clients_above_the_cut_off_are_admitted():
    util = np.array([1.0, 0.96, 0.94, 2.0])
    assert admitted(util, 2, 0.95).tolist() == [True, True, False, True]
    assert admitted(util, 2, 1.0).tolist() == [True, False, False, True]


def play(scheme, rounds, loss, n=10, runs=4):
    setup = equal(n, runs, delays=np.arange(1.0, n + 1))
    ready, results = play_with_losses(scheme, setup, rounds, loss)
    return ready, [slots for slots, _ in results]


def test_each_round_takes_m_different_clients_and_explores_at_its_rate():
    scheme = Oort(m=8, explore=0.5, explore_least=0.25)
    _, rounds = play(scheme, 4, lambda t, who: 1.0 + who, n=30)
    explored = [set() for _ in range(4)]
    for t, slots in enumerate(rounds):
        for run in range(4):
            clients = set(slots.client[slots.run == run].tolist())
            assert len(clients) == 8
            # Nobody is known at first; then (1 - ε) m, rounded up, are.
            assert len(clients - explored[run]) == (8 if t == 0 else int(8 * 0.5 * 0.98**t))
            explored[run] |= clients


def test_unexplored_clients_are_drawn_by_speed():
    _, (slots,) = play(Oort(m=1), 1, lambda t, who: 1.0 + who, n=3, runs=20_000)
    share = np.bincount(slots.client, minlength=3) / 20_000
    speed = 1 / np.arange(1, 4)
    np.testing.assert_allclose(share, speed / speed.sum(), atol=5 * 0.5 / sqrt(20_000))


def test_a_slow_client_is_not_selected_for_its_large_loss():
    settings = {"explore_least": 0, "explore": 0.01, "cutoff": 1.0, "clip": 1.0}
    slow = Oort(m=1, penalty=50.0, pace=0.01, **settings)
    _, rounds = play(slow, 12, lambda t, who: 1.0 + 9.0 * (who == 9), n=10, runs=5)
    assert 9 not in rounds[-1].client  # ten times slower than T: (1/10)^50 of its utility


def test_the_pacer_relaxes_when_utility_falls_and_only_then():
    falling = play(Oort(m=3, window=2), 8, lambda t, who: 1 / (1.0 + t) + 0 * who)[0]
    np.testing.assert_allclose(falling.state.paces, 0.3 + 3 * 0.05)  # after rounds 4, 6 and 8
    rising = play(Oort(m=3, window=2), 8, lambda t, who: 1.0 + t + 0 * who)[0]
    np.testing.assert_allclose(rising.state.paces, 0.3)
