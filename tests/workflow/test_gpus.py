"""One GPU per job, by locks that die with their process; without any real GPU."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from fedsampling.learning.models.devices import stack_bytes
from fedsampling.workflow import gpus as gpus_module
from fedsampling.workflow.gpus import SHARED_BY, VISIBLE, assigned

HOLDER = """
import os, sys, time
from fedsampling.workflow.gpus import assigned
with assigned(True, lambda: print("waits", flush=True), int(sys.argv[1])):
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(60)
"""


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """Two GPUs, and locks that only this test sees."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(VISIBLE, "2,3")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(gpus_module.tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def job(gpus):
    """Start a process that holds a GPU, and return it with the first line that it prints."""
    processes = []

    def start(sharing=1):
        command = [sys.executable, "-c", HOLDER, str(sharing)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_each_job_sees_one_gpu_and_waits_until_a_killed_one_releases_it(job):
    first, gpu = job()
    assert (gpu, job()[1]) == ("2", "3")
    third, line = job()
    assert line == "waits"
    first.kill()
    assert third.stdout.readline() == "2\n"


def test_gpus_of_wsl2_are_those_that_the_driver_lists(tmp_path, monkeypatch):
    (tmp_path / "dxg").touch()  # the only file in /dev
    monkeypatch.setattr(gpus_module, "DEVICES", tmp_path)
    monkeypatch.delenv(VISIBLE, raising=False)
    listed = "GPU 0: NVIDIA RTX A4000 (UUID: GPU-1)\nGPU 1: NVIDIA T4 (UUID: GPU-2)\n"
    monkeypatch.setattr(gpus_module.machine, "output", lambda *words: listed)
    assert gpus_module.visible() == ["0", "1"]


def test_jobs_that_may_share_a_gpu_fill_it_before_another_waits(job):
    assert [job(sharing=2)[1] for _ in range(3)] == ["2", "2", "3"]
    assert job(sharing=4)[1] == "3"  # a quarter, and another is still free
    assert job()[1] == "waits"
    assert job(sharing=4)[1] == "3"


def test_a_sharing_job_knows_its_part_of_the_memory(gpus, monkeypatch):
    card = SimpleNamespace(total_memory=80e9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    whole = stack_bytes("cuda")
    with assigned(True, print, 4):
        assert stack_bytes("cuda") == whole / 4 < 80e9 / 4
    assert SHARED_BY not in os.environ


def test_a_job_sees_one_gpu_and_afterwards_its_process_sees_all_again(batch, gpus):
    seen = []

    def work(stop):
        seen.append(os.environ[VISIBLE])

    work.uses_gpu = True
    for _ in range(2):
        assert batch(work)[0] == 0
        assert os.environ[VISIBLE] == "2,3"
    assert seen == ["2", "2"]
    assert batch(work, device="cpu")[0] == 0
    assert seen[-1] == "2,3"  # none is locked, so none is waited for


@pytest.mark.parametrize(("uses_gpu", "slurm"), [(False, ""), (True, "7")])
def test_nothing_is_locked_without_need_or_under_slurm(
    gpus, tmp_path, monkeypatch, uses_gpu, slurm
):
    monkeypatch.setenv("SLURM_JOB_ID", slurm)  # with cgroups every job of a node calls its GPU 0
    with assigned(uses_gpu, print):
        assert os.environ[VISIBLE] == "2,3"
    assert list(tmp_path.iterdir()) == []
