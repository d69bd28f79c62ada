"""Costs of a plan: measurements, and their file for the requests of cluster jobs."""

import re
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import parse
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.cluster.resources import Measured, load_measurements, save_measurements
from fedsampling.workflow import costs
from fedsampling.workflow.project import Project

PAPER, PAPERS = "fraboni2021clustered", Path(__file__).parents[2] / "papers"


def test_time_and_memory_of_a_network_are_saved_with_the_device(tmp_path):
    change = dict.fromkeys(load_paper(PAPER, PAPERS).experiments)
    change["mnist"] = {"samplers": dict.fromkeys(("algorithm1", "algorithm2", "target", "fedavg"))}
    settings = {"papers": [PAPER], "overrides": {PAPER: change}, "device": "cpu"}
    settings |= {"scale": "quick", "data": "embedded"}
    estimate = costs.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    save_measurements(estimate.measurements, tmp_path / "results")
    saved = load_measurements(tmp_path / "results")[f"{PAPER}/mnist/base/md"]
    (line,) = estimate.experiments
    assert saved.device == "cpu"
    models = 4 * 39_760 * (2 + 5 * 10) / 2**20
    assert models < saved.seed_mb < 2 * models
    assert 0 < saved.step < line.hours * 3600


def test_experiments_that_cannot_be_measured_are_reported_and_the_others_shown(
    tmp_path, monkeypatch
):
    """Here a stand-in is too small for the settings, as no data are at hand."""
    monkeypatch.delenv("FEDSAMPLING_MIRROR", raising=False)
    change = dict.fromkeys(load_paper("crossmatrix", PAPERS).experiments)
    for name in ("shakespeare", "digit"):
        change[name] = {"samplers": {"*": None, "md": {"name": "md", "m": 3}}}
    settings = {"papers": ["crossmatrix"], "scale": "reduced", "data": "official"}
    settings |= {"overrides": {"crossmatrix": change}}
    estimate = costs.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    lines = costs.cost_table(estimate).splitlines()
    steps = {line.split()[0]: line.split()[4] for line in lines if line.startswith("crossmatrix/")}
    assert steps["crossmatrix/shakespeare"] == "–"
    assert steps["crossmatrix/digit"] != "–"
    (note,) = estimate.notes
    assert note.startswith("crossmatrix/shakespeare: clients: only ")
    assert f"not measured  {note}" in lines


def test_each_experiment_is_first_measured_with_a_sampler_that_needs_little_information(
    tmp_path, monkeypatch
):
    measured = []

    def measure(job, *_):
        measured.append(f"{job.experiment} {job.sampler}")
        if job.sampler == "oort":
            raise InputError("a step takes more than 4 s, and is not timed")
        return Measured(0.0, 1.0)

    monkeypatch.setattr(costs, "measure", measure)
    change = dict.fromkeys(load_paper("crossmatrix", PAPERS).experiments)
    schemes = {name: {"name": name, "m": 4} for name in ("oort", "approx_opt", "md")}
    change |= {name: {"samplers": {"*": None, **schemes}} for name in ("digit", "writer")}
    settings = {"papers": ["crossmatrix"], "scale": "reduced", "shipped": False}
    settings |= {"overrides": {"crossmatrix": change}}
    estimate = costs.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    assert measured[:2] == ["digit md", "writer md"]
    (first, second) = estimate.notes
    assert re.match(r"crossmatrix/digit/step-[0-9.]+/oort: a step takes more than 4 s", first)
    assert re.match(r"crossmatrix/writer/step-[0-9.]+/oort: ", second)
    assert estimate.experiments
    assert all(line.hours > 0 for line in estimate.experiments)
