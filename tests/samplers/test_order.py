"""The memory and time of a selection, as its sampler declares them."""

import tracemalloc

import numpy as np
import pytest

from fedsampling.base.streams import Draws
from fedsampling.samplers.interface.in_settings import memory_bytes, obstacle, selection_seconds
from fedsampling.samplers.scheme import Setup, View, scheme

LARGE = {
    "clustered_similarity": {"m": 10},
    "divfl": {"m": 10},
    "delayhet_submodular": {"solver": "exact"},
    "delayhet_sampling": {"m": 10, "solver": "vertex"},
}


def test_without_declaration_memory_and_time_are_linear():
    undeclared = scheme("md", m=4)
    assert memory_bytes(undeclared, 1000, 10**9) == 8000
    assert obstacle(undeclared, 10**6, 10**9, 5, 1e9, 60.0) == ""


def test_candidates_replace_the_number_of_clients():
    for n in (50, 10_000):
        of_all = selection_seconds(scheme("approx_opt", m=4), n, 10)
        of_some = selection_seconds(scheme("approx_opt", m=4, candidates=100), n, 10)
        assert of_some == of_all if n < 100 else of_some < 1e-5 * of_all


def test_observations_stored_at_the_server_count_for_each_run():
    for_one, for_five = (memory_bytes(scheme("divfl", m=4), 100, 1000, runs) for runs in (1, 5))
    assert for_five - for_one == 4 * 4 * 100 * 1000


@pytest.mark.parametrize("name", LARGE)
def test_too_large_a_population_is_rejected_with_a_size_that_fits(name):
    sampler = scheme(name, **LARGE[name])
    line = obstacle(sampler, 100_000, 10, 1, 16e9, 1e9)
    assert line.startswith(f"name: {name} needs ")
    assert "GB of memory for 100,000 clients" in line
    assert "but only 16 GB are available; set candidates: " in line
    size = int(line.partition("candidates: ")[2].partition(",")[0])
    smaller = sampler.model_copy(update={"candidates": size})
    assert obstacle(smaller, 100_000, 10, 1, 16e9, 1e9) == ""


def test_a_selection_that_takes_too_long_is_rejected():
    line = obstacle(scheme("approx_opt", m=4), 20_000, 10, 1, 1e12, 86400.0)
    assert "takes about" in line
    assert "hours for one selection among 20,000 clients" in line
    assert "the limit is 24; set candidates: 1000" in line


@pytest.mark.parametrize("name", LARGE)
def test_estimated_memory_agrees_with_a_selection(name):
    """Within a factor of two, at a size where squares outweigh the rest."""
    n, d = 700, 5
    sampler = scheme(name, **LARGE[name])
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 50, n)
    draws = Draws(np.zeros(1, np.int64), 0)
    tracemalloc.start()
    place = rng.random((n, 1))
    observed = {"delays": rng.lognormal(size=n)}
    if "gradients" in sampler.needs:
        observed["gradients"] = rng.standard_normal((1, n, d)).astype(np.float32)
    if "heterogeneity" in sampler.needs:
        observed["heterogeneity"] = np.abs(place - place.T)[None]
    tracemalloc.reset_peak()
    setup = Setup(sizes, sizes / sizes.sum(), dimension=d, delays=observed["delays"])
    ready = sampler.prepared(setup)
    ready.select(View(sizes, setup.p, 0, 1, observed), draws)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 2 < memory_bytes(sampler, n, d) < 2 * peak
