"""Samplers on a random set of candidates: exact with all clients, unbiased if declared."""

from itertools import combinations

import numpy as np
import pytest

from fedsampling.base.streams import Draws
from fedsampling.samplers.latency import best_subset, shares
from fedsampling.samplers.scheme import Setup, candidate_set, scheme
from fedsampling.theory.heterogeneity import bounded

from .rounds import play

N, RUNS = 20, 3
SAMPLERS = [
    {"name": "approx_opt", "m": 4, "solver": "trust-constr", "solver_iterations": 2},
    {"name": "delayhet_sampling", "m": 4, "solver": "vertex"},
    {"name": "delayhet_submodular", "solver": "exact"},
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
