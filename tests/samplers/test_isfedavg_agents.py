"""ISFedAvg's sampling of agents, for networks."""

from dataclasses import replace

import numpy as np

from fedsampling.samplers.isfedavg_agents import ISFedAvgAgents
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import equal, play

N = 6
P = np.arange(1, N + 1) / 21
MANY = replace(equal(N, 20_000, dimension=3), p=P)


def test_agents_are_included_in_proportion_to_their_probability():
    ready = prepared(ISFedAvgAgents(m=2), MANY)
    probabilities = np.array([0.3, 0.05, 0.2, 0.25, 0.1, 0.1])
    ready.state.tracked[:] = probabilities
    slots, omega = play(ready, MANY, trained=lambda _: {"update_norms": np.ones(40_000)})
    assert (np.bincount(slots.run) == 2).all()
    share = np.bincount(slots.client) / 20_000
    np.testing.assert_allclose(share, 2 * probabilities, atol=5 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(omega, (P / (2 * probabilities))[slots.client])
    # Equal norms, and importances as they are: those who took part share by importance.
    i, j = slots.client[:2]
    np.testing.assert_allclose(ready.state.tracked[0, i] / ready.state.tracked[0, j], P[i] / P[j])
    np.testing.assert_allclose(ready.state.tracked.sum(1), 1)


def test_with_gradients_probabilities_are_equation_50():
    gradients = np.random.default_rng(0).normal(size=(1, N, 3))
    ready = prepared(ISFedAvgAgents(m=1, observe="gradients"), replace(MANY, runs=1))
    play(ready, replace(MANY, runs=1), observed={"gradients": gradients})
    scores = P * np.linalg.norm(gradients[0], axis=1)
    np.testing.assert_allclose(ready.state.round[0], scores / scores.sum())
