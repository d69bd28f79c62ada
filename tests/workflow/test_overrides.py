"""With any valid overrides, finished runs are drawn: no artefact or claim stops the report."""

import json
import random

import pytest
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import parse
from fedsampling.workflow import draw, report
from fedsampling.workflow.check import check_all
from fedsampling.workflow.claim_context import decisive
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all

ALL = sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml"))
DIRICHLET = {"name": "all_by_dirichlet", "alpha": 0.1, "clients": 50}
TRIALS, MAX_CHANGED = 10, 3


def project(results, paper, run, overrides):
    config = {"scale": "quick", "data": "embedded", "papers": [paper], "run": run}
    return Project(parse({**config, "overrides": {paper: overrides}}), results, PAPERS)


def computed(project):
    """Compute all runs; finished ones of other trials are reused."""
    assert execute_all(list(project.plan.jobs.values()), project, lambda manifest: None) == 0
    return project


def exhibit(project, paper, artefact):
    folder = project.folder / "artefacts" / paper / artefact
    return json.loads((folder / "artefact.json").read_text(encoding="utf-8"))


def test_with_another_partition_a_figure_says_so_and_its_claim_is_not_run(tmp_path):
    """The figure and a claim expect clients of one digit each."""
    paper, change = "fraboni2021clustered", "dataset.partition.name all_by_dirichlet (by_digit)"
    experiments = project(tmp_path, paper, "dirichlet", {}).plan.papers[paper].experiments
    mnist = {"dataset": {"partition": DIRICHLET}, "rounds": 4, "seeds": 1}
    overrides = dict.fromkeys(experiments) | {"mnist": mnist}
    dirichlet = computed(project(tmp_path, paper, "dirichlet", overrides))
    assert draw.draw(paper, dirichlet) == 0
    figure = exhibit(dirichlet, paper, "figure1")
    assert change in " ".join(figure["notes"])
    assert {"svg", "png", "csv"} <= figure["files"].keys()
    content = json.loads((dirichlet.folder / "claims" / f"{paper}.json").read_text())
    (claim,) = [claim for claim in content["claims"] if claim["id"] == "c1"]
    assert claim["verdict"] == "not run"
    assert claim["reason"].startswith("Not judged: ")
    assert change in claim["reason"]
    assert report.build_report(dirichlet).is_file()


def test_seeds_additions_and_other_cases_do_not_withhold_a_verdict():
    kept = ["seeds 20 (10)", "samplers.mine.m 5 (none)", "cases.other.m 5 (10)", "title a (b)"]
    withholding = ["samplers.md.m 5 (10)", "cases.one.m 5 (10)", "samplers.md.name none (md)"]
    assert decisive(kept + withholding, ["one"]) == withholding


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Results of all trials: what no override changes is computed once."""
    return tmp_path_factory.mktemp("shared")


@pytest.mark.long
@pytest.mark.parametrize("trial", range(TRIALS))
@pytest.mark.parametrize("paper", ALL)
def test_every_artefact_is_drawn_under_random_overrides(paper, trial, shared):
    trial_project = valid(paper, trial, shared)
    overrides = trial_project.config.overrides
    assert draw.draw(paper, computed(trial_project)) == 0, overrides
    for name in trial_project.plan.papers[paper].artefacts:
        assert exhibit(trial_project, paper, name)["files"], (name, overrides)
    assert report.build_report(trial_project).is_file()


def valid(paper, trial, results):
    """Return a project with random changes that `fedsampling check` accepts."""
    rng = random.Random(f"{paper} {trial}")
    while True:
        experiments = project(results, paper, f"trial{trial}", {}).plan.experiments
        resolved = {name.split("/")[1]: settings for name, settings in experiments.items()}
        names = rng.sample(sorted(resolved), min(rng.randint(1, MAX_CHANGED), len(resolved)))
        overrides = {name: rng.choice([*changes(resolved[name], rng)]) for name in names}
        trial_project = project(results, paper, f"trial{trial}", overrides)
        try:
            check_all(trial_project)
        except InputError:
            continue
        return trial_project


def changes(experiment, rng):
    """Yield what a user may change of an experiment first."""
    settings = experiment["settings"]
    yield None
    yield {"seeds": rng.choice([1, 2, 3])}
    yield {"samplers": {rng.choice([*experiment["samplers"]]): None}}
    yield {"cases": {rng.choice([*experiment["cases"]]): None}}
    yield {"cases": {"mine": {}}}
    sampler, record = rng.choice([*experiment["samplers"].items()])
    yield {"samplers": {"mine": record, sampler: None}}
    if "m" in record:
        yield {"samplers": {sampler: {"m": max(1, record["m"] - 1)}}}
    if settings.get("rounds"):
        yield {"rounds": max(2, settings["rounds"] // 2)}
    if (settings.get("dataset") or {}).get("partition"):
        yield {"dataset": {"partition": DIRICHLET}}
