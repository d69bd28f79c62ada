"""DELTA."""

from dataclasses import replace

import numpy as np

from fedsampling.samplers.delta import Delta, diversities
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Slots, View

from .rounds import equal

N = 6
P = np.arange(1, N + 1) / 21
MANY = replace(equal(N, 20_000, dimension=3), p=P)


def test_delta_with_all_clients_is_equation_11():
    updates = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
    ready = prepared(Delta(m=N), equal(N, dimension=3))
    view = View(np.ones(N, np.int64), np.full(N, 1 / N), 0, 1, {"updates": updates})
    tracked = Delta(m=N).learn(ready.state, Slots.stack([np.arange(N)]), view).tracked
    expected = np.linalg.norm(updates - updates.mean(0), axis=1)
    np.testing.assert_allclose(tracked[0], expected / expected.sum(), rtol=1e-5)
    norms = np.linalg.norm(updates.astype(float), axis=1)
    np.testing.assert_allclose(diversities(updates, 0.0), norms, rtol=1e-6)
