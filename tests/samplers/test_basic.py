"""The basic samplers: moments of the weights agree with theory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from fedsampling.base.errors import InputError
from fedsampling.samplers.basic import MD, FedAvg, Poisson, Uniform
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.prepared import prepared

from .rounds import equal, mean_weights, play, sized

P = np.array([0.1, 0.3, 0.2, 0.4])
RUNS = 20_000
SETUP = replace(equal(4, RUNS), p=P)


def select(sampler):
    return play(prepared(sampler, SETUP), SETUP, t=5)


def test_fedavg_takes_a_shorter_step_than_full_participation():
    """Equation (3): E[ω_i] = (m/n) p_i, with the draws of uniform sampling."""
    slots, omega = select(FedAvg(m=2))
    mean, error = mean_weights(slots, omega, SETUP)
    assert (np.abs(mean - P / 2) < 5 * error).all()
    uniform, of_uniform = select(Uniform(m=2))
    np.testing.assert_array_equal(slots.client, uniform.client)
    np.testing.assert_allclose(2 * omega, of_uniform)


def test_duplicate_draws_share_a_slot_or_have_one_each():
    independent, _ = select(MD(m=3))
    shared, omega = select(MD(m=3, duplicates="once"))
    for run in range(50):
        drawn = independent.client[independent.run == run]
        client, times = np.unique(drawn, return_counts=True)
        np.testing.assert_array_equal(shared.client[shared.run == run], client)
        np.testing.assert_array_equal(shared.times[shared.run == run], times)
        np.testing.assert_allclose(omega[shared.run == run], times / 3)
    assert (independent.times == 1).all()


def test_uniform_draws_distinct_clients_with_equally_likely_ordered_pairs():
    slots, _ = select(Uniform(m=2))
    first, second = slots.client.reshape(RUNS, 2).T
    count = np.bincount(4 * first + second, minlength=16).reshape(4, 4)
    assert (np.diag(count) == 0).all()
    assert chisquare(count[~np.eye(4, dtype=bool)]).pvalue > 1e-4


@pytest.mark.parametrize("name", ["random", "fedavg_normalised"])
def test_unbiased_only_for_equal_importances(name):
    claims = [prepared(scheme(name, m=2), setup).unbiased for setup in (SETUP, equal(4))]
    assert claims == [False, True]


def test_poisson_rejects_probabilities_above_one():
    with pytest.raises(InputError, match="use m <= 2"):
        prepared(Poisson(m=3), SETUP)


def test_normalised_fedavg_averages_selected_clients_by_importance():
    sizes = np.array([1, 2, 3, 4])
    setup = sized(sizes, 50)
    slots, omega = play(prepared(scheme("fedavg_normalised", m=2), setup), setup)
    for pair, weights in zip(slots.client.reshape(50, 2), omega.reshape(50, 2), strict=True):
        np.testing.assert_allclose(weights, sizes[pair] / sizes[pair].sum())


def test_random_averages_the_available_clients_if_they_are_fewer_than_m():
    setup = equal(5, 10)
    slots, omega = play(prepared(scheme("random", m=4), setup), setup, offered=[1, 3])
    np.testing.assert_array_equal(np.bincount(slots.client, minlength=5), [0, 10, 0, 10, 0])
    np.testing.assert_array_equal(omega, 1 / 2)
