"""TiFL: tiers of similar speed, drawn with fixed or adaptive probabilities."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.tifl import AdaptiveTiFL, TiFL, rank_odds, tier_losses, tiers

from .rounds import equal, play, play_all

SECONDS = np.array([5.0, 1, 9, 2, 7, 3, 8, 4])


def drawn(scheme, runs, offered=None):
    setup = equal(8, runs, delays=SECONDS)
    ready = prepared(scheme, setup)
    return ready, *play(ready, setup, observed={"delays": SECONDS}, offered=offered)


def test_tiers_are_cut_in_the_order_of_seconds():
    assert [tier.tolist() for tier in tiers(SECONDS, 3)] == [[1, 3, 5], [7, 0, 4], [6, 2]]


def test_a_round_has_clients_of_one_tier_drawn_with_its_odds():
    ready, slots, omega = drawn(TiFL(m=2, tiers=2, odds=(3, 1)), 8000)
    fast = np.isin(slots.client.reshape(-1, 2), [1, 3, 5, 7])
    assert (fast[:, 0] == fast[:, 1]).all()
    assert abs(fast[:, 0].mean() - 3 / 4) < 5 * 0.5 / np.sqrt(8000)
    assert (omega == 1 / 2).all()
    assert not ready.unbiased
    assert drawn(TiFL(m=2, tiers=2), 1)[0].unbiased
    assert not drawn(TiFL(m=2, tiers=3), 1)[0].unbiased  # tiers of 3, 3 and 2 clients


def test_every_tier_has_at_least_m_clients():
    ready, _, _ = drawn(TiFL(m=4), 1)
    assert [len(tier) for tier in ready.state.tiers] == [4, 4]
    with pytest.raises(InputError, match="3 values for 2 tiers"):
        drawn(TiFL(m=4, odds=(1, 1, 1)), 1)


def test_a_tier_without_available_clients_is_not_drawn():
    _, slots, omega = drawn(TiFL(m=3, tiers=2, odds=(1, 0)), 50, offered=[2, 6])
    assert np.bincount(slots.client).tolist() == [0, 0, 50, 0, 0, 0, 50]
    assert (omega == 1 / 2).all()


@pytest.mark.parametrize(
    ("losses", "usable", "odds"),
    [
        ([0.2, 0.9, 0.5], [True, True, True], [0, 2 / 3, 1 / 3]),  # the best gets nothing
        ([0.2, 0.9, 0.5], [True, False, True], [0, 0, 1]),
        ([0.2, 0.9], [True, False], [1, 0]),
    ],
)
def test_odds_agree_with_change_probs(losses, usable, odds):
    np.testing.assert_allclose(rank_odds(np.array(losses), np.array(usable)), odds)


def test_a_tiers_loss_is_weighted_by_samples_of_available_clients():
    losses = np.array([[1.0, 4.0, 2.0, np.nan, np.nan]])
    samples = np.array([3, 1, 5, 7, 9])
    members = [np.array([0, 1]), np.array([2, 3]), np.array([4])]
    np.testing.assert_allclose(tier_losses(losses, samples, members), [[7 / 4, 2, np.nan]])


SETUP = equal(6, runs=300, delays=np.arange(6.0))


def tiers_of_rounds(ready, losses, rounds):
    """Return the tier of each round and run; client k is in tier k // 2."""
    observed = [
        {"losses": np.tile(losses(t), (300, 1)), "delays": np.arange(6)} for t in range(rounds)
    ]
    played = play_all(ready, SETUP, rounds, observed)
    return np.array([slots.client.reshape(300, -1)[:, 0] // 2 for slots, _ in played])


def adaptive(**settings):
    return prepared(AdaptiveTiFL(m=2, tiers=3, **settings), SETUP)


def test_odds_change_if_the_last_tier_has_not_improved():
    worst = np.array([0.1, 0.1, 0.9, 0.9, 0.5, 0.5])
    drawn = tiers_of_rounds(adaptive(interval=2), lambda t: worst, 4)
    expected = (np.full(3, 1 / 3), np.full(3, 1 / 3), [0, 2 / 3, 1 / 3])  # no look before round 2
    for tier, odds in zip(drawn, expected, strict=False):
        np.testing.assert_allclose(np.bincount(tier, minlength=3) / 300, odds, atol=0.14)
    improved = tiers_of_rounds(adaptive(interval=1), lambda t: np.full(6, 1.0 / (t + 1)), 6)
    np.testing.assert_allclose(np.bincount(improved[-1], minlength=3) / 300, 1 / 3, atol=0.14)


def test_a_tier_without_available_clients_keeps_its_last_loss():
    absent = np.array([0.5, 0.5, np.nan, np.nan, 0.1, 0.1])
    ready = adaptive(interval=1)
    tiers_of_rounds(ready, lambda t: np.array([0.5, 0.5, 0.9, 0.9, 0.1, 0.1]), 2)
    tiers_of_rounds(ready, lambda t: absent, 2)
    assert ready.state.before[0].tolist() == [0.5, 0.9, 0.1]
    np.testing.assert_allclose(ready.state.odds, [[1 / 3, 2 / 3, 0]] * 300)


def test_losses_are_asked_only_every_interval():
    ready, observed = adaptive(interval=3), {"losses": np.ones((300, 6)), "delays": np.arange(6)}
    asked = [ready.asked().all() for _ in play_all(ready, SETUP, 7, [observed] * 7)]
    assert asked == [True, False, False, True, False, False, True]


def test_tiers_with_credits_are_drawn_although_their_probability_is_zero():
    sampler = adaptive(credits=(2, 100, 100), odds=(1, 0, 0))
    drawn = tiers_of_rounds(sampler, lambda t: np.ones(6), 8)
    assert (drawn[:2] == 0).all()
    assert (drawn[2:] > 0).all()


def test_a_tier_without_credits_is_no_longer_drawn():
    drawn = tiers_of_rounds(adaptive(credits=(1, 2, 100)), lambda t: np.ones(6), 12)
    assert [(drawn == tier).sum(0).max() for tier in (0, 1)] == [1, 2]
    with pytest.raises(InputError, match="2 values for 3 tiers"):
        adaptive(credits=(1, 2))
