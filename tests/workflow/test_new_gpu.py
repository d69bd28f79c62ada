"""The check of a GPU before its first training, with a device that stands in for a GPU."""

from dataclasses import replace

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import parse
from fedsampling.learning.training.network import gpu
from fedsampling.workflow import running
from fedsampling.workflow.machine import network_check
from fedsampling.workflow.machine.new_gpu import with_sound_device
from fedsampling.workflow.project import Project

GPU = replace(gpu.device("cpu"), name="cuda", facts=("New GPU", "80 GiB", "CUDA 13"))


@pytest.fixture
def checks(monkeypatch):
    """Pretend that PyTorch sees a GPU; return the networks checked so far, and the failures."""
    checked, failing = [], {}

    def check(name, device):
        checked.append((name, device.facts))
        return network_check.Finding(f"{name}: result", failing.get(name, ""))

    monkeypatch.setattr(gpu, "available", lambda: True)
    monkeypatch.setattr(gpu, "device", lambda name: GPU)
    monkeypatch.setattr(network_check, "check_network", check)
    return checked, failing


def test_a_gpu_is_checked_once_with_every_network(tmp_path, checks):
    config = parse({})
    for _ in range(2):
        assert with_sound_device(config, tmp_path) == config
    assert checks[0] == [(name, GPU.facts) for name in network_check.networks()]


def test_another_driver_is_checked_again(tmp_path, checks, monkeypatch):
    with_sound_device(parse({}), tmp_path)
    first = len(checks[0])
    monkeypatch.setattr(gpu, "device", lambda name: replace(GPU, facts=("New GPU", "driver 2")))
    with_sound_device(parse({}), tmp_path)
    assert len(checks[0]) == 2 * first


def test_after_a_failed_check_every_job_trains_on_the_cpu(tmp_path, checks, capsys):
    checks[1]["mlp"] = network_check.ON_CPU
    for _ in range(2):
        assert with_sound_device(parse({}), tmp_path).device == "cpu"
        assert "New GPU: mlp: result" in capsys.readouterr().err


def test_a_required_gpu_that_fails_stops_the_job(tmp_path, checks):
    checks[1]["mlp"] = network_check.ON_CPU
    with pytest.raises(InputError, match="device: New GPU: mlp: result; use cpu or auto"):
        with_sound_device(parse({"device": "cuda"}), tmp_path)


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_without_a_gpu_nothing_is_checked(tmp_path, checks, monkeypatch, device):
    monkeypatch.setattr(gpu, "available", lambda: False)
    config = parse({"device": device})
    assert with_sound_device(config, tmp_path) == config
    assert not checks[0]
    assert not list(tmp_path.iterdir())


def test_jobs_check_the_gpu_before_they_train(tmp_path, checks, monkeypatch):
    checks[1]["mlp"] = network_check.ON_CPU
    project = Project(parse({"scale": "quick", "papers": ["fraboni2021clustered"]}), tmp_path)
    job = next(job for job in project.plan.jobs.values() if job.uses_gpu)
    devices = []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr(
        running, "execute_stacked", lambda jobs, config, *_: devices.append(config.device) or []
    )
    assert running.execute_all([job], project, print) == 0
    assert devices == ["cpu"]
