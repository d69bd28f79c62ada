"""Active federated learning."""

from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from tests.samplers.rounds import equal, play

from fedsampling.samplers.active_fl import ActiveFL, odds, valuation
from fedsampling.samplers.protocol.prepared import prepared


def losses(slots):
    return {"work_losses": np.ones(len(slots))}


def test_valuation_is_the_sum_of_losses_over_the_root_of_their_number():
    losses = [[0.5, 2.0, 1.0], [3.0]]
    result = valuation(np.array([3, 1]), np.array([np.mean(values) for values in losses]))
    np.testing.assert_allclose(result, [sum(values) / sqrt(len(values)) for values in losses])


def test_the_smallest_valuations_are_excluded_and_the_rest_follow_softmax():
    result = odds(np.array([4.0, 1.0, 3.0, 2.0]), 0.5, 0.3)
    expected = np.array([exp(0.3 * 4), 0, exp(0.3 * 3), 0])
    np.testing.assert_allclose(result / result.sum(), expected / expected.sum())


def test_large_losses_are_preferred_and_a_share_of_m_is_uniform():
    n, runs = 20, 4000
    setup = equal(n, runs)
    ready = prepared(ActiveFL(m=10, temperature=0.0), setup)
    ready.state.values[:] = np.arange(n)
    slots, _ = play(ready, setup, trained=losses)
    share = np.bincount(slots.client, minlength=n) / runs
    # α1 leaves out fifteen; the other five are all taken, and five of the fifteen uniformly.
    np.testing.assert_array_equal(share[15:], 1)
    np.testing.assert_allclose(share[:15], 1 / 3, atol=5 * 0.5 / sqrt(runs))
    # (1 − 0.1) 5 rounded down: four by valuation, one uniformly from the rest.
    ready = prepared(ActiveFL(m=5, least=0.8, temperature=0.0), setup)
    ready.state.values[:] = np.arange(n)
    slots, _ = play(ready, setup, trained=losses)
    others = slots.run[slots.client < 16]
    np.testing.assert_array_equal(np.bincount(others, minlength=runs), 1)


def test_one_of_five_is_drawn_by_valuation_if_four_fifths_are_uniform():
    setup = equal(20, 200)
    ready = prepared(ActiveFL(m=5, uniform=0.8, temperature=100.0), setup)
    ready.state.values[:] = np.arange(20)
    slots, _ = play(ready, setup, trained=losses)
    assert all((slots.client[slots.run == run] == 19).any() for run in range(200))


def test_unknown_valuations_count_as_the_largest_known_one():
    expected = odds(np.array([1.0, 5.0, 5.0]), 0.0, 1.0)
    np.testing.assert_allclose(odds(np.array([1.0, 5.0, np.inf]), 0.0, 1.0), expected)
    assert odds(np.full(3, np.inf), 0.0, 1.0).tolist() == [1, 1, 1]


def test_only_participants_update_their_valuation():
    setup = replace(equal(6), n_samples=np.full(6, 4))
    ready = prepared(ActiveFL(m=2), setup)
    slots, omega = play(ready, setup, trained=lambda _: {"work_losses": np.array([1.5, np.nan])})
    assert omega.tolist() == [0.5, 0.5]
    assert ready.state.values[0, slots.client].tolist() == [3.0, 0.0]
    assert np.isinf(ready.state.values).sum() == 4


@pytest.mark.parametrize("offered", [[1, 3, 4], [2]])
def test_all_clients_are_selected_if_few_are_available(offered):
    setup = equal(12, runs=2)
    slots, _ = play(prepared(ActiveFL(m=5), setup), setup, trained=losses, offered=offered)
    assert [sorted(slots.client[slots.run == run]) for run in (0, 1)] == [offered] * 2
