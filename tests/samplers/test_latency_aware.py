"""TiFL (tiers) and FedCS (deadline)."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.samplers.fedcs import FedCS, before_deadline
from fedsampling.samplers.tifl import TiFL, tiers

from .rounds import equal, play

SECONDS = np.array([5.0, 1, 9, 2, 7, 3, 8, 4])


def drawn(scheme, runs, offered=None):
    setup = equal(8, runs, delays=SECONDS)
    ready = scheme.prepared(setup)
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
    assert [len(tier) for tier in ready._tiers] == [4, 4]
    with pytest.raises(InputError, match="3 values for 2 tiers"):
        drawn(TiFL(m=4, odds=(1, 1, 1)), 1)


def test_a_tier_without_available_clients_is_not_drawn():
    _, slots, omega = drawn(TiFL(m=3, tiers=2, odds=(1, 0)), 50, offered=[2, 6])
    assert np.bincount(slots.client).tolist() == [0, 0, 50, 0, 0, 0, 50]
    assert (omega == 1 / 2).all()


def duration(download, update, upload, order):
    """Play a schedule: everybody starts with the model, and uploads wait for one another."""
    arrived = max((download[i] for i in order), default=0.0)
    free = 0.0
    for i in order:
        free = max(free, update[i]) + upload[i]
    return arrived + free


def test_greedy_selection_meets_the_deadline_and_is_maximal():
    rng = np.random.default_rng(0)
    for _ in range(200):
        download, update, upload = rng.lognormal(size=(3, 7))
        deadline = 2 + 4 * rng.random()
        chosen = before_deadline(download, update, upload, deadline).tolist()
        assert duration(download, update, upload, chosen) < deadline or not chosen
        for client in set(range(7)) - set(chosen):
            assert duration(download, update, upload, [*chosen, client]) >= deadline
        # The next is always the one that lengthens the round least.
        for k in range(1, len(chosen)):
            before = chosen[:k]
            late = [duration(download, update, upload, [*before, i]) for i in chosen[k:]]
            assert late[0] == pytest.approx(min(late))


def test_without_a_shared_channel_all_clients_faster_than_the_deadline_are_selected():
    nothing = np.zeros(8)
    assert before_deadline(nothing, SECONDS, nothing, 5.5).tolist() == [1, 3, 5, 7, 0]
    _, slots, omega = drawn(FedCS(d=8, deadline=5.5), 1)
    assert slots.client.tolist() == [1, 3, 5, 7, 0]
    assert (omega == 1 / 5).all()
    assert len(drawn(FedCS(d=8), 1)[1]) == 4  # quicker than the median client, 4.5
    assert not len(drawn(FedCS(d=8, deadline=0.5), 3)[1])
    # One after another: 1, then 1 + 2 / 2 + 2 / 2, …
    assert len(drawn(FedCS(d=8, deadline=5.5, upload=0.9), 1)[1]) == 2
