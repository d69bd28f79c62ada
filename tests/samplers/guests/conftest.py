"""Small data, and no hostile sampler left behind for other tests."""

import numpy as np
import pytest

import fedsampling as fs
from fedsampling.samplers.protocol.base import Scheme


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 3)).astype(np.float32), rng.integers(3, size=64)
    return fs.federated(x, y, clients=np.repeat(np.arange(8), 8), test_share=0.25)


@pytest.fixture(scope="module", autouse=True)
def hostile_samplers_are_forgotten():
    yield
    while hostile := [
        member for name, member in Scheme.members().items() if name.startswith("hostile_")
    ]:  # a class hides another one with its name
        for member in hostile:
            member.named = ""
