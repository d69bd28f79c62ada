"""Fixtures that several tests of the workflow share."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.shared import PAPERS

from fedsampling.base.stopping import END_VARIABLE
from fedsampling.evidence.claims import Confirmation
from fedsampling.experiments.config import Config, parse
from fedsampling.runs import places
from fedsampling.workflow import run as running
from fedsampling.workflow.project import Project

RIZK = "rizk2022importance"


@pytest.fixture
def opened(tmp_path, monkeypatch, forget_own_files):
    """Return projects of one folder, with a copy of a paper; none of its runs is published."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path / "published")
    shutil.copytree(PAPERS / RIZK, tmp_path / "papers" / RIZK)

    def open_(**settings):
        config = parse({"papers": [RIZK], "scale": "quick", "data": "embedded", **settings})
        return Project(config, tmp_path / "results", tmp_path / "papers", writes=True)

    return open_


@pytest.fixture
def seen():
    """Return a claim's confirmation after three fresh seeds, at the first of two looks."""
    return Confirmation(
        verdict="inconclusive",
        ours="1.2 [0.9, 1.6]",
        reason="",
        parts={"order": "holds", "size": "open"},
        drawn=(),
        readings=(),
        grade="preliminary",
        draws="training",
        seeds=3,
        look=1,
        looks=(3, 5),
        hours=1.0,
        registered="",
        commit="",
        first_run="",
    )


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

    def run(*works, **settings):
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
        project = Project(Config(**settings), tmp_path)
        try:
            status = running.execute_all(jobs, project, lambda path: finished.append(path.name))
        except SystemExit as ended:
            return int(str(ended.code)), finished
        return status, finished

    return run
