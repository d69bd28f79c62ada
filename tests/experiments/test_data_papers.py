"""The three papers whose figures show only data, from their files to the report."""

import json
from functools import cache
from pathlib import Path

import pytest

from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.execute import execute
from fedsampling.workflow import checking, drawing, reporting
from fedsampling.workflow.plan import plan
from fedsampling.workflow.project import Project

ROOT = Path(__file__).parents[2]
ARTEFACTS = {
    "chen2022optimal": {"figure1", "figure1_writers"},
    "fraboni2021clustered": {"figure5"},
    "harshvardhan2025latency": {"figure1", "figure1_sensitivity"},
}
CHEN, FRABONI, LATENCY = ARTEFACTS
DATA = {  # seeds and cases enough to draw every figure
    CHEN: {"sets": {}, "writers": {"seeds": 2}},
    FRABONI: {"partition": {"seeds": 2, "cases": dict.fromkeys(("alpha-0.001", "alpha-0.1"))}},
    LATENCY: {"delays": {"rounds": 3, "seeds": 2}, "sensitivity": {"rounds": 3, "seeds": 2}},
}


def fewer(key):
    """Return overrides of a paper that leave nothing else of it."""
    return {name: DATA[key].get(name) for name in load_paper(key, ROOT / "papers").experiments}


def drawn(folder):
    """Run every job and stage but the report."""
    overrides = {key: fewer(key) for key in DATA}
    config = Config(scale="quick", data="embedded", papers=list(DATA), overrides=overrides)
    project = Project(config, folder / "results", ROOT / "papers")
    for job in project.plan.jobs.values():
        execute(job, config, project.results, lambda *_: None)
    for paper in ARTEFACTS:
        assert drawing.draw(paper, project) == 0
    return project


def test_every_figure_is_made_without_a_download_and_labelled(tmp_path):
    project = drawn(tmp_path)
    for key, names in ARTEFACTS.items():
        for name in names:
            folder = project.folder / "artefacts" / key / name
            described = json.loads((folder / "artefact.json").read_text())
            assert described["badges"][-1] == "embedded data"
            assert described["provenance"]["inputs"] == {}
            assert (folder / f"{name}.svg").stat().st_size > 10_000
    assert reporting.build_report(project).is_file()
    runs = [(cost.finished, cost.runs) for cost in checking.estimate(project).experiments]
    assert sum(total for _, total in runs) > 0
    assert all(finished == total for finished, total in runs)


@cache
def quick_plan(**settings):
    settings = {"scale": "quick", "data": "embedded", "papers": list(ARTEFACTS), **settings}
    return plan(settings, ROOT / "papers")


@pytest.mark.parametrize(
    ("job", "read"),
    [
        (f"{CHEN}/sets/dataset1/none/block-0", ["cookup"]),
        (f"{CHEN}/writers/dataset1/none/block-0", ["mnist", "qmnist"]),
        (f"{FRABONI}/partition/alpha-10/none/block-0", ["cifar10"]),
        (
            f"{LATENCY}/delays/base/none/block-0",
            ["nycmesh", "nycmesh/network-map", "async_hfl_delays"],
        ),
    ],
)
def test_official_files_of_everything_that_a_job_reads_are_fetched(job, read):
    assert quick_plan(data="official", shipped=False).datasets(job) == read
    assert quick_plan().datasets(job) == []
