"""Slots: one flat list for all runs."""

import numpy as np

from fedsampling.samplers.slots import Slots


def test_stacking_keeps_runs_apart_and_counts_once_unless_told():
    clients = [np.array([4, 1]), np.array([], np.int64), np.array([2])]
    slots = Slots.stack(clients)
    np.testing.assert_array_equal(slots.run, [0, 0, 2])
    np.testing.assert_array_equal(slots.times, [1, 1, 1])
    often = Slots.stack(clients, [np.array([3, 1]), np.array([], np.int64), np.array([2])])
    np.testing.assert_array_equal(often.times, [3, 1, 2])


def test_membership_becomes_slots_run_after_run():
    slots = Slots.of(np.array([[True, False, True], [False, True, False]]))
    np.testing.assert_array_equal(slots.run, [0, 0, 1])
    np.testing.assert_array_equal(slots.client, [0, 2, 1])


def test_slots_made_without_counts_have_one_each():
    slots = Slots(np.zeros(3, np.int64), np.arange(3), np.ones(3))
    np.testing.assert_array_equal(slots.times, [1, 1, 1])
    assert len(Slots(np.zeros(0, np.int64), np.zeros(0, np.int64), np.ones(0)).times) == 0
