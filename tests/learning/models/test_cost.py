import platform

import pytest
from tests.processes import run_python

from fedsampling.learning.models.model import CifarCnn, ConvNet, Gru, Lstm, Mlp
from fedsampling.learning.models.networks.cost import operations, step_bytes

MLP = Mlp().build((28, 28), 10)


def test_operations_of_dense_layers_are_counted_as_by_hand():
    weights = 784 * 50 + 50 * 10
    result = operations(MLP, (28, 28), batch=20)
    assert result.forward == 20 * 2 * weights
    assert result.step == 20 * 2 * (3 * weights - 784 * 50)  # the inputs need no gradient


def test_operations_of_convolutions_are_counted_as_by_hand():
    network = ConvNet().build((28, 28), 10)
    first, second = 24 * 24 * 20 * 25, 8 * 8 * 50 * 20 * 25
    dense = 800 * 500 + 500 * 10
    result = operations(network, (28, 28), batch=3)
    assert result.forward == 3 * 2 * (first + second + dense)
    assert result.step == 3 * 2 * (3 * (first + second + dense) - first)


@pytest.mark.parametrize("steps", [4, 8])
def test_operations_of_recurrent_layers_exclude_the_zero_states(steps):
    network = Lstm(embedding=8, hidden=16).build((steps,), 30)
    layers = steps * 4 * 16 * (8 + 16) + (steps - 1) * 2 * 4 * 16 * 16
    assert operations(network, (steps,), batch=5).forward == 5 * 2 * (layers + 16 * 30)


MEASURE = """
import resource, torch
from fedsampling.learning.models.networks.cost import keep_memory
assert keep_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(2**23).fill_(1)  # 32 MiB, 8,192 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(min(faults() for _ in range(10)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's setting")
def test_freed_memory_is_reused_without_page_faults():
    assert int(run_python("-c", MEASURE)) < 100


@pytest.mark.parametrize(
    ("model", "sample"),
    [
        (Mlp(), (28, 28)),
        (ConvNet(), (28, 28)),
        (CifarCnn(), (32, 32, 3)),
        (Lstm(hidden=16), (20,)),
        (Gru(embedding=32, hidden=32), (20,)),
    ],
)
def test_estimated_memory_of_a_step_agrees_with_the_profiler(profiled_peak, model, sample):
    network = model.build(sample, 10)
    peak = profiled_peak(network, sample, 16)
    # Which library multiplies differs between processors, and so does what it keeps.
    assert 0.9 * peak <= step_bytes(network, sample, 16) <= 1.8 * peak
