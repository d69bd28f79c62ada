"""Stratified sampling."""

from itertools import combinations

import numpy as np

from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup
from fedsampling.samplers.stratified import Stratified, from_strata, proportional

from .rounds import play

GRID = (np.arange(10_000) + 0.5) / 10_000


def test_draws_are_allocated_in_proportion_to_the_strata():
    sizes = np.array([3, 0, 7, 1, 9])
    for m in (1, 4, 13, 20):
        counts = proportional(sizes, m, GRID)
        assert (counts.sum(1) == m).all()
        share = m * sizes / 20
        assert ((counts >= np.floor(share)) & (counts <= np.ceil(share))).all()
        np.testing.assert_allclose(counts.mean(0), share, atol=1e-3)  # an integral over d
    assert proportional(np.array([2, 4, 6]), 6, np.array([0.0, 0.99])).tolist() == 2 * [[1, 2, 3]]


def test_all_subsets_of_a_stratum_are_equally_likely():
    stratum = np.array([1, 0, 1, 0, 1, 1])
    runs = 30_000
    u = np.random.default_rng(0).random((runs, 6))
    member = from_strata(stratum, np.tile([1, 2], (runs, 1)), u)
    seen = {pair: member[:, pair].all(1).mean() for pair in combinations([0, 2, 4, 5], 2)}
    np.testing.assert_allclose(list(seen.values()), 1 / 6, atol=5 * 0.5 / np.sqrt(runs))
    assert (member[:, [1, 3]].sum(1) == 1).all()
    assert (member.sum(1) == 3).all()


def drawn(scheme, runs, t=0, **setup):
    setup = Setup(np.repeat([2, 5, 9], 4), np.full(12, 1 / 12), runs, **setup)
    return play(prepared(scheme, setup), setup, t)


def test_values_constant_within_strata_are_estimated_without_error():
    value = np.repeat([1.0, -3, 8], 4)  # of each client, alike within strata
    for scheme in (Stratified(m=6, strata=3), Stratified(m=3, by="label")):
        slots, omega = drawn(scheme, 50, labels=np.repeat([4, 0, 7], 4))
        estimate = np.bincount(slots.run, omega * value[slots.client])
        np.testing.assert_allclose(estimate, value.mean())


def test_clients_of_similar_size_form_a_stratum_wherever_they_stand():
    setup = Setup(np.tile([2, 5, 9], 4), np.full(12, 1 / 12), 50)
    slots, omega = play(prepared(Stratified(m=6, strata=3), setup), setup)
    value = np.tile([1.0, -3, 8], 4)
    estimate = np.bincount(slots.run, omega * value[slots.client])
    np.testing.assert_allclose(estimate, value.mean())
