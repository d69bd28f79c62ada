"""MD and uniform sampling as samplers: unbiased weights, drawn from the round's own numbers."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from fedsampling.samplers.schemes import MD, Uniform, distinct
from fedsampling.samplers.slots import View
from fedsampling.streams import Draws

P = np.array([0.1, 0.3, 0.2, 0.4])
RUNS = 20_000


def select(sampler, seeds=None):
    seeds = np.arange(RUNS) if seeds is None else seeds
    view = View(np.ones(4, np.int64), P, 5, len(seeds))
    slots = sampler.select(view, Draws(seeds, 5))
    return slots, sampler.weigh(slots, view, Draws(seeds, 5))


@pytest.mark.parametrize("sampler", [MD(2), Uniform(2), Uniform(4)], ids=["md", "two", "all"])
def test_weights_are_unbiased(sampler):
    slots, omega = select(sampler)
    total = np.zeros((RUNS, 4))
    np.add.at(total, (slots.run, slots.client), omega)
    error = total.std(0) / np.sqrt(RUNS) + 1e-12
    # Five standard errors: a false alarm in twelve comparisons has probability 7e-6.
    assert (np.abs(total.mean(0) - P) < 5 * error).all()


def test_uniform_draws_distinct_clients_every_ordered_pair_alike():
    slots, _ = select(Uniform(2))
    first, second = slots.client.reshape(RUNS, 2).T
    count = np.bincount(4 * first + second, minlength=16).reshape(4, 4)
    assert (np.diag(count) == 0).all()
    assert chisquare(count[~np.eye(4, dtype=bool)]).pvalue > 1e-4


def test_every_cell_of_the_unit_cube_gives_its_own_arrangement():
    """Variates on the grid of (n, n − 1, n − 2) cells: each ordered choice exactly once."""
    n, m = 5, 3
    grid = itertools.product(*(np.arange(n - j) / (n - j) + 1e-9 for j in range(m)))
    choices = distinct(n, np.array(list(grid)))
    assert {tuple(row) for row in choices} == set(itertools.permutations(range(n), m))
    assert len(choices) == 60


def test_the_largest_variate_stays_inside():
    u = np.full((1, 7), np.nextafter(1, 0))
    for n in (7, 300, 2**20 + 1):
        assert len(set(distinct(n, u)[0])) == 7


@pytest.mark.parametrize("sampler", [MD(3), Uniform(3)], ids=["md", "uniform"])
def test_a_run_draws_the_same_clients_alone_and_among_others(sampler):
    many, _ = select(sampler, np.array([4, 9, 2]))
    alone, _ = select(sampler, np.array([9]))
    np.testing.assert_array_equal(many.client[many.run == 1], alone.client)
