"""The price of a look: its missing runs, as long as finished ones took."""

from tests.shared import PAPERS

from fedsampling.experiments.config import parse
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.places import file_name
from fedsampling.workflow import look_hours
from fedsampling.workflow.best_scale import jobs_at
from fedsampling.workflow.look_hours import expected_seconds, hours_of_look
from fedsampling.workflow.project import Project


def test_seconds_are_those_of_fresh_runs_then_of_the_sampler_then_of_the_case():
    fresh, explored = {("a", "md"): [1.0, 3.0]}, {("a", "md"): [90.0], ("b", "md"): [6.0]}
    known = [fresh, explored]
    assert expected_seconds("a", "md", known) == 2.0
    assert expected_seconds("b", "md", known) == 6.0
    assert expected_seconds("b", "uniform", known) == 6.0
    assert expected_seconds("c", "uniform", known) == 25.0


def test_runs_of_a_look_that_are_not_of_this_code_are_missing(tmp_path, monkeypatch):
    paper = load_paper("rizk2022importance", PAPERS)
    project = Project(parse({"shipped": False}), tmp_path, PAPERS)
    jobs = jobs_at(paper, project.config, "paper", {"confirm_longer"})["confirm_longer"]
    first, second, *_ = (run.hash for run in jobs[0].runs)
    stored = {file_name(first, jobs[0].code), file_name(second, "0" * 12)}
    monkeypatch.setattr(look_hours, "file_names", lambda _: stored)

    hours = hours_of_look(paper, {"longer": "confirm_longer"}, 10, project, lambda _: 3600.0)
    assert hours == {"confirm_longer": 10 * len({job.sampler for job in jobs}) - 1}

    unknown = hours_of_look(paper, {"longer": "confirm_longer"}, 10, project, lambda _: None)
    assert unknown == {}
