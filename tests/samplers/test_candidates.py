"""Samplers on a random set of candidates: exact with all clients, unbiased if declared."""

from itertools import combinations

import numpy as np
import pytest

from fedsampling.base.streams import Draws
from fedsampling.samplers.clustered import units_by_sample
from fedsampling.samplers.latency import best_subset, shares
from fedsampling.samplers.numerics import MEASURES, WARD_VARIANTS
from fedsampling.samplers.scheme import Setup, candidate_set, scheme
from fedsampling.theory.heterogeneity import bounded

from .rounds import play

N, RUNS = 20, 3
SAMPLERS = [
    {"name": "approx_opt", "m": 4, "solver": "trust-constr", "solver_iterations": 2},
    {"name": "clustered_similarity", "m": 4},
    {"name": "clustered_similarity", "m": 6, "measure": "l1", "ward": "code"},
    {"name": "delayhet_sampling", "m": 4, "solver": "vertex"},
    {"name": "delayhet_submodular", "solver": "exact"},
    {"name": "divfl", "m": 4, "weights": "covered"},
]


def population():
    rng = np.random.default_rng(1)
    sizes = rng.integers(5, 30, N)
    place = rng.random((RUNS, N, 2))
    observed = {
        "delays": rng.lognormal(size=N),
        "gradients": rng.standard_normal((RUNS, N, 6)).astype(np.float32),
        "heterogeneity": np.linalg.norm(place[:, :, None] - place[:, None], axis=-1),
    }
    setup = Setup(sizes, sizes / sizes.sum(), RUNS, dimension=6, delays=observed["delays"])
    return setup, observed


def played(sampler, rounds=3):
    """Return clients and weights of all rounds in one list."""
    setup, observed = population()
    ready = sampler.prepared(setup)
    answers = []
    for t in range(rounds):
        slots, omega = play(ready, setup, t, observed)
        if "updates" in ready.needs:
            ready.saw_updates(slots, observed["gradients"][slots.run, slots.client] + t)
        answers += [(run, client) for run, client in zip(slots.run, slots.client, strict=True)]
        answers += omega.tolist()
    return answers


@pytest.mark.parametrize("settings", SAMPLERS, ids=lambda settings: settings["name"])
@pytest.mark.parametrize("excess", [0, 7])
def test_with_all_clients_as_candidates_the_sampler_is_the_exact_one(settings, excess):
    exact = scheme(**settings)
    assert played(exact.model_copy(update={"candidates": N + excess})) == played(exact)


def test_approx_opt_with_candidates_is_unbiased():
    runs, n = 250, 8
    setup = Setup(np.arange(3, 3 + n), np.arange(3, 3 + n) / 52, runs, delays=np.arange(1.0, 1 + n))
    gradients = np.broadcast_to(np.linspace(3, 1, n)[:, None], (runs, n, 1))
    observed = {"delays": setup.delays, "gradients": gradients}
    quick = {"solver": "trust-constr", "solver_iterations": 2}
    sampler = scheme("approx_opt", m=4, candidates=4, **quick).prepared(setup)
    slots, weights = play(sampler, setup, observed=observed)
    omega = np.zeros((runs, n))
    np.add.at(omega, (slots.run, slots.client), weights)
    error = omega.std(axis=0) / np.sqrt(runs)
    assert (abs(omega.mean(axis=0) - setup.p) < 4.5 * error).all()


def test_all_sets_of_candidates_are_equally_likely():
    rng = np.random.default_rng(0)
    drawn = [tuple(candidate_set(5, 2, rng)) for _ in range(5000)]
    counts = [drawn.count(pair) for pair in combinations(range(5), 2)]
    assert sum(counts) == 5000
    assert abs(np.array(counts) - 500).max() < 5 * np.sqrt(500 * 0.9)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("ward", WARD_VARIANTS)
@pytest.mark.parametrize("size", [1, 2, 5, 20, 39])
def test_groups_from_a_sample_keep_the_sums_of_rows_and_columns(measure, ward, size):
    rng = np.random.default_rng(size)
    n_samples, m = np.append(rng.integers(1, 60, 39), 900), 6
    updates = rng.standard_normal((40, 9)).astype(np.float32)
    updates[:5] = 0
    units = units_by_sample(n_samples, updates, m, measure, rng, size, ward)
    assert (units >= 0).all()
    assert (units.sum(1) == n_samples.sum()).all()
    np.testing.assert_array_equal(units.sum(0), m * n_samples)


def test_clients_outside_the_sample_join_the_most_similar_group():
    """Six kinds of clients, two thirds of a distribution each: four get one to themselves."""
    kind = np.arange(120) % 6
    updates = (10 * np.eye(6)[kind] + 0.01 * np.arange(120)[:, None]).astype(np.float32)
    units = units_by_sample(np.full(120, 3), updates, 4, "l2", np.random.default_rng(0), 100)
    rows = [(units[:, kind == k].sum(axis=1) > 0).sum() for k in range(6)]
    assert rows.count(1) >= 4


def test_delayhet_solves_the_candidates_problem_exactly():
    setup, observed = population()
    sampler = scheme("delayhet_submodular", solver="exact", candidates=8).prepared(setup)
    slots, omega = play(sampler, setup, observed=observed)
    for run, generator in enumerate(Draws(np.arange(RUNS), 0).generators("candidates")):
        candidates = candidate_set(N, 8, generator)
        B = observed["heterogeneity"][run][np.ix_(candidates, candidates)]
        chosen, _ = best_subset(bounded(B), observed["delays"][candidates])
        in_run = slots.run == run
        np.testing.assert_array_equal(slots.client[in_run], candidates[chosen])
        np.testing.assert_allclose(omega[in_run], shares(B, chosen))
