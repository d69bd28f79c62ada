"""A folder of results has one plan at a time."""

import fcntl
import os
import threading

import pytest
from snakemake.settings.types import ConfigSettings

from fedsampling.base.errors import InputError
from fedsampling.workflow import locks
from fedsampling.workflow import project as projects
from fedsampling.workflow.project import Project
from fedsampling.workflow.snakefile import open_project


@pytest.fixture
def other_process(tmp_path):
    """Lock the folder of results, as another process would; closing the file unlocks it."""
    path = tmp_path / "results" / projects.CALL_LOCK
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        lock.write("process 7 on node")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


@pytest.fixture
def released(monkeypatch):
    """At the end, this process holds no folder."""
    monkeypatch.setattr(locks, "_held", held := {})
    yield
    for handle in held.values():
        os.close(handle)


def test_a_second_call_is_refused_unless_it_is_named(opened, released, other_process):
    in_use = r"results: another call is running in this folder \(process 7 on node\); wait"
    for call in (lambda: opened().write(), lambda: opened().check_free()):
        with pytest.raises(InputError, match=in_use):
            call()
    opened(run="other").write()
    other_process.close()
    opened().write()
    assert opened().is_written()


def test_a_call_is_refused_while_results_are_written_by_hand(opened, released):
    handles = []
    for _ in range(2):  # several commands by hand may run at the same time
        opened(device="cpu").check_free()
        handles.append(locks._held.popitem()[1])  # as in another process
    with pytest.raises(InputError, match=rf"in this folder \(process {os.getpid()} on"):
        opened().write()
    for handle in handles:
        os.close(handle)
    opened().write()


def test_a_call_waits_for_another_calls_check_of_the_jobs(opened, released):
    path = opened().folder / projects.JOBS_LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        timer = threading.Timer(0.2, fcntl.flock, (lock, fcntl.LOCK_UN))
        timer.start()
        opened().check_free()
        timer.join()


def test_jobs_that_outlive_a_killed_call_refuse_calls_with_other_settings(
    opened, released, monkeypatch
):
    opened().write()
    with monkeypatch.context() as job:
        job.setenv(projects.CALL, opened().call)
        Project.open(opened().config_file, opened().results)
    killed_call, its_job = locks._held.values()
    locks._held.clear()  # as in another process
    os.close(killed_call)
    for call in (lambda: opened(device="cpu").write(), lambda: opened(device="cpu").check_free()):
        with pytest.raises(InputError, match=r"another call is running in this folder \(process"):
            call()
        os.close(locks._held.popitem()[1])
    opened().write()
    os.close(its_job)


def test_a_job_reads_its_calls_configuration_and_no_other(opened, released, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    project = opened()
    project.write()
    arguments = {"_call": [str(project.config_file), project.call], "scale": "paper"}
    assert open_project(arguments, ConfigSettings()).config == project.config
    monkeypatch.setenv(projects.CALL, opened(device="cuda").call)
    with pytest.raises(InputError, match=r"config\.json: replaced by another call; run the same"):
        Project.open(project.config_file)
