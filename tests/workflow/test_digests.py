"""Digests change with everything that a result depends on, and with nothing else."""

import shutil
from dataclasses import replace
from fnmatch import fnmatch

import pytest
from tests.shared import PAPERS
from tests.workflow.test_project import FRABONI, JOB, QUICK, RIZK

from fedsampling.base.files import write_record
from fedsampling.runs.places import INDEX
from fedsampling.workflow import plan as workflow
from fedsampling.workflow.digests import digests as digests_of


def plan(folder=PAPERS, **settings):
    return workflow.plan({"papers": [RIZK], **QUICK, **settings}, folder)


def digests(plan):
    """Every digest that a rule has among its parameters, by what it is of."""
    return {f"job {name}": plan.made_from(name) for name in plan.jobs} | digests_of(plan)


def moved(before, after):
    return differing(digests(before), digests(after))


def differing(before, after):
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@pytest.fixture
def moved_by(tmp_path, forget_own_files):
    """Name the digests that move where a copy of the papers' files has one of them edited."""

    def edit(old, new, name="paper.yaml"):
        before = digests(plan())
        shutil.copytree(PAPERS, tmp_path / "papers")
        path = tmp_path / "papers" / RIZK / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        forget_own_files()
        return differing(before, digests(plan(tmp_path / "papers")))

    return edit


def test_digests_of_a_paper_do_not_depend_on_other_papers():
    two_papers = digests(plan(papers=[FRABONI, RIZK]))
    one_paper = digests(plan())
    moved = {name for name in differing(one_paper, two_papers) if name in one_paper}
    assert moved == {"report", "recheck"}


def after(experiment, *artefacts):
    """The digests of an experiment's summary and of what is made from it."""
    return {
        *(f"{step}/{RIZK}/{experiment}" for step in ("summaries", "explorer")),
        *(f"artefacts/{RIZK}/{name}" for name in artefacts),
        *(f"claims/{RIZK}", f"papers/{RIZK}", "report", "recheck"),
    }


def drawn():
    """The names of all artefacts of the paper."""
    return [name.rpartition("/")[2] for name in digests(plan()) if name.startswith("artefacts/")]


def test_an_override_changes_the_digests_of_its_experiment_and_later_steps():
    before = plan()
    jobs = {f"job {job.name}" for job in before.jobs_of(f"{RIZK}/classification")}
    changed = moved(before, plan(overrides={RIZK: {"classification": {"rounds": 310}}}))
    # All artefacts say whether a setting is changed, so all are drawn again.
    assert changed == jobs | after("classification", *drawn())


def test_the_source_of_the_data_changes_its_jobs_and_all_badges():
    planned = plan()
    jobs = {f"job {job.name}" for job in planned.jobs_of(f"{RIZK}/classification")}
    made = {name for name in digests(planned) if name.startswith(("summaries", "artefacts"))}
    result = moved(planned, plan(data="official"))
    assert {name for name in result if name.startswith("job ")} == jobs
    assert made <= result


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("paper.yaml", "title: References by", "title: By"),
        ("paper.yaml", "statement: With the", "statement: With"),
        ("paper.yaml", "venue: IEEE", "venue: I"),
        ("reported.csv", ",23.1,dB", ",23.2,dB"),
        ("figures.py", "import pandas as pd", "import json\nimport pandas as pd"),
    ],
)
def test_drawings_and_verdicts_depend_on_the_whole_paper_and_runs_do_not(moved_by, file, old, new):
    patterns = [f"artefacts/{RIZK}/*", f"claims/{RIZK}", f"papers/{RIZK}", "report"]
    dependent = {name for name in digests(plan()) if any(fnmatch(name, p) for p in patterns)}
    assert moved_by(old, new, file) == dependent


def test_the_code_of_a_papers_run_kind_changes_the_digests_of_its_jobs(moved_by):
    due = {f"job {job.name}" for job in plan().jobs_of(f"{RIZK}/gradient")}
    result = moved_by("STEP = 1e-6", "STEP = 1e-5", "simulations_gradient.py")
    assert {name for name in result if name.startswith("job ")} == due
    assert f"artefacts/{RIZK}/gradient" in result


def test_changed_code_changes_the_digests_of_dependent_steps():
    """A job that is interrupted leaves no output: what follows must be due on its own account."""
    planned = plan()
    changed = replace(planned.jobs[JOB], code="f" * 16)
    result = moved(planned, replace(planned, jobs={**planned.jobs, JOB: changed}))
    artefacts = ("fall", "figure1", "probabilities", "alternatives")
    assert result == {f"job {JOB}"} | after("regression", *artefacts)


def test_a_replaced_published_run_changes_the_digests_of_its_results(tmp_path):
    planned = plan(reuse=[str(tmp_path)])
    file = tmp_path / RIZK / "regression.parquet"
    file.parent.mkdir()
    file.write_bytes(b"before")
    write_record(tmp_path / INDEX, {f"{RIZK}/regression": [planned.jobs[JOB].runs[0].hash]})
    before = digests(planned)
    file.write_bytes(b"after")
    changed = differing(before, digests(planned))
    assert {f"summaries/{RIZK}/regression", f"claims/{RIZK}", "report"} <= changed
    assert f"summaries/{RIZK}/classification" not in changed
    assert f"job {JOB}" not in changed
