"""MIFA and FedVARP: the server's step, compared with the papers' sums over clients."""

import numpy as np
import pytest
from tests.helpers.small_network import SIZES, learner

from fedsampling.learning.training.loop import train
from fedsampling.samplers.memory_of_updates import MIFA, FedVARP
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

from .rounds import weighed

N, M, D = 6, 2, 3
P = np.array([0.3, 0.1, 0.2, 0.1, 0.25, 0.05])


def play(scheme, rounds=8, offered=None):
    """Play rounds with random updates; yield each round's slots, updates, and the server's step."""
    setup = Setup(np.full(N, 5), P, dimension=D)
    ready = prepared(scheme, setup)
    everyones = np.random.default_rng(3).normal(size=(rounds, N, D)).astype(np.float32)
    for t in range(rounds):
        trained = lambda slots, t=t: {"updates": everyones[t, slots.client]}  # noqa: E731
        present = None if offered is None else offered[t]
        slots, omega = weighed(ready, setup, t, None, trained, present)
        updates = everyones[t, slots.client]
        yield slots.client, updates, omega @ updates + ready.addition()[0]
        ready.learn()


@pytest.mark.parametrize("offered", [None, [[t % N] for t in range(8)]])
def test_mifa_steps_by_the_last_update_of_every_client_available_or_not(offered):
    last = np.zeros((N, D))
    for clients, updates, step in play(MIFA(m=M), offered=offered):
        assert len(clients) == (1 if offered else M)
        last[clients] = updates
        np.testing.assert_allclose(step, P @ last, rtol=1e-5, atol=1e-6)


def test_fedvarp_corrects_remembered_updates_by_the_new_ones():
    last = np.zeros((N, D))
    for clients, updates, step in play(FedVARP(m=M)):
        expected = P @ last + N / M * P[clients] @ (updates - last[clients])
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
        last[clients] = updates


@pytest.mark.parametrize(("scheme", "factor"), [(MIFA, 1), (FedVARP, len(SIZES) / M)])
def test_the_training_loop_steps_by_remembered_updates_at_the_servers_rate(
    scheme, factor, monkeypatch
):
    trainer = learner(server_step=0.5)
    p, advance, rounds = trainer.p, trainer.advance, []
    last = np.zeros((len(SIZES), trainer.network.dimension))

    def noted(theta, updates, slots, *arguments):
        moved, clients = advance(theta, updates, slots, *arguments), slots.client
        expected = p @ last + factor * p[clients] @ (updates.numpy() - last[clients])
        np.testing.assert_allclose(moved[0] - theta[0], 0.5 * expected, atol=1e-6)
        last[clients] = updates
        rounds.append(clients)
        return moved

    monkeypatch.setattr(trainer, "advance", noted)
    setup = Setup(SIZES, p, dimension=trainer.network.dimension)
    train(trainer, prepared(scheme(m=M), setup), [7], 6)
    assert len(np.unique(rounds)) < np.size(rounds) == 6 * M
