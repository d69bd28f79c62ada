"""FLANP: stages of the fastest clients, whose number doubles."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.samplers.flanp import Flanp, fastest
from fedsampling.samplers.protocol.prepared import prepared

from . import rounds

DELAYS = np.array([5.0, 1, 9, 2, 7, 3])


def started(runs=1, **settings):
    return prepared(Flanp(**settings), rounds.equal(6, runs, delays=DELAYS))


def play(sampler, gradients=None, t=0, runs=1):
    observed = {"delays": DELAYS} | ({} if gradients is None else {"gradients": gradients})
    return rounds.play(sampler, rounds.equal(6, runs), t, observed)


def test_the_fastest_clients_are_selected_and_ties_are_broken_by_index():
    np.testing.assert_array_equal(fastest(DELAYS, 3), [1, 3, 5])
    np.testing.assert_array_equal(fastest(np.ones(4), 2), [0, 1])


def test_stages_of_fixed_length_double_up_to_all_clients():
    sampler = started(first=2, stop="rounds", rounds=3)
    sizes = []
    for t in range(10):
        slots, omega = play(sampler, t=t)
        np.testing.assert_array_equal(slots.client, fastest(DELAYS, len(slots)))
        np.testing.assert_allclose(omega, 1 / len(slots))
        sizes.append(len(slots))
    assert sizes == [2, 2, 2, 4, 4, 4, 6, 6, 6, 6]


def test_a_stage_ends_when_the_active_clients_gradient_is_small():
    sampler = started(2, first=2, accuracy=0.25)
    gradients = np.zeros((2, 6, 3))
    gradients[:, [1, 3]] = [[1.0, 0, 0], [3.0, 0, 0]]  # mean (2, 0, 0): squared norm 4
    play(sampler, gradients, 0, 2)
    gradients[1] *= 0.49  # run 1: squared norm 0.96, of 4 at the start
    slots, omega = play(sampler, gradients, 1, 2)
    np.testing.assert_array_equal(np.bincount(slots.run), [2, 4])
    np.testing.assert_allclose(omega, [0.5, 0.5, 0.25, 0.25, 0.25, 0.25])
    # The threshold has halved, from 1 to 1/2, and the mean over four clients is (0.49, 0, 0).
    slots, _ = play(sampler, gradients, 2, 2)
    np.testing.assert_array_equal(np.bincount(slots.run), [2, 6])
    assert sampler.measured()["active"].tolist() == [2, 6]


def test_flanps_own_rule_counts_the_samples_of_the_active_clients():
    sampler = started(first=2, stop="statistical", constant=1.0)  # one sample each: 1/2, 1/4, 1/6
    gradients = np.zeros((1, 6, 3))
    sizes = []
    for t, norm in enumerate((0.7, 0.71, 0.7, 0.51, 0.49, 0.49)):
        gradients[..., 0] = norm
        sizes.append(len(play(sampler, gradients, t)[0]))
    assert sizes == [2, 2, 4, 4, 6, 6]
    for settings in ({"stop": "statistical"}, {"constant": 1.0}):
        with pytest.raises(InputError, match="constant: required if stop is 'statistical'"):
            started(first=2, **settings)


def test_a_stage_lasts_at_least_one_round():
    sampler = started(first=1, accuracy=0.5)
    sizes = [len(play(sampler, np.zeros((1, 6, 2)), t)[0]) for t in range(4)]
    assert sizes == [1, 2, 4, 6]


def test_gradients_are_needed_only_if_they_end_a_stage():
    assert "gradients" not in Flanp(first=2, stop="rounds").needs
    with pytest.raises(InputError, match="first"):
        started(first=7)
