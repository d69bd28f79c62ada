"""Batches: the jobs of a process, its requests, and when it stops."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedsampling.base.files import write_record
from fedsampling.base.stopping import END_VARIABLE, EXIT_UNFINISHED, Stopped
from fedsampling.experiments.config import Config
from fedsampling.runs import places
from fedsampling.runs.resources import (
    Measured,
    RuleResources,
    measurement_key,
    save_measurements,
)
from fedsampling.workflow import running
from fedsampling.workflow.plan import QUICK_JOBS_PER_PROCESS, plan
from fedsampling.workflow.project import Project

PAPERS = Path(__file__).parents[2] / "papers"
PAPER = "rizk2022importance"


@pytest.fixture(autouse=True)
def nothing_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)
    monkeypatch.setattr("fedsampling.workflow.plan.PUBLISHED", tmp_path)


def quick_plan(paper=PAPER, **settings):
    return plan({"papers": [paper], "scale": "quick", "data": "embedded", **settings}, PAPERS)


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
    experiments = {
        planned.jobs[job].experiment for part in planned.batches.values() for job in part
    }
    assert "regression" not in experiments
    assert "sensitivity" in experiments


def test_at_other_scales_only_jobs_of_experiments_that_say_so_share_a_process():
    few = {"regression": {"jobs_per_process": 4, "seeds": 5, "seed_block": 1}}
    planned = quick_plan(data="official", scale="paper", overrides={PAPER: few})
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


def test_a_batch_requests_the_largest_needs_of_its_jobs():
    planned = quick_plan("harshvardhan2025latency", cluster={"gpu": "gpu"})
    resources = RuleResources(
        planned.jobs, planned.batches, planned.config.cluster, Path("nowhere")
    )
    for name, names in planned.batches.items():
        request = {resource: of(None, 1) for resource, of in resources.of(name).items()}
        network = any(planned.jobs[job].runs[0].settings["kind"] == "network" for job in names)
        assert request["gpu"] == (1 if network else None)
        assert request["runtime"] >= (241 if network else 6)


def test_the_estimates_of_a_batch_add_up(tmp_path):
    few = {"regression": {"jobs_per_process": 4, "seeds": 5, "seed_block": 1}}
    planned = quick_plan(data="official", scale="paper", overrides={PAPER: few})
    name, names = next(iter(planned.batches.items()))
    jobs = [planned.jobs[job] for job in names]
    save_measurements({measurement_key(job): Measured(600 / job.steps) for job in jobs}, tmp_path)
    resources = RuleResources(planned.jobs, planned.batches, planned.config.cluster, tmp_path)
    minutes = 1 + 10 * planned.config.cluster.margin * len(jobs)
    assert resources.of(name)["runtime"](None, 1) == minutes


def listening(stop):
    """Work as a simulation does that keeps checkpoints."""
    for _ in range(200):
        if stop():
            raise Stopped("stopped before round 7")
        time.sleep(0.01)


def deaf(stop):
    time.sleep(2)


def asleep(stop):
    time.sleep(30)


def signalled(work):
    """Work that receives a signal at its beginning."""

    def run(stop):
        if work is listening:
            assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        work(stop)

    return run


def asks_no_more(stop):
    """Listen, and be signalled after the last round."""
    assert not stop()
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def batch(tmp_path, monkeypatch):
    """Run a batch of jobs that do as functions do; return its exit status and who has finished."""

    def execute(job, config, results, progress, stop):
        job.work(stop)
        return Path(job.name)

    monkeypatch.setattr(running, "stacks", lambda jobs: [[job] for job in jobs])
    monkeypatch.setattr(running, "execute", lambda jobs, *rest: [execute(jobs[0], *rest)])
    for name in ("SLURM_JOB_ID", END_VARIABLE):
        monkeypatch.delenv(name, raising=False)

    def run(*works):
        jobs = [
            SimpleNamespace(name=f"{number}-{work.__name__}", uses_gpu=False, work=work)
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


def nothing(stop):
    """Finish at once, without asking."""


def asking(stop):
    """Finish at once, having asked."""
    assert not stop()


def test_a_signal_ends_a_job_at_once_or_with_checkpoints_after_a_round(batch):
    clock = time.monotonic()
    assert batch(asking, signalled(asleep), nothing) == (128 + signal.SIGTERM, ["0-asking"])
    assert time.monotonic() - clock < 20
    assert batch(nothing, signalled(listening), nothing) == (EXIT_UNFINISHED, ["0-nothing"])


def test_no_job_begins_after_a_signal(batch, capfd):
    assert batch(asks_no_more, nothing) == (EXIT_UNFINISHED, ["0-asks_no_more"])
    line = "1-nothing: stopped before it began; run the same command to resume"
    assert line in capfd.readouterr().err
    assert batch(nothing, asks_no_more) == (0, ["0-nothing", "1-asks_no_more"])


@pytest.mark.parametrize("works", [(asking, deaf, nothing), (nothing, deaf, listening)])
def test_no_job_begins_after_the_time_limit(batch, monkeypatch, works):
    monkeypatch.setenv(END_VARIABLE, "1.5")
    assert batch(*works) == (EXIT_UNFINISHED, [f"0-{works[0].__name__}", "1-deaf"])
