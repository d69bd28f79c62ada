"""The memory of a selection that compares all pairs of clients, as its sampler declares it."""

import tracemalloc

import numpy as np
import pytest

from fedsampling.samplers.protocol.base import scheme

from .rounds import play, sized

LARGE = {
    "clustered_similarity": {"m": 10},
    "divfl": {"m": 10},
    "delayhet_submodular": {"solver": "exact"},
    "delayhet_sampling": {"m": 10, "solver": "vertex"},
}


@pytest.mark.parametrize("name", LARGE)
def test_declared_matrices_agree_with_the_memory_of_a_selection(name):
    """Within a factor of two, at a size where squares outweigh the rest."""
    n, d = 700, 5
    sampler = scheme(name, **LARGE[name])
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 50, n)
    tracemalloc.start()
    place = rng.random((n, 1))
    observed = {"delays": rng.lognormal(size=n)}
    if "gradients" in sampler.needs:
        observed["gradients"] = rng.standard_normal((1, n, d)).astype(np.float32)
    if "heterogeneity" in sampler.needs:
        observed["heterogeneity"] = np.abs(place - place.T)[None]
    tracemalloc.reset_peak()
    setup = sized(sizes, dimension=d, delays=observed["delays"])
    play(sampler.prepared(setup), setup, observed=observed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 2 < 8 * sampler.pair_matrices * n**2 < 2 * peak
