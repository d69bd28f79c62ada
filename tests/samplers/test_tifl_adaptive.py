"""Adaptive TiFL: tiers' losses, ChangeProbs, and credits."""

import numpy as np
import pytest

import fedsampling
from fedsampling.base.errors import InputError
from fedsampling.samplers.tifl import AdaptiveTiFL, rank_odds, tier_losses

from .rounds import equal
from .rounds import play as play_one

EVERYONE = np.ones(3, np.bool_)


def test_odds_agree_with_change_probs():
    # Of three tiers the worst gets 2/3, the next 1/3 and the best nothing.
    np.testing.assert_allclose(rank_odds(np.array([0.2, 0.9, 0.5]), EVERYONE), [0, 2 / 3, 1 / 3])
    usable = np.array([True, False, True])
    np.testing.assert_allclose(rank_odds(np.array([0.2, 0.9, 0.5]), usable), [0, 0, 1])
    assert rank_odds(np.array([0.2, 0.9]), np.array([True, False])).tolist() == [1, 0]


def test_a_tiers_loss_is_weighted_by_samples_of_available_clients():
    losses = np.array([[1.0, 4.0, 2.0, np.nan, np.nan]])
    samples = np.array([3, 1, 5, 7, 9])
    tiers = [np.array([0, 1]), np.array([2, 3]), np.array([4])]
    np.testing.assert_allclose(tier_losses(losses, samples, tiers), [[7 / 4, 2, 0]])


SETUP = equal(6, runs=300, delays=np.arange(6.0))


def play(ready, losses, rounds):
    """Return the tier of each round and run; client k is in tier k // 2."""
    drawn = []
    for t in range(rounds):
        observed = {"losses": np.tile(losses(t), (300, 1)), "delays": np.arange(6)}
        slots, _ = play_one(ready, SETUP, t, observed)
        drawn.append(slots.client.reshape(300, -1)[:, 0] // 2)
    return np.array(drawn)


def prepared(**settings):
    return AdaptiveTiFL(m=2, tiers=3, **settings).prepared(SETUP)


def test_odds_change_if_the_last_tier_has_not_improved():
    worst = np.array([0.1, 0.1, 0.9, 0.9, 0.5, 0.5])
    drawn = play(prepared(interval=2), lambda t: worst, 4)
    for t in (0, 1):  # no look yet: all alike
        np.testing.assert_allclose(np.bincount(drawn[t], minlength=3) / 300, 1 / 3, atol=0.14)
    share = np.bincount(drawn[2], minlength=3) / 300
    np.testing.assert_allclose(share, [0, 2 / 3, 1 / 3], atol=0.14)


def test_odds_stay_if_the_last_tier_has_improved():
    drawn = play(prepared(interval=1), lambda t: np.full(6, 1.0 / (t + 1)), 6)
    np.testing.assert_allclose(np.bincount(drawn[-1], minlength=3) / 300, 1 / 3, atol=0.14)


def test_losses_are_charged_only_every_interval():
    rng = np.random.default_rng(0)
    clients, samples = np.repeat(np.arange(6), 8), rng.normal(size=(48, 2)).astype(np.float32)
    data = fedsampling.federated(
        samples, rng.integers(0, 2, 48), clients=clients, x_test=samples[:4], y_test=[0, 1, 0, 1]
    )
    settings = {"model": "softmax", "steps": 2, "batch": 4, "step": 0.1, "rounds": 7}
    history = fedsampling.train(
        data,
        AdaptiveTiFL(m=2, tiers=3, interval=3),
        seeds=[0, 1],
        delays={"name": "synthetic"},
        evaluate_every=7,
        **settings,
    )
    for metric, maximum in (("observation_bits", 6 * 32), ("asking_seconds", None)):
        part = history[(history["metric"] == metric) & (history["seed"] == 0)]
        charged = part.set_index("at")["value"]
        assert charged[charged > 0].index.tolist() == [1, 4, 7]  # rounds 0, 3 and 6
        if maximum:
            assert charged.max() == maximum
    slowest = history[history["metric"] == "asking_seconds"]["value"].max()
    assert slowest >= history[history["metric"] == "seconds"]["value"].max()


def test_a_tier_without_credits_is_no_longer_drawn():
    drawn = play(prepared(credits=(1, 2, 100)), lambda t: np.ones(6), 12)
    assert [(drawn == tier).sum(0).max() for tier in (0, 1)] == [1, 2]
    with pytest.raises(InputError, match="2 values for 3 tiers"):
        prepared(credits=(1, 2))
