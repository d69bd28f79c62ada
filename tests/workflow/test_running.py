"""One GPU per job, by locks that die with their process; without any real GPU."""

import os
import subprocess
import sys
import threading

import pytest

from fedsampling.workflow import running
from fedsampling.workflow.running import VISIBLE, assigned, visible

HOLDER = """
import os, sys, time
from fedsampling.workflow.running import assigned
with assigned(True, lambda: print("waits", flush=True)):
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Two GPUs, and locks that only this test sees."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv(VISIBLE, "2,3")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(running.tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def job():
    """Start a process that holds a GPU, and return it with the first line that it prints."""
    processes = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True
        )
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


def test_afterwards_a_process_sees_all_gpus_again():
    def unexpected():
        raise AssertionError

    for _ in range(2):
        with assigned(True, unexpected):
            assert os.environ[VISIBLE] == "2"
        assert os.environ[VISIBLE] == "2,3"


def test_a_job_that_waits_says_so_once(monkeypatch):
    monkeypatch.setenv(VISIBLE, "0")
    monkeypatch.setattr(running, "POLL_SECONDS", 0.01)
    calls, first = [], assigned(True, print)
    first.__enter__()
    threading.Timer(0.2, lambda: first.__exit__(None, None, None)).start()
    with assigned(True, lambda: calls.append(None)):
        assert len(calls) == 1


@pytest.mark.parametrize(("uses_gpu", "slurm"), [(False, ""), (True, "7")])
def test_nothing_is_locked_without_need_or_under_slurm(tmp_path, monkeypatch, uses_gpu, slurm):
    monkeypatch.setenv("SLURM_JOB_ID", slurm)  # with cgroups every job of a node calls its GPU 0
    with assigned(uses_gpu, print):
        assert os.environ[VISIBLE] == "2,3"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "expected"),
    [("0,2", ["0", "2"]), ("", []), ("-1", []), ("GPU-3f2a", ["GPU-3f2a"])],
)
def test_the_environment_variable_limits_the_gpus(monkeypatch, variable, expected):
    monkeypatch.setenv(VISIBLE, variable)
    assert visible() == expected
