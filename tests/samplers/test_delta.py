"""DELTA."""

from dataclasses import replace

import numpy as np

from fedsampling.samplers.delta import Delta, diversities
from fedsampling.samplers.protocol.slots import Slots

from .rounds import equal

N = 6
P = np.arange(1, N + 1) / 21
MANY = replace(equal(N, 20_000, dimension=3), p=P)


def test_delta_with_all_clients_is_equation_11():
    updates = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
    ready = Delta(m=N).prepared(equal(N, dimension=3))
    ready.saw_updates(Slots.stack([np.arange(N)]), updates)
    expected = np.linalg.norm(updates - updates.mean(0), axis=1)
    np.testing.assert_allclose(ready._tracked[0], expected / expected.sum(), rtol=1e-5)
    norms = np.linalg.norm(updates.astype(float), axis=1)
    np.testing.assert_allclose(diversities(updates, 0.0), norms, rtol=1e-6)
