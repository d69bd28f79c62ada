"""Server optimisers follow their papers' algorithms, and survive a checkpoint."""

import numpy as np
import pytest
import torch
from tests.helpers.small_network import learner

from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.server_optimisers import Server
from fedsampling.samplers.protocol.slots import Slots

CHANGES = np.array([[0.5, -2.0, 0.0], [1.0, 1.0, -0.1], [-0.3, 0.2, 4.0]], np.float32)


def by_hand(name):
    """Return what is added to θ in each round: Hsu et al.; Reddi et al., algorithm 2."""
    m, v, steps = np.zeros(3), np.full(3, 1e-6), []
    for change in CHANGES.astype(float):
        if name == "fedavgm":
            m = 0.9 * m + change
            steps.append(m)
            continue
        m = 0.9 * m + 0.1 * change
        if name == "fedadam":
            v = 0.99 * v + 0.01 * change**2
        else:
            v = v - 0.01 * change**2 * np.sign(v - change**2)
        steps.append(m / (np.sqrt(v) + 1e-3))
    return steps


@pytest.mark.parametrize("name", ["fedavgm", "fedadam", "fedyogi"])
def test_steps_are_those_of_the_algorithm(name):
    server = Server(name=name)
    m, v = server.start(torch.zeros(1, 3))
    for change, expected in zip(CHANGES, by_hand(name), strict=True):
        step = server.step(torch.from_numpy(change[None]), m, v)
        np.testing.assert_allclose(step[0], expected, rtol=1e-4)


def test_the_state_of_a_server_optimiser_is_restored():
    def rounds(trainer, theta, changes):
        slots = Slots(np.array([0]), np.array([0]), np.ones(1))
        for change in changes:
            theta = trainer.advance(theta, change[None], slots, np.ones(1))
        return theta

    work, server = LocalWork(steps=1, batch=1, step=0.1), Server(name="fedadam")
    uninterrupted, first, second = (learner(work, server=server) for _ in range(3))
    start = uninterrupted.start(np.array([0]))
    changes = torch.from_numpy(np.random.default_rng(0).normal(size=(4, start.shape[1]))).float()
    theta = rounds(first, start, changes[:2])
    resumed = rounds(second, second.restore(first.state(theta)), changes[2:])
    assert torch.equal(resumed, rounds(uninterrupted, start, changes))


def test_fedavgm_without_momentum_is_plain_averaging():
    averaging = learner(server_step=0.5)
    fedavgm = learner(server_step=0.5, server=Server(name="fedavgm", momentum=0.0))
    theta = averaging.start(np.array([0]))
    updates = torch.from_numpy(np.random.default_rng(0).normal(size=(2, theta.shape[1]))).float()
    slots, omega = Slots.stack([np.array([0, 1])]), np.array([0.3, 0.6])
    moved, expected = (each.advance(theta, updates, slots, omega) for each in (fedavgm, averaging))
    torch.testing.assert_close(moved, expected)
    assert not torch.equal(moved, theta)
