"""Oort: utilities as in Algorithm 1, the pacer, and exploration."""

from math import log, sqrt

import numpy as np
import pytest
from tests.samplers.rounds import equal, play_all, sized

from fedsampling.samplers.oort import Oort, admitted, statistical_utility, system_utility, utilities
from fedsampling.samplers.oort_fedscale import OortFedScale, pool, preferred_duration, slowed
from fedsampling.samplers.protocol.prepared import prepared


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


def played(scheme, setup, rounds, loss):
    """Return the sampler after the rounds, and each round's slots and weights."""
    ready, delays = prepared(scheme, setup), [{"delays": setup.delays}] * rounds
    losses = lambda t, slots: {"work_losses": loss(t, slots.client)}  # noqa: E731
    return ready, [*play_all(ready, setup, rounds, delays, losses)]


def play(scheme, rounds, loss, n=10, runs=4):
    setup = equal(n, runs, delays=np.arange(1.0, n + 1))
    ready, results = played(scheme, setup, rounds, loss)
    return ready, [slots for slots, _ in results]


def test_each_round_takes_m_different_clients_and_explores_at_its_rate():
    _, played = play(Oort(m=4, explore=0.5, explore_least=0.25), 4, lambda t, who: 1.0 + who)
    explored = [set() for _ in range(4)]
    for t, slots in enumerate(played):
        for run in range(4):
            clients = set(slots.client[slots.run == run].tolist())
            assert len(clients) == 4
            # Nobody is known at first; then (1 - ε) m, rounded up, are, as long as others are left.
            new = 4 if t == 0 else min(int(4 * 0.5 * 0.98**t), 10 - len(explored[run]))
            assert len(clients - explored[run]) == new
            explored[run] |= clients


def test_fedscales_rate_decays_from_the_first_round_on():
    """ε = explore · decay^(rounds so far + 1): 1/8 of 4 clients are none in the second round."""
    sampler = OortFedScale(m=4, explore=0.5, decay=0.5, explore_least=0.0)
    _, (first, second) = play(sampler, 2, lambda t, who: 1.0 + who)
    for run in range(4):
        explored = first.client[first.run == run]
        assert set(second.client[second.run == run]) == set(explored)


def test_unexplored_clients_are_drawn_by_speed():
    _, (slots,) = play(Oort(m=1), 1, lambda t, who: 1.0 + who, n=3, runs=20_000)
    share = np.bincount(slots.client, minlength=3) / 20_000
    speed = 1 / np.arange(1, 4)
    np.testing.assert_allclose(share, speed / speed.sum(), atol=5 * 0.5 / sqrt(20_000))


def test_a_slow_client_is_not_selected_for_its_large_loss():
    settings = {"explore_least": 0, "explore": 0.01, "cutoff": 1.0, "clip": 1.0}
    slow = Oort(m=1, penalty=50.0, pace=0.01, **settings)
    _, played = play(slow, 12, lambda t, who: 1.0 + 9.0 * (who == 9), n=10, runs=5)
    assert 9 not in played[-1].client  # ten times slower than T: (1/10)^50 of its utility


def test_the_pacer_relaxes_when_utility_falls_and_only_then():
    falling = play(Oort(m=3, window=2), 8, lambda t, who: 1 / (1.0 + t) + 0 * who)[0]
    np.testing.assert_allclose(falling.state.paces, 0.3 + 3 * 0.05)  # after rounds 4, 6 and 8
    rising = play(Oort(m=3, window=2), 8, lambda t, who: 1.0 + t + 0 * who)[0]
    np.testing.assert_allclose(rising.state.paces, 0.3)


# Oort as in FedScale: scores, pool and pacer, compared with an independent computation.


def test_slow_clients_are_penalised_beyond_a_percentile():
    seconds = np.array([5.0, 1.0, 3.0, 2.0, 4.0])
    T = preferred_duration(seconds, 50)
    assert T == 3.0  # the sorted duration at position ⌊5 × 0.5⌋
    assert preferred_duration(seconds, 100) == np.inf
    np.testing.assert_allclose(slowed(np.ones(5), seconds, T, 2.0), [0.36, 1, 1, 1, 0.5625])


def test_the_pool_has_ten_times_as_many_clients_as_are_drawn():
    scores = np.linspace(1, 0, 40)
    # Cut-off: 0.95 times the third largest; two to draw, so that the 21 largest are in the pool.
    assert pool(scores, 2, 0.95).tolist() == [True] * 21 + [False] * 19
    assert pool(scores, 2, 0.05).sum() == (scores >= 0.05 * scores[2]).sum()


def play_fedscale(scheme, rounds, n=30, runs=1, loss=lambda t, clients: np.ones(len(clients))):
    setup = sized(np.arange(1, n + 1) * 10, runs, delays=np.linspace(1, 9, n))
    return played(scheme, setup, rounds, loss)


def test_the_first_round_explores_by_samples_and_speed():
    runs = 400
    ready, ((slots, omega),) = play_fedscale(OortFedScale(m=4, pace=30), 1, runs=runs)
    sizes, seconds = np.arange(1, 31) * 10.0, np.linspace(1, 9, 30)
    T = sorted(seconds)[9]
    value = [s * (T / t) ** 2 if t > T else s for s, t in zip(sizes, seconds, strict=True)]
    best = sorted(range(30), key=lambda k: -value[k])[:20]  # 5 × 4
    assert {*slots.client.tolist()} <= {*best}
    assert omega.sum() == pytest.approx(runs)
    first = slots.client.reshape(runs, 4)[:, 0]
    share = value[best[0]] / sum(value[k] for k in best)
    assert (first == best[0]).mean() == pytest.approx(share, abs=5 * sqrt(share / runs))
    assert (ready.state.last[slots.run, slots.client] == 1).all()


def test_the_utility_adds_uncertainty_to_the_scaled_reward():
    ready, _ = play_fedscale(OortFedScale(m=5), 6)
    old, reward = np.flatnonzero(ready.state.last[0] > 0), ready.state.reward[0]
    ceiling, floor = np.sort(reward)[int(30 * 0.9)], 0.999 * reward.min()
    expected = (np.minimum(reward[old], ceiling) - floor) / (reward.max() - floor)
    expected += np.sqrt(0.1 * log(7) / ready.state.last[0, old])
    np.testing.assert_allclose(
        ready.scheme._utility(ready.state, 0, old, np.arange(30), 7), expected
    )


@pytest.mark.parametrize(
    ("rounds", "growth", "pace"),
    # The first round explores, so that the first window has exploited three rounds.
    [(12, 1.0, 35.0), (8, 10.0, 25.0), (8, 2.0, 30.0)],
    ids=["flat", "sharp", "between"],
)
def test_the_pacer_moves_in_both_directions(rounds, growth, pace):
    def loss(t, clients):
        return growth ** (t >= 4) / (clients + 1)

    scheme = OortFedScale(m=6, window=4, explore=1e-9, explore_least=0.0)
    ready, _ = play_fedscale(scheme, rounds, n=6, loss=loss)
    assert ready.state.paces[0] == pace


def test_all_draws_exploit_once_all_clients_are_explored():
    ready, results = play_fedscale(OortFedScale(m=4), 20, n=8)
    assert all(len(slots) == len({*slots.client.tolist()}) == 4 for slots, _ in results)
    assert (ready.state.last > 0).all()
