"""Power-of-Choice and its variants."""

import numpy as np
import pytest
from papers.rizk2022importance.simulations_inclusion import successive_inclusion
from tests.samplers.rounds import equal, play, play_all

from fedsampling.base.errors import InputError
from fedsampling.samplers.power_of_choice import PowerOfChoice, largest_losses
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.draws import candidates
from fedsampling.samplers.protocol.prepared import prepared


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


def test_largest_losses_are_selected_and_ties_go_to_the_first_drawn():
    losses = np.array([[9.0, 1, 2, 2, np.nan]])
    np.testing.assert_array_equal(largest_losses(np.array([[1, 3, 2]]), losses, 2), [[3, 2]])
    np.testing.assert_array_equal(largest_losses(np.array([[2, 3, 1]]), losses, 1), [[2]])
    np.testing.assert_array_equal(largest_losses(np.array([[0, 4, 1]]), losses, 1), [[4]])


def test_losses_are_requested_from_the_candidates():
    sampler = prepared(PowerOfChoice(m=2, d=5), equal(8, runs=3))
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
        prepared(PowerOfChoice(m=3, d=13), equal(12))


def test_the_remembered_variant_selects_new_clients_then_largest_reports():
    n, runs = 6, 3
    setup = equal(n, runs)
    ready = prepared(scheme("rpow_d", m=2, d=6), setup)
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
