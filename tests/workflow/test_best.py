"""Scale best: each experiment at its largest finished scale, or left out with the reason."""

from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_record
from fedsampling.experiments import config as configuration
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.resolving import scale_of
from fedsampling.runs import places
from fedsampling.runs.execute import execute
from fedsampling.workflow.best import left_to_run
from fedsampling.workflow.plan import plan

PAPERS = Path(__file__).parents[2] / "papers"
LATENCY, MATRIX = "harshvardhan2025latency", "crossmatrix"


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """Return a plan at scale best where the runs of some experiments, at a scale, are shipped."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)

    def plan_with(paper, *published, scale="paper", without="", **settings):
        full = plan({"papers": [paper], "scale": scale}, PAPERS)
        runs = [
            run.hash
            for job in full.jobs.values()
            if job.experiment in published and job.sampler != without
            for run in job.runs
        ]
        write_record(tmp_path / places.INDEX, {f"{paper}/all": runs})
        return plan({"papers": [paper], **settings}, PAPERS, tmp_path / "results")

    return plan_with


def test_each_experiment_has_the_largest_finished_scale(finished):
    planned = finished(LATENCY, "dirichlet_mnist", "assumptions", scale="reduced")
    paper = planned.papers[LATENCY]
    assert set(paper.experiments) == {"dirichlet_mnist", "assumptions"}
    scales = {name: scale_of(paper, name, planned.config) for name in paper.experiments}
    assert scales == {"dirichlet_mnist": "reduced", "assumptions": "paper"}
    assert planned.datasets(*planned.jobs) == []
    assert planned.jobs_to_run(LATENCY) == []


def test_every_experiment_is_shown_or_left_out_with_a_reason(finished):
    paper = finished(LATENCY, "assumptions").papers[LATENCY]
    full = plan({"papers": [LATENCY], "scale": "paper"}, PAPERS).papers[LATENCY]
    assert {*paper.artefacts, *paper.omitted} == set(full.artefacts)
    assert paper.claims == full.claims
    assert paper.left_out["femnist"] == (
        "none of 48 runs finished; "
        f"'snakemake --cores all {LATENCY} --config scale=paper' computes 48"
    )


def test_missing_runs_of_the_papers_size_are_known_at_any_scale(finished, tmp_path):
    planned = finished(LATENCY, "assumptions", scale="paper")
    for scale in ("best", "quick"):
        config = planned.config.model_copy(update={"scale": scale})
        due = left_to_run(load_paper(LATENCY, PAPERS), config, tmp_path / "results")
        assert due["assumptions"] == []
        assert len(due["femnist"]) == 48
        assert {job.runs[0].data for job in due["femnist"]} == {"official"}


def test_a_new_sampler_does_not_change_the_scale_of_the_others(finished):
    planned = finished(MATRIX, "bench_quadratic", without="fedcs")
    assert planned.papers[MATRIX].scales == {"bench_quadratic": "paper"}
    assert "fedcs" not in {job.sampler for job in planned.jobs.values()}


def test_published_runs_can_be_ignored(finished):
    assert finished(LATENCY, "assumptions", shipped=False).jobs == {}


def test_unreadable_runs_are_an_error_and_are_not_computed(finished, tmp_path):
    planned = finished(LATENCY, "assumptions")
    job = next(iter(planned.jobs.values()))
    with pytest.raises(InputError, match="of its runs cannot be read; run the same"):
        execute(job, planned.config, tmp_path / "results", lambda *_: None)


def test_embedded_data_are_refused_at_scale_best():
    with pytest.raises(InputError, match="data: 'embedded' has no finished runs"):
        configuration.parse({"data": "embedded"})
