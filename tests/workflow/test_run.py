"""Jobs of a batch run one after another until they are stopped."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedsampling.base.stopping import END_VARIABLE, EXIT_UNFINISHED
from fedsampling.experiments.config import Config
from fedsampling.workflow import run as running
from fedsampling.workflow.project import Project


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
