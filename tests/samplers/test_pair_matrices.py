"""The memory of a selection that compares all pairs of clients, as its sampler declares it."""

import tracemalloc

import numpy as np
import pytest

import fedsampling as fs
from fedsampling.base import memory
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.prepared import prepared

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

    def trained(slots):
        return {"updates": np.zeros((len(slots.client), d), np.float32)}

    play(prepared(sampler, setup), setup, observed=observed, trained=trained)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 2 < 8 * sampler.pair_matrices * n**2 < 2 * peak


@pytest.mark.parametrize("name", ["fedgs", "divfl", "clustered_similarity"])
def test_training_refuses_matrices_that_exceed_the_memory(name, monkeypatch):
    n = 500
    monkeypatch.setattr(memory, "available", lambda: 1_000_000)
    data = fs.federated(np.ones((n, 2)), np.arange(n) % 2, clients=np.arange(n))
    work = {"model": "softmax", "steps": 1, "batch": 1, "step": 0.1, "rounds": 1}
    with pytest.raises(fs.InputError, match=rf"{name} compares all pairs of 500 clients, which"):
        fs.train(data, scheme(name, m=5), **work)
