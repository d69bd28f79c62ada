"""FedCS: as many clients as meet a deadline."""

import numpy as np
import pytest

from fedsampling.samplers.fedcs import FedCS, before_deadline
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import equal, play

SECONDS = np.array([5.0, 1, 9, 2, 7, 3, 8, 4])


def drawn(scheme, runs, offered=None):
    setup = equal(8, runs, delays=SECONDS)
    ready = prepared(scheme, setup)
    return ready, *play(ready, setup, observed={"delays": SECONDS}, offered=offered)


def duration(update, upload, order):
    """Play a schedule: everybody starts with the model, and uploads wait for one another."""
    free = 0.0
    for i in order:
        free = max(free, update[i]) + upload[i]
    return free


def test_greedy_selection_meets_the_deadline_and_is_maximal():
    rng = np.random.default_rng(0)
    for _ in range(200):
        update, upload = rng.lognormal(size=(2, 7))
        deadline = 1 + 4 * rng.random()
        chosen = before_deadline(update, upload, deadline).tolist()
        assert duration(update, upload, chosen) < deadline or not chosen
        for client in set(range(7)) - set(chosen):
            assert duration(update, upload, [*chosen, client]) >= deadline
        # The next is always the one that lengthens the round least.
        for k in range(1, len(chosen)):
            before = chosen[:k]
            late = [duration(update, upload, [*before, i]) for i in chosen[k:]]
            assert late[0] == pytest.approx(min(late))


def test_without_a_shared_channel_clients_within_the_deadline_are_selected():
    assert before_deadline(SECONDS, np.zeros(8), 5.5).tolist() == [1, 3, 5, 7, 0]
    _, slots, omega = drawn(FedCS(d=8, deadline=5.5), 1)
    assert slots.client.tolist() == [1, 3, 5, 7, 0]
    assert (omega == 1 / 5).all()
    assert len(drawn(FedCS(d=8), 1)[1]) == 4  # quicker than the median client, 4.5
    assert not len(drawn(FedCS(d=8, deadline=0.5), 3)[1])
    # One after another: 1, then 1 + 2 / 2 + 2 / 2, …
    assert len(drawn(FedCS(d=8, deadline=5.5, upload=0.9), 1)[1]) == 2
