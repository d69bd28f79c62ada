"""The doctor's checks of this machine."""

import pytest
import torch
from click.testing import CliRunner

from fedsampling.cli import main
from fedsampling.learning.models import products
from fedsampling.learning.models.settings import Model
from fedsampling.workflow import doctor
from fedsampling.workflow.doctor import check_network


@pytest.mark.parametrize("name", sorted(doctor.networks()))
def test_every_network_is_checked_with_inputs_that_it_accepts(name):
    learner = doctor.learner(Model.members()[name](), "cpu")
    x, y = learner.samples.gather(torch.arange(2)[None])
    theta = torch.zeros(1, learner.network.dimension)
    outputs = learner.network.outputs(theta, x)
    assert outputs.shape == (*y.shape, learner.data.classes or 1)


@pytest.mark.parametrize("name", ["mlp", "linear", "lstm", "cifar_cnn"])
def test_networks_pass_the_check_on_this_processor(name):
    check = check_network(name, "cpu")
    assert not check.fix
    assert str(check).startswith(f"ok   {name}: ")
    assert check.text.endswith(" 0.0e+00 from a single slot")


def test_wrong_products_fail_the_check(monkeypatch):
    right = products._slot_by_slot

    def wrong(x, weight):
        return right(x, weight) * (1.1 if x.dtype == torch.float32 else 1)

    monkeypatch.setattr(products, "_slot_by_slot", wrong)
    check = check_network("mlp", "cpu")
    assert check.fix == doctor.PLAIN_KERNELS
    assert str(check).startswith("FAIL mlp: ")


def test_a_slot_that_depends_on_its_neighbours_fails_the_check(monkeypatch):
    right = doctor.NetworkLearner.work

    def work(learner, theta, slots, *arguments):
        return right(learner, theta, slots, *arguments) * (1 + 1e-6 * len(slots))

    monkeypatch.setattr(doctor.NetworkLearner, "work", work)
    assert check_network("mlp", "cpu").fix == doctor.PLAIN_KERNELS


def test_an_error_of_the_gpu_is_a_failed_check(monkeypatch):
    def missing_kernel(learner):
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with …")

    monkeypatch.setattr(doctor, "learner", lambda model, device: None)
    monkeypatch.setattr(doctor, "_distances", missing_kernel)
    finding = check_network("mlp", "cuda")
    assert finding == doctor.Diagnosis(
        "mlp: CUDA error: no kernel image is available", doctor.ON_CPU
    )
    with pytest.raises(RuntimeError):
        check_network("mlp", "cpu")


@pytest.mark.parametrize("fix", ["", "do something"])
def test_the_command_fails_if_a_check_fails(monkeypatch, tmp_path, fix):
    monkeypatch.setattr(doctor, "check_network", lambda name, device: doctor.Diagnosis(name, fix))
    (tmp_path / "config.yaml").write_text("device: cpu\n")
    result = CliRunner().invoke(main, ["doctor", "--config", str(tmp_path / "config.yaml")])
    assert result.exit_code == bool(fix)
    assert ("FAIL mlp: do something" in result.output) == bool(fix)
