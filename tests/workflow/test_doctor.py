"""The doctor's checks of this machine."""

import pytest
import torch
from click.testing import CliRunner
from tests.shared import PAPERS

from fedsampling.base.records import check
from fedsampling.cli import main
from fedsampling.evidence import provenance
from fedsampling.experiments.config import parse
from fedsampling.experiments.simulations.simulation import Simulation, Where
from fedsampling.experiments.specs import RunSpec
from fedsampling.learning.models import products
from fedsampling.learning.models.settings import Model
from fedsampling.runs import store
from fedsampling.runs.execute import execute
from fedsampling.workflow import doctor
from fedsampling.workflow import recheck as rechecking
from fedsampling.workflow.doctor import check_network
from fedsampling.workflow.project import Project
from fedsampling.workflow.recheck import recheck

PAPER = "rizk2022importance"


@pytest.mark.parametrize("name", sorted(doctor.networks()))
def test_every_network_is_checked_with_inputs_that_it_accepts(name):
    learner = doctor.learner(Model.members()[name](), "cpu")
    x, y = learner.samples.gather(torch.arange(2)[None])
    theta = torch.zeros(1, learner.network.dimension)
    outputs = learner.network.outputs(theta, x)
    assert outputs.shape == (*y.shape, learner.data.classes or 1)


@pytest.mark.parametrize("name", ["mlp", "linear", "lstm", "cifar_cnn"])
def test_networks_pass_the_check_on_this_processor(name):
    check = check_network(name, "cpu")
    assert not check.fix
    assert str(check).startswith(f"ok   {name}: ")
    assert check.text.endswith(" 0.0e+00 from a single slot")


def test_wrong_products_fail_the_check(monkeypatch):
    right = products._slot_by_slot

    def wrong(x, weight):
        return right(x, weight) * (1.1 if x.dtype == torch.float32 else 1)

    monkeypatch.setattr(products, "_slot_by_slot", wrong)
    check = check_network("mlp", "cpu")
    assert check.fix == doctor.PLAIN_KERNELS
    assert str(check).startswith("FAIL mlp: ")


def test_a_slot_that_depends_on_its_neighbours_fails_the_check(monkeypatch):
    right = doctor.NetworkLearner.work

    def work(learner, theta, slots, *arguments):
        return right(learner, theta, slots, *arguments) * (1 + 1e-6 * len(slots))

    monkeypatch.setattr(doctor.NetworkLearner, "work", work)
    assert check_network("mlp", "cpu").fix == doctor.PLAIN_KERNELS


def test_an_error_of_the_gpu_is_a_failed_check(monkeypatch):
    def missing_kernel(learner):
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with …")

    monkeypatch.setattr(doctor, "learner", lambda model, device: None)
    monkeypatch.setattr(doctor, "_distances", missing_kernel)
    finding = check_network("mlp", "cuda")
    assert finding == doctor.Finding("mlp: CUDA error: no kernel image is available", doctor.ON_CPU)
    with pytest.raises(RuntimeError):
        check_network("mlp", "cpu")


@pytest.mark.parametrize("fix", ["", "do something"])
def test_the_command_fails_if_a_check_fails(monkeypatch, tmp_path, fix):
    monkeypatch.setattr(doctor, "check_network", lambda name, device: doctor.Finding(name, fix))
    (tmp_path / "config.yaml").write_text("device: cpu\n")
    result = CliRunner().invoke(main, ["doctor", "--config", str(tmp_path / "config.yaml")])
    assert result.exit_code == bool(fix)
    assert ("FAIL mlp: do something" in result.output) == bool(fix)


# Recomputed runs are equal, agree, or differ.


@pytest.fixture
def project(tmp_path):
    """Return a project with one experiment of nine finished runs."""
    settings = {"scale": "paper", "shipped": False, "papers": [PAPER]}
    overrides = {PAPER: {"inclusion": {"draws": 50}}}
    project = Project(parse({**settings, "overrides": overrides}), tmp_path / "results", PAPERS)
    for name in project.plan.jobs_of(PAPER, "inclusion"):
        execute([project.plan.jobs[name]], project.config, project.results, lambda *_: None)
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
    assert provenance.read_recheck(project.folder / provenance.RECHECK) == checked
    agree = 0 if outcome == "differs" else 9
    sentence = provenance.recheck_sentence(checked)
    assert sentence.startswith(f"Recomputed on this machine: {agree} of 9 agree")


def test_a_share_is_drawn_by_a_seed(project):
    drawn = [[run.hash for run in recheck(project, share=0.4, seed=seed)] for seed in (1, 1, 2)]
    assert [len(hashes) for hashes in drawn] == [4, 4, 4]
    assert drawn[0] == drawn[1] != drawn[2]


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
    where = Where(tmp_path, None)
    (table,) = simulation.simulate("generated", [0], where).tables
    run = RunSpec({}, "generated", 0)
    assert rechecking.is_sensitive(simulation, run, table, where) == sensitive
