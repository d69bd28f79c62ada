"""Target sampling: one client of each label."""

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Setup, View
from fedsampling.samplers.target import Target


def play(labels, p, runs):
    one = np.ones(len(p), np.int64)
    sampler = Target().prepared(Setup(one, p, runs, labels=labels))
    view = View(np.ones(len(p), np.int64), p, 0, runs)
    slots = sampler.select(view, Draws(np.arange(runs), 0))
    return slots, sampler.weigh(slots, view, Draws(np.arange(runs), 0))


def test_ten_digits_of_ten_clients_give_one_of_each_with_a_tenth():
    slots, omega = play(np.repeat(np.arange(10), 10), np.full(100, 0.01), 400)
    digits = slots.client.reshape(400, 10) // 10
    np.testing.assert_array_equal(digits, np.tile(np.arange(10), (400, 1)))
    np.testing.assert_allclose(omega, 0.1)
    assert len(np.unique(slots.client)) == 100
