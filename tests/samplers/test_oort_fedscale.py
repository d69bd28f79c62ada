"""Oort as in FedScale: scores, pool and pacer, compared with an independent computation."""

from math import log, sqrt

import numpy as np
import pytest

from fedsampling.samplers.oort import (
    OortFedScale,
    pool,
    preferred_duration,
    scaled,
    slowed,
)
from fedsampling.samplers.scheme import Setup

from .rounds import play as play_one


def test_rewards_are_scaled_by_the_range_of_all_clients():
    rewards = [3.0, 10.0, 5.0, 8.0, 1.0, 2.0, 4.0, 6.0, 7.0, 40.0]
    ordered = sorted(rewards)
    ceiling, floor, maximum = ordered[9], 0.999 * ordered[0], ordered[-1]  # ⌊10 × 0.9⌋ = 9
    result = scaled(np.array([3.0, 40.0]), np.array(rewards), 0.9)
    expected = [(min(reward, ceiling) - floor) / (maximum - floor) for reward in (3.0, 40.0)]
    np.testing.assert_allclose(result, expected)
    half = scaled(np.array([40.0]), np.array(rewards), 0.5)  # clipped to ordered[5]
    assert half[0] == pytest.approx((ordered[5] - floor) / (maximum - floor))


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
    sizes = np.arange(1, n + 1) * 10
    p, seconds = sizes / sizes.sum(), np.linspace(1, 9, n)
    setup = Setup(sizes, p, runs, delays=seconds)
    ready = scheme.prepared(setup)
    for t in range(rounds):
        losses = lambda slots, t=t: {"work_losses": loss(t, slots.client)}  # noqa: E731
        yield ready, *play_one(ready, setup, t, {"delays": seconds}, losses)


def test_the_first_round_explores_by_samples_and_speed():
    runs = 400
    ((ready, slots, omega),) = play(OortFedScale(m=4, pace=30), 1, runs=runs)
    sizes, seconds = np.arange(1, 31) * 10.0, np.linspace(1, 9, 30)
    T = sorted(seconds)[9]
    value = [s * (T / t) ** 2 if t > T else s for s, t in zip(sizes, seconds, strict=True)]
    best = sorted(range(30), key=lambda k: -value[k])[:20]  # 5 × 4
    assert {*slots.client.tolist()} <= {*best}
    assert omega.sum() == pytest.approx(runs)
    first = slots.client.reshape(runs, 4)[:, 0]
    share = value[best[0]] / sum(value[k] for k in best)
    assert (first == best[0]).mean() == pytest.approx(share, abs=5 * sqrt(share / runs))
    assert (ready._last[slots.run, slots.client] == 1).all()


def test_the_utility_adds_uncertainty_to_the_scaled_reward():
    ready = [*play(OortFedScale(m=5), 6)][-1][0]
    old = np.flatnonzero(ready._last[0] > 0)
    rewards = sorted(ready._reward[0])
    ceiling, floor = rewards[int(30 * 0.9)], 0.999 * rewards[0]
    expected = [
        (min(ready._reward[0, k], ceiling) - floor) / (rewards[-1] - floor)
        + sqrt(0.1 * log(7) / ready._last[0, k])
        for k in old
    ]
    result = ready._utility(0, old, np.arange(30), 7)
    np.testing.assert_allclose(result, expected)


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
    ready = [*play(scheme, rounds, n=6, loss=loss)][-1][0]
    assert ready._paces[0] == pace


def test_all_draws_exploit_once_all_clients_are_explored():
    played = [*play(OortFedScale(m=4), 20, n=8)]
    assert all(len(slots) == len({*slots.client.tolist()}) == 4 for _, slots, _ in played)
    assert (played[-1][0]._last > 0).all()
