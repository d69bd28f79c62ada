"""Costs of a plan: its table, and the file for the requests of cluster jobs."""

from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import parse
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.measurements import load_measurements, measurement_key
from fedsampling.workflow import estimate as estimating
from fedsampling.workflow.project import Project

PAPER = "fraboni2021clustered"


def test_time_and_memory_of_a_network_are_saved_with_the_device(tmp_path):
    change = dict.fromkeys(load_paper(PAPER, PAPERS).experiments)
    change["mnist"] = {"samplers": dict.fromkeys(("algorithm1", "algorithm2", "target", "fedavg"))}
    settings = {"papers": [PAPER], "overrides": {PAPER: change}, "device": "cpu"}
    settings |= {"scale": "quick", "data": "embedded"}
    project = Project(parse(settings), tmp_path / "results", PAPERS)
    estimate = estimating.estimate(project)
    job = project.plan.jobs[f"{PAPER}/mnist/base/md/block-0"]
    saved = load_measurements(tmp_path / "results")[measurement_key(job)]
    (line,) = estimate.experiments
    assert saved.device == "cpu"
    models = 4 * 39_760 * (2 + 3 * 10) / 2**20
    assert models < saved.seed_mb < 3 * models
    assert 0 < saved.step < line.hours * 3600
    assert 0 < saved.gpu_step < line.gpu_hours * 3600
    assert "On an H100, runs of networks would take" in estimating.cost_table(estimate)


def test_an_experiment_without_an_estimate_is_reported_with_the_reason(tmp_path, monkeypatch):
    def measure(*_):
        raise InputError("data: too few")

    monkeypatch.setattr(estimating, "measure", measure)
    settings = {"scale": "quick", "data": "embedded", "experiments": [f"{PAPER}/mnist"]}
    estimate = estimating.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    note = f"not estimated  {PAPER}/mnist: data: too few"
    assert estimate.notes == [note]
    assert note in estimating.cost_table(estimate).splitlines()
