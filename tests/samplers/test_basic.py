"""The basic samplers: moments of the weights agree with theory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare

from fedsampling.base.errors import InputError
from fedsampling.samplers.basic import MD, FedAvg, Poisson, Random, Uniform
from fedsampling.samplers.scheme import Setup, scheme

from .rounds import equal, play

P = np.array([0.1, 0.3, 0.2, 0.4])
RUNS = 20_000


def select(sampler):
    return play(sampler, Setup(np.ones(4, np.int64), P, RUNS), t=5)


def weights(sampler):
    """ω of every client in every run, shape (RUNS, 4)."""
    slots, omega = select(sampler)
    total = np.zeros((RUNS, 4))
    np.add.at(total, (slots.run, slots.client), omega)
    return total


def test_fedavg_takes_a_shorter_step_than_full_participation():
    """Equation (3): E[ω_i] = (m/n) p_i, with the draws of uniform sampling."""
    total = weights(FedAvg(m=2))
    error = total.std(0) / np.sqrt(RUNS)
    assert (np.abs(total.mean(0) - P / 2) < 5 * error).all()
    np.testing.assert_allclose(2 * total, weights(Uniform(m=2)))


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


def test_uniform_draws_distinct_clients_and_all_ordered_pairs_are_equally_likely():
    slots, _ = select(Uniform(m=2))
    first, second = slots.client.reshape(RUNS, 2).T
    count = np.bincount(4 * first + second, minlength=16).reshape(4, 4)
    assert (np.diag(count) == 0).all()
    assert chisquare(count[~np.eye(4, dtype=bool)]).pvalue > 1e-4


def test_random_is_unbiased_only_for_equal_importances():
    unequal = replace(equal(4), p=P)
    claims = [Random(m=2).prepared(setup).unbiased for setup in (unequal, equal(4))]
    assert claims == [False, True]


def test_poisson_rejects_probabilities_above_one():
    with pytest.raises(InputError, match="use m <= 2"):
        Poisson(m=3).prepared(replace(equal(4), p=P))


def test_normalised_fedavg_averages_by_importance_over_the_selected_clients():
    sizes = np.array([1, 2, 3, 4])
    setup = Setup(sizes, sizes / 10, 50)
    ready = scheme("fedavg_normalised", m=2).prepared(setup)
    slots, omega = play(ready, setup)
    for pair, weights in zip(slots.client.reshape(50, 2), omega.reshape(50, 2), strict=True):
        np.testing.assert_allclose(weights, sizes[pair] / sizes[pair].sum())
    assert not ready.unbiased
    assert scheme("fedavg_normalised", m=2).prepared(Setup(sizes, np.full(4, 0.25), 1)).unbiased
