"""The check of networks, on a processor and with a device that stands in for a GPU."""

from dataclasses import replace

import pytest
import torch

from fedsampling.learning.models.model import Model
from fedsampling.learning.models.networks import products
from fedsampling.learning.training.network import gpu
from fedsampling.workflow.machine import network_check
from fedsampling.workflow.machine.network_check import check_network

CPU = gpu.device("cpu")


def replayed(call, rewind):
    rewind()
    call()
    return call


def nothing(call, rewind):
    replayed(call, rewind)
    return lambda: None


def impossible(call, rewind):
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("name", sorted(network_check.networks()))
def test_every_network_is_checked_with_inputs_that_it_accepts(name):
    learner = network_check.learner(Model.members()[name](), "cpu")
    x, y = learner.samples.gather(torch.arange(2)[None])
    theta = torch.zeros(1, learner.network.dimension)
    outputs = learner.network.outputs(theta, x)
    assert outputs.shape == (*y.shape, learner.data.classes or 1)


@pytest.mark.parametrize("name", ["mlp", "linear", "lstm", "cifar_cnn"])
def test_networks_pass_the_check_on_this_processor(name):
    check = check_network(name, CPU)
    assert not check.fix
    assert str(check).startswith(f"ok   {name}: ")
    assert " 0.0e+00 from a single slot" in check.text
    assert "captured" not in check.text


def test_captured_steps_are_compared_with_single_steps():
    check = check_network("mlp", replace(CPU, record=replayed))
    assert not check.fix
    assert ", 0.0e+00 from captured steps" in check.text
    assert check_network("mlp", replace(CPU, record=nothing)).fix == network_check.ON_CPU


def test_steps_that_cannot_be_captured_are_reported_and_run_one_by_one():
    with pytest.warns(RuntimeWarning, match="one by one"):
        check = check_network("mlp", replace(CPU, record=impossible))
    assert not check.fix
    assert "cannot be captured" in check.text


def test_more_memory_than_estimated_fails_the_check():
    peak_bytes = CPU.peak(lambda: torch.empty(2**20).fill_(1))
    assert 4 * 2**20 <= peak_bytes < 5 * 2**20

    def greedy(call):
        call()
        return 2**40

    assert "more memory" in check_network("mlp", replace(CPU, peak=greedy)).fix


def test_wrong_products_fail_the_check(monkeypatch):
    right = products._slot_by_slot

    def wrong(x, weight):
        return right(x, weight) * (1.1 if x.dtype == torch.float32 else 1)

    monkeypatch.setattr(products, "_slot_by_slot", wrong)
    check = check_network("mlp", CPU)
    assert check.fix == network_check.PLAIN_KERNELS
    assert str(check).startswith("FAIL mlp: ")


def test_a_slot_that_depends_on_its_neighbours_fails_the_check(monkeypatch):
    right = network_check.NetworkLearner.work

    def work(learner, theta, slots, *arguments):
        return right(learner, theta, slots, *arguments) * (1 + 1e-6 * len(slots))

    monkeypatch.setattr(network_check.NetworkLearner, "work", work)
    assert check_network("mlp", CPU).fix == network_check.PLAIN_KERNELS


def test_an_error_of_the_gpu_is_a_failed_check(monkeypatch):
    def missing_kernel(name, device):
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with …")

    monkeypatch.setattr(network_check, "_compare", missing_kernel)
    finding = check_network("mlp", replace(CPU, name="cuda"))
    assert finding == network_check.Finding(
        "mlp: CUDA error: no kernel image is available", network_check.ON_CPU
    )
    with pytest.raises(RuntimeError):
        check_network("mlp", CPU)
