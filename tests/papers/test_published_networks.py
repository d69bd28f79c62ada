"""Today's code computes the same numbers as the published runs of networks."""

import pytest
from tests.shared import PAPERS

from fedsampling.evidence.recomputed import compare_tables
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import load_paper
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.runs import store
from fedsampling.workflow.best_scale import jobs_at

EXPERIMENT = "bench_synthetic_iid"  # its data are generated
PUBLISHED = PAPERS.parent / "published_runs/crossmatrix" / f"{EXPERIMENT}.parquet"


@pytest.mark.parametrize("sampler", ["md", "uniform", "clustered_size", "tifl"])
def test_a_published_run_of_a_network_is_recomputed(sampler, tmp_path):
    """The selections of these samplers hardly depend on rounding, so all processors agree."""
    published = store.load_together(PUBLISHED)
    jobs = jobs_at(load_paper("crossmatrix", PAPERS), Config(), "paper", {EXPERIMENT})[EXPERIMENT]
    of_sampler = [job for job in jobs if job.sampler == sampler]
    job, run = next((job, run) for job in of_sampler for run in job.runs if run.hash in published)
    (table,) = job.simulation.simulate(run.data, [run.seed], RunContext(tmp_path, None)).tables
    assert compare_tables(table, published[run.hash].table)[0] == "within tolerance"
