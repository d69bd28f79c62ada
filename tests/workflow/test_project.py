"""The cached plan: read while its inputs are unchanged, otherwise resolved again."""

import fcntl
import os
import shutil
import threading
from dataclasses import replace
from fnmatch import fnmatch

import pytest
from snakemake.settings.types import ConfigSettings
from tests.shared import PAPERS

from fedsampling.base import inputs
from fedsampling.base.errors import InputError
from fedsampling.base.files import write_record
from fedsampling.experiments.config import parse
from fedsampling.runs import places
from fedsampling.runs.places import INDEX
from fedsampling.workflow import plan as workflow
from fedsampling.workflow import project as projects
from fedsampling.workflow.project import PLAN, Project
from fedsampling.workflow.snakefile import open_project

RIZK, FRABONI = "rizk2022importance", "fraboni2022general"
JOB = f"{RIZK}/regression/base/fedavg/block-0"
QUICK = {"scale": "quick", "data": "embedded"}


@pytest.fixture
def opened(tmp_path, monkeypatch, forget_own_files):
    """Return projects of one folder, with a copy of a paper; none of its runs is published."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path / "published")
    shutil.copytree(PAPERS / RIZK, tmp_path / "papers" / RIZK)

    def open_(**settings):
        config = parse({"papers": [RIZK], **QUICK, **settings})
        return Project(config, tmp_path / "results", tmp_path / "papers", writes=True)

    return open_


@pytest.fixture
def resolutions(monkeypatch):
    """Note each time that a plan is resolved."""
    noted = []
    resolve = projects.resolve

    def noting(config, papers, results):
        noted.append(config.scale)
        return resolve(config, papers, results)

    monkeypatch.setattr(projects, "resolve", noting)
    return noted


def test_a_cached_plan_equals_the_resolved_plan(opened, resolutions):
    overrides = {RIZK: {"few": None, "regression": {"seeds": 3, "seed_block": 2}}}
    paper = {"scale": "paper", "data": "official", "overrides": overrides}
    for settings in ({}, {"data": "official"}, paper):
        first, second = opened(**settings), opened(**settings)
        before = first.plan, first.digests
        resolutions.clear()
        assert (second.plan, second.digests) == before
        assert resolutions == []


def test_a_corrupt_plan_is_resolved_again(opened, resolutions, tmp_path):
    expected = opened().plan
    path = tmp_path / "results" / PLAN
    content = path.read_bytes()
    another_seed = content.replace(b"true,[[0,", b"true,[[99,", 1)
    assert another_seed != content
    for number, damaged in enumerate((b"{}", b"\xff\xfe", content[:-1], another_seed), 2):
        path.write_bytes(damaged)
        assert opened().plan == expected
        assert len(resolutions) == number


def test_a_changed_input_resolves_the_plan_again(opened, resolutions, tmp_path, monkeypatch):
    code, paper, published = (
        tmp_path / name for name in ("package", f"papers/{RIZK}", f"published/{RIZK}")
    )
    code.mkdir()
    published.mkdir(parents=True)
    monkeypatch.setattr(inputs, "PACKAGE", code)
    for change in (
        lambda: None,
        lambda: (paper / "paper.yaml").open("a").write("\n"),
        lambda: (paper / "claims.py").open("a").write("\nX = 1\n"),
        lambda: (paper / "below").mkdir() or (paper / "below" / "values.dat").write_text("1"),
        lambda: (code / "module.py").write_text("X = 1"),
        lambda: write_record(published.parent / INDEX, {}),
        lambda: (published / "regression.parquet").write_bytes(b"runs"),
    ):
        change()
        resolutions.clear()
        for _ in range(2):
            _ = opened().plan
            assert len(resolutions) == 1
    _ = opened(device="cpu").plan
    assert len(resolutions) == 2


def test_scale_best_depends_on_which_runs_are_in_the_store(opened, resolutions, tmp_path):
    best = {"scale": "best", "data": "official"}
    store = tmp_path / "results" / "store"
    for _ in range(2):
        assert opened(**best).plan.jobs == {}
    assert resolutions == ["best"]
    (store / "ab").mkdir(parents=True)
    (store / "ab" / "abc.lock").touch()
    _ = opened(**best).plan
    assert resolutions == ["best"]
    (store / "ab" / "abc.parquet").touch()
    _ = opened(**best).plan
    assert resolutions == ["best", "best"]


def test_a_users_sampler_is_part_of_the_key(opened, resolutions, tmp_path, forget_own_files):
    file = tmp_path / "mine.py"
    text = (
        "from fedsampling import Scheme\n\n\n"
        'class Mine(Scheme, name="mine_of_a_project"):\n    """Everybody."""\n'
    )
    for number in (1, 2):
        file.write_text(f"{text}    number: int = {number}\n")
        forget_own_files()
        assert opened(schemes=[str(file)]).plan.users_samplers == {"mine_of_a_project": str(file)}
    assert len(resolutions) == 2


# A folder of results has one plan at a time.


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
    monkeypatch.setattr(projects, "_held", held := {})
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
        handles.append(projects._held.popitem()[1])  # as in another process
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
    killed_call, its_job = projects._held.values()
    projects._held.clear()  # as in another process
    os.close(killed_call)
    for call in (lambda: opened(device="cpu").write(), lambda: opened(device="cpu").check_free()):
        with pytest.raises(InputError, match=r"another call is running in this folder \(process"):
            call()
        os.close(projects._held.popitem()[1])
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


# Digests change with everything that a result depends on, and with nothing else.


def plan(folder=PAPERS, **settings):
    return workflow.plan({"papers": [RIZK], **QUICK, **settings}, folder)


def digests(plan):
    """Every digest that a rule has among its parameters, by what it is of."""
    return {f"job {name}": plan.made_from(name) for name in plan.jobs} | projects.digests(plan)


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
    jobs = {f"job {name}" for name in before.jobs_of(RIZK, "classification")}
    changed = moved(before, plan(overrides={RIZK: {"classification": {"rounds": 310}}}))
    # All artefacts say whether a setting is changed, so all are drawn again.
    assert changed == jobs | after("classification", *drawn())


def test_the_source_of_the_data_changes_its_jobs_and_all_badges():
    planned = plan()
    jobs = {f"job {name}" for name in planned.jobs_of(RIZK, "classification")}
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
def test_all_drawings_and_verdicts_depend_on_the_whole_paper_and_no_run_does(
    moved_by, file, old, new
):
    patterns = [f"artefacts/{RIZK}/*", f"claims/{RIZK}", f"papers/{RIZK}", "report"]
    dependent = {name for name in digests(plan()) if any(fnmatch(name, p) for p in patterns)}
    assert moved_by(old, new, file) == dependent


def test_the_code_of_a_papers_run_kind_changes_the_digests_of_its_jobs(moved_by):
    planned = plan()
    kinds = ("gradient", "inclusion")  # both are in the paper's simulations.py
    due = {f"job {name}" for kind in kinds for name in planned.jobs_of(RIZK, kind)}
    result = moved_by("STEP = 1e-6", "STEP = 1e-5", "simulations.py")
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
