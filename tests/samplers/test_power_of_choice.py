"""Power-of-Choice: candidates in proportion to importance, then the largest losses."""

from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from papers.rizk2022importance.simulations import successive_inclusion
from tests.samplers.rounds import equal, play, play_all

from fedsampling.base.errors import InputError
from fedsampling.samplers.power_of_choice import (
    ActiveFL,
    PowerOfChoice,
    candidates,
    largest_losses,
    odds,
    valuation,
)
from fedsampling.samplers.scheme import scheme


def test_candidates_are_drawn_one_after_the_other_without_replacement():
    p = np.array([0.5, 0.2, 0.2, 0.1, 0.0])
    drawn = candidates(p, 2, np.random.default_rng(0).random((40_000, 5)))
    assert (drawn[:, 0] != drawn[:, 1]).all()
    share = np.bincount(drawn.ravel(), minlength=5) / len(drawn)
    # Five standard errors: a false alarm in one of nine comparisons has probability 5e-6.
    np.testing.assert_allclose(share[:4], successive_inclusion(p)[:4], atol=5 * 0.5 / 200)
    first = np.bincount(drawn[:, 0], minlength=5) / len(drawn)
    np.testing.assert_allclose(first, p, atol=5 * 0.5 / 200)
    assert share[4] == 0


def test_candidates_with_the_largest_losses_are_selected_and_ties_go_to_the_first_drawn():
    losses = np.array([[9.0, 1, 2, 2, np.nan]])
    np.testing.assert_array_equal(largest_losses(np.array([[1, 3, 2]]), losses, 2), [[3, 2]])
    np.testing.assert_array_equal(largest_losses(np.array([[2, 3, 1]]), losses, 1), [[2]])
    np.testing.assert_array_equal(largest_losses(np.array([[0, 4, 1]]), losses, 1), [[4]])


def test_losses_are_requested_from_the_candidates():
    sampler = PowerOfChoice(m=2, d=5)
    losses = np.random.default_rng(0).random((3, 8))
    slots, _ = play(sampler, equal(8, runs=3), observed={"losses": losses})
    requested = sampler.asked()
    assert (requested.sum(1) == 5).all()
    assert requested[slots.run, slots.client].all()
    for run in range(3):
        chosen = losses[run, slots.client[slots.run == run]]
        np.testing.assert_array_equal(np.sort(chosen), np.sort(losses[run, requested[run]])[-2:])


def test_too_few_and_too_many_candidates_are_rejected():
    for name in ("power_of_choice", "rpow_d"):
        with pytest.raises(InputError, match="fewer than"):
            scheme(name, m=3, d=2)
    with pytest.raises(InputError, match="exceeds the 12 clients"):
        PowerOfChoice(m=3, d=13).prepared(equal(12))


def test_the_remembered_variant_selects_new_clients_first_then_the_largest_reports():
    n, runs = 6, 3
    setup = equal(n, runs)
    ready = scheme("rpow_d", m=2, d=6).prepared(setup)
    loss = np.array([0.1, 0.9, 0.3, 0.8, 0.2, 0.7])
    seen = np.zeros((runs, n), np.int64)
    trained = lambda _, slots: {"work_losses": loss[slots.client]}  # noqa: E731
    for t, (slots, omega) in enumerate(play_all(ready, setup, 4, trained=trained)):
        seen[slots.run, slots.client] += 1
        assert omega.tolist() == [0.5] * 6
        if t == 2:
            assert (seen == 1).all()  # three rounds of two: everybody once
    assert np.sort(slots.client.reshape(runs, 2)).tolist() == [[1, 3]] * runs
    assert ready.asked() is None  # nothing is asked before a round


# Active FL: valuations, sampling probabilities, and uniform draws.


def losses(slots):
    return {"work_losses": np.ones(len(slots))}


def test_valuation_is_the_sum_of_losses_divided_by_the_root_of_their_number():
    losses = [[0.5, 2.0, 1.0], [3.0]]
    result = valuation(np.array([3, 1]), np.array([np.mean(values) for values in losses]))
    np.testing.assert_allclose(result, [sum(values) / sqrt(len(values)) for values in losses])


def test_clients_with_the_smallest_valuations_are_excluded_and_the_others_follow_the_softmax():
    result = odds(np.array([4.0, 1.0, 3.0, 2.0]), 0.5, 0.3)
    expected = np.array([exp(0.3 * 4), 0, exp(0.3 * 3), 0])
    np.testing.assert_allclose(result / result.sum(), expected / expected.sum())


def test_unknown_valuations_count_as_the_largest_known_one():
    expected = odds(np.array([1.0, 5.0, 5.0]), 0.0, 1.0)
    np.testing.assert_allclose(odds(np.array([1.0, 5.0, np.inf]), 0.0, 1.0), expected)
    assert odds(np.full(3, np.inf), 0.0, 1.0).tolist() == [1, 1, 1]


def test_clients_with_large_losses_are_preferred_and_a_share_of_m_is_uniform():
    n, runs = 20, 4000
    setup = equal(n, runs)
    ready = ActiveFL(m=10, temperature=0.0).prepared(setup)
    ready._values[:] = np.arange(n)
    slots, _ = play(ready, setup, trained=losses)
    share = np.bincount(slots.client, minlength=n) / runs
    # α1 leaves out fifteen; the other five are all taken, and five of the fifteen uniformly.
    np.testing.assert_array_equal(share[15:], 1)
    np.testing.assert_allclose(share[:15], 1 / 3, atol=5 * 0.5 / sqrt(runs))
    # (1 − 0.1) 5 rounded down: four by valuation, one uniformly from the rest.
    ready = ActiveFL(m=5, least=0.8, temperature=0.0).prepared(setup)
    ready._values[:] = np.arange(n)
    slots, _ = play(ready, setup, trained=losses)
    assert (np.bincount(slots.run[slots.client < 16]) == 1).all()


def test_only_participants_update_their_valuation():
    setup = replace(equal(6), n_samples=np.full(6, 4))
    ready = ActiveFL(m=2).prepared(setup)
    slots, omega = play(ready, setup, trained=lambda _: {"work_losses": np.array([1.5, np.nan])})
    assert omega.tolist() == [0.5, 0.5]
    assert ready._values[0, slots.client].tolist() == [3.0, 0.0]
    assert np.isinf(ready._values).sum() == 4


@pytest.mark.parametrize("offered", [[1, 3, 4], [2]])
def test_all_clients_are_selected_if_few_are_available(offered):
    setup = equal(12, runs=2)
    slots, _ = play(ActiveFL(m=5).prepared(setup), setup, trained=losses, offered=offered)
    assert [sorted(slots.client[slots.run == run]) for run in (0, 1)] == [offered] * 2
