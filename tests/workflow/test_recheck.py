"""Recomputed runs are equal, agree, or differ."""

import pytest
from tests.shared import PAPERS

from fedsampling.base.records import check
from fedsampling.evidence import recomputed
from fedsampling.experiments.config import parse
from fedsampling.experiments.simulations.simulation import RunContext, Simulation
from fedsampling.experiments.specs import RunSpec
from fedsampling.runs import store
from fedsampling.runs.execute import execute
from fedsampling.workflow import recheck as rechecking
from fedsampling.workflow.project import Project
from fedsampling.workflow.recheck import recheck

PAPER = "rizk2022importance"


@pytest.fixture
def project(tmp_path):
    """Return a project with one experiment of nine finished runs."""
    settings = {"scale": "paper", "shipped": False, "papers": [PAPER]}
    overrides = {PAPER: {"inclusion": {"draws": 50}}}
    project = Project(parse({**settings, "overrides": overrides}), tmp_path / "results", PAPERS)
    for job in project.plan.jobs_of(f"{PAPER}/inclusion"):
        execute([job], project.config, project.results, lambda *_: None)
    return project.with_config(scale="best")


def changed(results, by):
    """Add something to the values of every finished run, and keep it as if it were found."""
    for path in (results / "store").rglob("*.parquet"):
        run = store.load(path)
        table = run.table.assign(value=run.table["value"] * (1 + by))
        store.save(results / "store", table, run.metadata)


@pytest.mark.parametrize(
    ("by", "outcome"), [(0, "equal"), (1e-9, "within tolerance"), (1e-3, "differs")]
)
def test_runs_are_compared_with_the_stored_results(project, by, outcome):
    if by:
        changed(project.results, by)
    checked = recheck(project)
    assert len(checked) == 9
    assert {run.outcome for run in checked} == {outcome}
    assert recomputed.read_recheck(project.folder / recomputed.RECHECK) == checked
    agree = 0 if outcome == "differs" else 9
    sentence = recomputed.recheck_sentence(checked)
    assert sentence.startswith(f"Recomputed on this machine: {agree} of 9 agree")


def test_a_share_is_drawn_by_a_seed(project):
    drawn = [[run.hash for run in recheck(project, share=0.4, seed=seed)] for seed in (1, 1, 2)]
    assert [len(hashes) for hashes in drawn] == [4, 4, 4]
    assert drawn[0] == drawn[1] != drawn[2]


def test_runs_that_measure_times_on_the_machine_are_never_chosen(project, monkeypatch):
    kind = type(next(iter(project.plan.jobs.values())).simulation)
    monkeypatch.setattr(kind, "timed", True)
    assert recheck(project) == recheck(project, share=1.0) == []


def test_a_spot_check_keeps_to_its_processor_time(project, monkeypatch):
    clock = iter(range(0, 1000, 4))
    monkeypatch.setattr(rechecking.time, "process_time", lambda: next(clock))
    assert len(recheck(project)) == 4  # which ends 16 seconds after the start: another may take 5


# With large steps on heterogeneous data, training amplifies rounding errors; with small ones it
# does not, so a difference needs another explanation.
@pytest.mark.parametrize(
    ("sampler", "step", "sensitive"),
    [("uniform", 2.0, True), ("uniform", 1e-4, False), ("power_of_choice", 1e-4, True)],
)
def test_rounding_explains_differences_of_runs_that_amplify_it(tmp_path, sampler, step, sensitive):
    settings = {
        "kind": "network",
        "dataset": {"name": "synthetic", "alpha": 1, "beta": 1, "clients": 10},
        "inputs": "raw",
        "model": {"name": "softmax"},
        "work": {"steps": 5, "batch": 10, "step": step},
        "sampler": {"name": sampler, "m": 3} | ({"d": 5} if sampler == "power_of_choice" else {}),
        "rounds": 60,
        "evaluation": {"every": 10, "training_loss": False},
    }
    simulation = check(Simulation, settings, "")
    where = RunContext(tmp_path, None)
    (table,) = simulation.simulate("generated", [0], where).tables
    run = RunSpec({}, "generated", 0)
    assert rechecking.is_sensitive(simulation, run, table, where) == sensitive
