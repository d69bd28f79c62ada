"""Target sampling: one client of each label."""

import numpy as np

from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.target import Target

from .rounds import equal, play

GRID = (np.arange(10_000) + 0.5) / 10_000


def test_ten_digits_of_ten_clients_give_one_of_each_with_a_tenth():
    setup = equal(100, runs=400, labels=np.repeat(np.arange(10), 10))
    slots, omega = play(prepared(Target(), setup), setup)
    np.testing.assert_array_equal(slots.client // 10, np.tile(np.arange(10), 400))
    np.testing.assert_allclose(omega, 0.1)
    assert len(np.unique(slots.client)) == 100
