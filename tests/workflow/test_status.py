"""`fedsampling status`: progress and failures, from files only."""

import re
import shutil
from types import SimpleNamespace

import pytest
from tests.shared import PAPERS

from fedsampling.experiments.config import parse
from fedsampling.runs import places
from fedsampling.runs.execute import execute
from fedsampling.runs.places import path_of
from fedsampling.runs.store import lease_of
from fedsampling.workflow.project import Project
from fedsampling.workflow.status import _other_versions, remove_other_versions, status

PAPER = "rizk2022importance"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project of which the first of an experiment's jobs has run."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path / "none")
    overrides = {PAPER: {"inclusion": {"draws": 50}}}
    settings = {"scale": "paper", "papers": [PAPER], "overrides": overrides}
    project = Project(parse(settings), tmp_path / "results", PAPERS)
    project.write()
    first = project.plan.jobs_of(f"{PAPER}/inclusion")[0]
    execute([first], project.config, project.results, lambda *_: None)
    return project


def test_runs_are_done_running_or_left_with_the_time_left(project):
    plan = project.plan
    first, second, *_ = plan.jobs_of(f"{PAPER}/inclusion")
    lease_of(project.results / "store", second.runs[0].hash, second.code).touch()
    lines = list(status(project))
    inclusion, regression = (
        next(line for line in lines if line.startswith(f"  {PAPER}/{name}: "))
        for name in ("inclusion", "regression")
    )
    runs = sum(len(job.runs) for job in plan.jobs_of(f"{PAPER}/inclusion"))
    n = len(first.runs)
    assert f": {n} of {runs} done, 1 running, {runs - n - 1} left; about " in inclusion
    assert inclusion.endswith(" core-hours left")
    assert regression.endswith("left; time left unknown")
    assert re.search(r", plus \d+ experiments without a timed run$", lines[0])
    assert "Report: not written yet" in lines


def test_runs_of_other_versions_are_counted_and_removed_on_request(project):
    job = project.plan.jobs_of(f"{PAPER}/inclusion")[0]
    folder = project.results / "store"
    current = [path_of(folder, run.hash, job.code) for run in job.runs]
    for path in current:
        shutil.copy(path, path_of(folder, path.stem.partition("-")[0], "0" * 16))
    (line,) = [line for line in status(project) if "other versions" in line]
    assert line == (
        f"Runs of other versions of the code in {folder}: {len(current)}; "
        "'fedsampling status --remove-other-versions' removes them"
    )
    assert remove_other_versions(project).endswith(f"{len(current)} runs of other versions removed")
    assert sorted(folder.rglob("*.parquet")) == sorted(current)
    assert not [line for line in status(project) if "other versions" in line]


def test_only_where_nothing_is_computed_the_only_version_of_a_run_stays(project):
    job = project.plan.jobs_of(f"{PAPER}/inclusion")[0]
    folder, run_hash = project.results / "store", job.runs[0].hash
    only = path_of(folder, run_hash, job.code).rename(path_of(folder, run_hash, "0" * 16))
    at_best = SimpleNamespace(config=SimpleNamespace(computes=False), plan=project.plan)
    assert _other_versions(at_best, folder) == set()
    assert _other_versions(project, folder) == {only}


def test_failures_are_listed_with_the_last_error_of_their_log(project, tmp_path):
    plan = project.plan
    first, second, *_ = (job.name for job in plan.jobs_of(f"{PAPER}/inclusion"))
    for name, text in {
        f"simulate/{first}": "fedsampling: warning: rounding differs",
        f"simulate/{second}": "begun\nfedsampling: data: not available",
        f"draw/{PAPER}": "Traceback (most recent call last):\n  File\nKeyError: 'x'",
        "report": "fedsampling: warning: other/figure1: not drawn",
        f"simulate/{PAPER}/inclusion/gone/md/0": "fedsampling: a job of earlier settings",
        f"my-try/draw/{PAPER}": "fedsampling: a step of another run",
        "card/mnist": "OK",
    }.items():
        path = tmp_path / "logs" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    failed = [line for line in status(project, tmp_path / "logs") if line.startswith("Failed")]
    assert failed == [
        f"Failed: {tmp_path}/logs/draw/{PAPER}.log: KeyError: 'x'",
        f"Failed: {tmp_path}/logs/simulate/{second}.log: data: not available",
    ]
