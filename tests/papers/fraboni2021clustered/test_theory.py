"""What clustered sampling does to a client, against all outcomes of small cases."""

import itertools
from math import floor, prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from papers.fraboni2021clustered.theory import (
    inclusion,
    md_distributions,
    most_draws,
    variance,
)

from fedsampling.samplers.clustered import allocate_by_similarity, allocate_by_size

populations = st.lists(st.integers(1, 10**4), min_size=1, max_size=40)


def distributions(n_samples, m):
    """Those of both algorithms."""
    updates = np.random.default_rng(0).normal(size=(len(n_samples), 3))
    rng = np.random.default_rng(1)
    yield allocate_by_size(n_samples, m)
    for ward in ("paper", "code"):
        yield allocate_by_similarity(n_samples, updates, m, "arccos", rng, ward)


def test_closed_forms_are_those_of_all_outcomes():
    n_samples, m = np.array([5, 1, 3, 4]), 3
    for r in [*distributions(n_samples, m), md_distributions(n_samples / 13, m)]:
        chance, omega = [], []
        for draw in itertools.product(range(4), repeat=m):
            chance.append(prod(r[k, i] for k, i in enumerate(draw)))
            omega.append(np.bincount(draw, minlength=4) / m)
        chance, omega = np.array(chance), np.array(omega)
        mean = chance @ omega
        np.testing.assert_allclose(mean, n_samples / 13)
        off = omega - mean
        np.testing.assert_allclose(variance(r), chance @ off**2)
        np.testing.assert_allclose(inclusion(r), chance @ (omega > 0))
        np.testing.assert_array_equal(most_draws(r), (m * omega[chance > 0]).max(0).round())


@given(populations, st.data())
@settings(max_examples=60)
def test_no_client_varies_more_or_is_drawn_less_likely_than_under_md(n_samples, data):
    """Inequalities (17) and (23)."""
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples)))
    md = md_distributions(n_samples / n_samples.sum(), m)
    for r in distributions(n_samples, m):
        assert (variance(r) <= variance(md) + 1e-12).all()
        assert (inclusion(r) >= inclusion(md) - 1e-12).all()


def test_algorithm_2_keeps_no_such_limit():
    """A client of the groups left over fills the gaps of many distributions."""
    n_samples, m = np.array([8, 8, 8, 8, 8, 5]), 5
    r = allocate_by_similarity(n_samples, np.eye(6), m, "l2", np.random.default_rng(0))
    assert floor(m * 5 / 45) + 2 == 2
    assert most_draws(r)[5] == 5
