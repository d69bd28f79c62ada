"""MIFA and FedVARP: the server's step, compared with a loop over clients."""

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.samplers.memory_of_updates import MIFA, FedVARP
from fedsampling.samplers.scheme import Setup, View

N, M, D = 6, 2, 3
P = np.array([0.3, 0.1, 0.2, 0.1, 0.25, 0.05])


def play(scheme, rounds=8, offered=None):
    """Play rounds with random updates; yield each round's slots, updates, and the server's step."""
    rng = np.random.default_rng(3)
    sizes = np.full(N, 5)
    ready = scheme.prepared(Setup(sizes, P, runs=1, dimension=D))
    for t in range(rounds):
        view = View(sizes, P, t, 1)
        view = view if offered is None else view.restricted_to(offered(t))
        slots = ready.select(view, Draws(np.arange(1), t))
        updates = rng.normal(size=(len(slots), D)).astype(np.float32)
        ready.saw_updates(slots, updates)
        omega = ready.weigh(slots, view, Draws(np.arange(1), t))
        yield slots.client, updates, omega @ updates + ready.addition()[0]


def test_mifa_steps_by_the_last_update_of_every_client():
    last = np.zeros((N, D))
    for clients, updates, step in play(MIFA(m=M)):
        for client, update in zip(clients, updates, strict=True):
            last[client] = update
        expected = sum(p * update for p, update in zip(P, last, strict=True))
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)


def test_fedvarp_corrects_remembered_updates_by_the_new_ones():
    last = np.zeros((N, D))
    for clients, updates, step in play(FedVARP(m=M)):
        expected = sum(p * update for p, update in zip(P, last, strict=True))
        for client, update in zip(clients, updates, strict=True):
            expected = expected + N / M * P[client] * (update - last[client])
        np.testing.assert_allclose(step, expected, rtol=1e-5, atol=1e-6)
        for client, update in zip(clients, updates, strict=True):
            last[client] = update


def test_unavailable_clients_count_with_their_last_updates():
    last = np.zeros((N, D))
    for clients, updates, step in play(MIFA(m=4), offered=lambda t: np.array([t % N])):
        assert len(clients) == 1
        last[clients[0]] = updates[0]
        np.testing.assert_allclose(step, P @ last, rtol=1e-5, atol=1e-6)
