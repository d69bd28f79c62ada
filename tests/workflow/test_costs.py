"""Costs of a plan: its table, and the file for the requests of cluster jobs."""

from pathlib import Path

from fedsampling.experiments.config import parse
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.cluster.resources import load_measurements
from fedsampling.workflow import costs
from fedsampling.workflow.project import Project

PAPER, PAPERS = "fraboni2021clustered", Path(__file__).parents[2] / "papers"


def test_time_and_memory_of_a_network_are_saved_with_the_device(tmp_path):
    change = dict.fromkeys(load_paper(PAPER, PAPERS).experiments)
    change["mnist"] = {"samplers": dict.fromkeys(("algorithm1", "algorithm2", "target", "fedavg"))}
    settings = {"papers": [PAPER], "overrides": {PAPER: change}, "device": "cpu"}
    settings |= {"scale": "quick", "data": "embedded"}
    estimate = costs.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    saved = load_measurements(tmp_path / "results")[f"{PAPER}/mnist/base/md"]
    (line,) = estimate.experiments
    assert saved.device == "cpu"
    models = 4 * 39_760 * (2 + 3 * 10) / 2**20
    assert models < saved.seed_mb < 3 * models
    assert 0 < saved.step < line.hours * 3600


def test_experiments_that_cannot_be_estimated_are_reported_and_the_others_shown(
    tmp_path, monkeypatch
):
    """Here a stand-in is too small for the settings, as no data are at hand."""
    monkeypatch.delenv("FEDSAMPLING_MIRROR", raising=False)
    change = dict.fromkeys(load_paper("crossmatrix", PAPERS).experiments)
    for name in ("bench_shakespeare", "bench_digit"):
        change[name] = {"samplers": {"*": None, "md": {"name": "md", "m": 3}}}
    settings = {"papers": ["crossmatrix"], "scale": "paper", "data": "official"}
    settings |= {"overrides": {"crossmatrix": change}}
    estimate = costs.estimate(Project(parse(settings), tmp_path / "results", PAPERS))
    lines = costs.cost_table(estimate).splitlines()
    steps = {line.split()[0]: line.split()[4] for line in lines if line.startswith("crossmatrix/")}
    assert steps["crossmatrix/bench_shakespeare"] == "–"
    assert steps["crossmatrix/bench_digit"] != "–"
    (note,) = estimate.notes
    assert note.startswith("not estimated  crossmatrix/bench_shakespeare: ")
    assert note in lines
