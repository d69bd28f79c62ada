"""Oort as in FedScale: scores, pool and pacer, compared with an independent computation."""

from math import log, sqrt

import numpy as np
import pytest
from tests.samplers.rounds import play_with_losses, sized

from fedsampling.samplers.oort_fedscale import OortFedScale, pool, preferred_duration, slowed


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


def play(scheme, rounds, n=30, runs=1, loss=lambda t, clients: np.ones(len(clients))):
    setup = sized(np.arange(1, n + 1) * 10, runs, delays=np.linspace(1, 9, n))
    return play_with_losses(scheme, setup, rounds, loss)


def test_the_first_round_explores_by_samples_and_speed():
    runs = 400
    ready, ((slots, omega),) = play(OortFedScale(m=4, pace=30), 1, runs=runs)
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


def test_the_exploration_rate_decays_from_the_first_round_on():
    """ε = explore · decay^(rounds so far + 1): 1/8 of 4 clients are none in the second round."""
    sampler = OortFedScale(m=4, explore=0.5, decay=0.5, explore_least=0.0)
    _, results = play(sampler, 2, n=10, runs=4, loss=lambda t, clients: 1.0 + clients)
    first, second = (slots for slots, _ in results)
    for run in range(4):
        explored = first.client[first.run == run]
        assert set(second.client[second.run == run]) == set(explored)


def test_the_utility_adds_uncertainty_to_the_scaled_reward():
    ready, _ = play(OortFedScale(m=5), 6)
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
    ready, _ = play(scheme, rounds, n=6, loss=loss)
    assert ready.state.paces[0] == pace


def test_all_draws_exploit_once_all_clients_are_explored():
    ready, results = play(OortFedScale(m=4), 20, n=8)
    assert all(len(slots) == len({*slots.client.tolist()}) == 4 for slots, _ in results)
    assert (ready.state.last > 0).all()
