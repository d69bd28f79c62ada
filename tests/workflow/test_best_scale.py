"""Scale best: each experiment at its largest finished scale, or left out with the reason."""

import pytest
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_record
from fedsampling.experiments import config as configuration
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.resolving import scale_of
from fedsampling.runs import places
from fedsampling.runs.execute import execute
from fedsampling.workflow import plan as workflow

LATENCY, MATRIX = "harshvardhan2025latency", "crossmatrix"


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """Return a plan at scale best where the runs of some experiments, at a scale, are shipped."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path)

    def plan_with(paper, *published, scale="paper", without="", **settings):
        experiments = {"experiments": [f"{paper}/{name}" for name in published]}
        full = workflow.plan({"papers": [paper], "scale": scale, **experiments}, PAPERS)
        kept = [job for job in full.jobs.values() if job.sampler != without]
        runs = [run.hash for job in kept for run in job.runs]
        write_record(tmp_path / places.INDEX, {f"{paper}/all": runs})
        return workflow.plan({"papers": [paper], **settings}, PAPERS, tmp_path / "results")

    return plan_with


def test_each_experiment_has_its_largest_finished_scale_or_is_left_out(finished):
    planned = finished(LATENCY, "dirichlet_mnist", "assumptions", scale="reduced")
    paper, full = planned.papers[LATENCY], load_paper(LATENCY, PAPERS)
    scales = {name: scale_of(paper, name, planned.config) for name in paper.experiments}
    assert scales == {"dirichlet_mnist": "reduced", "assumptions": "paper"}
    assert planned.datasets(*planned.jobs) == []
    assert planned.jobs_to_run(LATENCY) == []
    assert {*paper.artefacts, *paper.omitted} == set(full.artefacts)
    assert paper.claims == full.claims
    assert paper.left_out["femnist"] == (
        "none of 42 runs finished; "
        f"'snakemake --cores all {LATENCY} --config scale=reduced' computes 42"
    )


def test_a_new_sampler_does_not_change_the_scale_of_the_others(finished):
    only = [f"{MATRIX}/bench_quadratic"]
    planned = finished(MATRIX, "bench_quadratic", without="fedcs", experiments=only)
    assert planned.papers[MATRIX].scales == {"bench_quadratic": "paper"}
    assert "fedcs" not in {job.sampler for job in planned.jobs.values()}


def test_published_runs_can_be_ignored(finished):
    assert finished(LATENCY, "assumptions", shipped=False).jobs == {}


def test_unreadable_runs_are_an_error_and_are_not_computed(finished, tmp_path):
    planned = finished(LATENCY, "assumptions")
    job = next(iter(planned.jobs.values()))
    with pytest.raises(InputError, match="of its runs cannot be read; run the same"):
        execute([job], planned.config, tmp_path / "results", lambda *_: None)


def test_embedded_data_are_refused_at_scale_best():
    with pytest.raises(InputError, match="data: 'embedded' has no finished runs"):
        configuration.parse({"data": "embedded"})
