"""Batches: the jobs of a process, its requests, its GPU, and when it stops."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.shared import PAPERS

from fedsampling.base.files import write_record
from fedsampling.base.stopping import END_VARIABLE, EXIT_UNFINISHED
from fedsampling.experiments.config import Config
from fedsampling.learning.models.devices import stack_bytes
from fedsampling.runs import places
from fedsampling.runs.measurements import Measured, measurement_key, save_measurements
from fedsampling.runs.rule_resources import RuleResources
from fedsampling.workflow import gpus as gpus_module
from fedsampling.workflow import run as running
from fedsampling.workflow.gpus import SHARED_BY, VISIBLE, assigned
from fedsampling.workflow.plan import QUICK_JOBS_PER_PROCESS, plan
from fedsampling.workflow.project import Project

PAPER = "rizk2022importance"


@pytest.fixture(autouse=True)
def nothing_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)
    monkeypatch.setattr("fedsampling.workflow.plan.PUBLISHED", tmp_path)


def quick_plan(paper=PAPER, **settings):
    return plan({"papers": [paper], "scale": "quick", "data": "embedded", **settings}, PAPERS)


def planned_in_fours():
    fours = {"regression": {"jobs_per_process": 4, "seeds": 5, "seed_block": 1}}
    return quick_plan(data="official", scale="paper", overrides={PAPER: fours})


def test_every_job_at_quick_scale_is_in_a_batch_of_its_paper():
    planned = quick_plan()
    assert [job for batch in planned.batches.values() for job in batch] == list(planned.jobs)
    assert {len(batch) for batch in planned.batches.values()} == {
        QUICK_JOBS_PER_PROCESS,
        len(planned.jobs) % QUICK_JOBS_PER_PROCESS,
    }
    assert list(planned.batches)[:2] == [f"{PAPER}_quick_0", f"{PAPER}_quick_1"]


def test_a_job_with_overrides_has_its_own_process():
    planned = quick_plan(overrides={PAPER: {"regression": {"seeds": 20}}})
    batched = [planned.jobs[job] for batch in planned.batches.values() for job in batch]
    experiments = {job.experiment for job in batched}
    assert "regression" not in experiments
    assert "sensitivity" in experiments


def test_at_other_scales_only_jobs_of_experiments_that_say_so_share_a_process():
    planned = planned_in_fours()
    jobs = planned.jobs_of(PAPER, "regression")
    assert planned.batches == {
        f"{PAPER}_regression_{number}": jobs[4 * number : 4 * number + 4]
        for number in range((len(jobs) + 2) // 4)  # a last job alone is in no batch
    }
    assert quick_plan(data="official", scale="paper").batches == {}


def test_published_jobs_are_in_no_batch_and_not_computed(tmp_path):
    planned = quick_plan()
    first, second, third = list(planned.jobs.values())[:3]
    runs = (*first.runs, *second.runs, *third.runs[:-1])
    listed = {"paper/experiment": [run.hash for run in runs]}
    write_record(tmp_path / places.INDEX, listed)
    remaining = quick_plan()
    assert remaining.jobs_to_run(PAPER) == list(planned.jobs)[2:]
    assert next(iter(remaining.batches.values()))[0] == third.name
    assert quick_plan(shipped=False).jobs_to_run(PAPER) == list(planned.jobs)


def test_a_batch_requests_the_largest_needs_of_its_jobs(tmp_path):
    planned = quick_plan("harshvardhan2025latency", cluster={"gpu": "gpu"})
    resources = RuleResources(planned.jobs, planned.batches, planned.config.cluster, tmp_path)
    for name, names in planned.batches.items():
        request = {resource: of(None, 1) for resource, of in resources.of(name).items()}
        network = any(planned.jobs[job].runs[0].settings["kind"] == "network" for job in names)
        assert request["gpu"] == (1 if network else None)
        assert request["runtime"] >= (241 if network else 6)


def test_the_estimates_of_a_batch_add_up(tmp_path):
    planned = planned_in_fours()
    name, names = next(iter(planned.batches.items()))
    jobs = [planned.jobs[job] for job in names]
    save_measurements({measurement_key(job): Measured(600 / job.steps) for job in jobs}, tmp_path)
    resources = RuleResources(planned.jobs, planned.batches, planned.config.cluster, tmp_path)
    minutes = 1 + 10 * planned.config.cluster.margin * len(jobs)
    assert resources.of(name)["runtime"](None, 1) == minutes


def nothing(stop):
    """Finish at once, without asking whether to stop."""


def asking(stop):
    """Ask whether to stop, and finish at once."""
    assert not stop()


def deaf(stop):
    time.sleep(2)


def signalled_at_the_end(stop):
    assert not stop()
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def batch(tmp_path, monkeypatch):
    """Run a batch of jobs that do as functions do; return its exit status and who has finished."""

    def execute(jobs, config, results, progress, stop):
        jobs[0].work(stop)
        return [Path(jobs[0].name)]

    monkeypatch.setattr(running, "stacks", lambda jobs: [[job] for job in jobs])
    monkeypatch.setattr(running, "execute", execute)
    for name in ("SLURM_JOB_ID", END_VARIABLE):
        monkeypatch.delenv(name, raising=False)

    def run(*works):
        jobs = [
            SimpleNamespace(
                name=f"{number}-{work.__name__}",
                uses_gpu=hasattr(work, "uses_gpu"),
                runs=[SimpleNamespace(hash="")],
                work=work,
            )
            for number, work in enumerate(works)
        ]
        finished = []
        project = Project(Config(), tmp_path)
        try:
            status = running.execute_all(jobs, project, lambda path: finished.append(path.name))
        except SystemExit as ended:
            return int(str(ended.code)), finished
        return status, finished

    return run


def test_no_job_begins_after_a_signal(batch, capfd):
    finished = ["0-signalled_at_the_end"]
    assert batch(signalled_at_the_end, nothing) == (EXIT_UNFINISHED, finished)
    line = "1-nothing: stopped before it began; run the same command to resume"
    assert line in capfd.readouterr().err
    assert batch(signalled_at_the_end) == (0, finished)


def test_no_job_begins_after_the_time_limit(batch, monkeypatch):
    monkeypatch.setenv(END_VARIABLE, "1.5")
    assert batch(asking, deaf, nothing) == (EXIT_UNFINISHED, ["0-asking", "1-deaf"])


# One GPU per job, by locks that die with their process; without any real GPU.


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


@pytest.mark.parametrize(("uses_gpu", "slurm"), [(False, ""), (True, "7")])
def test_nothing_is_locked_without_need_or_under_slurm(
    gpus, tmp_path, monkeypatch, uses_gpu, slurm
):
    monkeypatch.setenv("SLURM_JOB_ID", slurm)  # with cgroups every job of a node calls its GPU 0
    with assigned(uses_gpu, print):
        assert os.environ[VISIBLE] == "2,3"
    assert list(tmp_path.iterdir()) == []
