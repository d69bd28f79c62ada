"""What tests of several papers share."""

from pathlib import Path

import pandas as pd
import pytest

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.resolving import resolve_experiments
from fedsampling.experiments.simulations.simulation import Simulation, Where
from fedsampling.experiments.specs import jobs


@pytest.fixture(scope="session")
def simulated():
    """Run some of a paper's experiments on embedded data, made small by overrides."""
    return simulate


def simulate(paper, overrides):
    chosen = {name: paper.experiments[name] for name in overrides}
    small = paper.model_copy(update={"experiments": chosen})
    config = Config(
        papers=[paper.key], scale="paper", data="embedded", overrides={paper.key: overrides}
    )
    parts = {name: [] for name in overrides}
    for job in jobs(small, config):
        settings = Simulation.model_validate(job.runs[0].settings)
        seeds = [run.seed for run in job.runs]
        result = settings.simulate(job.runs[0].data, seeds, Where(Path("unused"), None)).tables
        for seed, table in zip(seeds, result, strict=True):
            parts[job.experiment].append(
                table.assign(case=job.case, sampler=job.sampler, seed=seed)
            )
    resolved = resolve_experiments(small, config)
    return {
        name: Summary(
            pd.concat(tables, ignore_index=True), resolved[name].experiment.model_dump(), {}
        )
        for name, tables in parts.items()
    }
