"""Groups of clients take turns."""

import numpy as np

from fedsampling.samplers.cyclic import Cyclic
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

from .rounds import play

GRID = (np.arange(10_000) + 0.5) / 10_000


def drawn(scheme, runs, t=0, **setup):
    setup = Setup(np.repeat([2, 5, 9], 4), np.full(12, 1 / 12), runs, **setup)
    return play(prepared(scheme, setup), setup, t)


def test_groups_take_turns():
    scheme = Cyclic(m=4, groups=3)
    took = [np.sort(drawn(scheme, 2, t)[0].client.reshape(2, 4), axis=1) for t in range(6)]
    for run in range(2):
        assert sorted(np.concatenate([took[t][run] for t in range(3)])) == list(range(12))
    np.testing.assert_array_equal(took[:3], took[3:])
    labels = np.tile([0, 1, 2], 4)
    slots, omega = drawn(Cyclic(m=2, groups=3, by="label"), 20, t=4, labels=labels)
    assert (labels[slots.client] == 1).all()
    assert (omega == 1 / 2).all()
