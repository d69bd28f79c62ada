"""What tests of several papers share: published, small and changed runs, and verdicts."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

from fedsampling.evidence import summaries
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import judge_function
from fedsampling.experiments.resolving import resolve_experiments
from fedsampling.experiments.simulations.simulation import Simulation, Where, tidy
from fedsampling.experiments.specs import jobs
from fedsampling.workflow.drawing import summarise
from fedsampling.workflow.project import Project

PAPERS = Path(__file__).parents[2] / "papers"
KEYS = (
    "chen2022optimal",
    "fraboni2021clustered",
    "fraboni2022general",
    "harshvardhan2025latency",
    "rizk2022importance",
)


@cache
def project():
    return Project(Config(papers=list(KEYS)), Path(mkdtemp()), PAPERS)


@cache
def published(key, experiment):
    """Published runs of an experiment."""
    return summaries.load(summarise(key, experiment, project()))


def behind(key, spec, experiments=()):
    """Published runs that an artefact is drawn from, or some experiments with its cases."""
    return {name: published(key, name).only(spec.cases) for name in experiments or spec.experiments}


def judge(paper, claim, runs):
    return judge_function(paper, claim)(runs, paper.claims[claim], paper)


def changed(summary, change, **chosen):
    """Change values of the rows that :meth:`Summary.select` chooses."""
    rows, at = summary.rows.copy(), summary.select(**chosen).index
    rows.loc[at, "value"] = change(rows.loc[at, "value"])
    return replace(summary, rows=rows)


def lost(summary, sampler, case="base", since=0, seed=0):
    """Let a run diverge in a round."""
    rows, run = summary.rows.copy(), summary.select(sampler, case=case).query("seed == @seed")
    measured = run["metric"].isin(["loss", "accuracy"]) & (run["at"] >= since)
    rows.loc[run.index[measured], "value"] = np.nan
    rows.loc[run.index[run["metric"] == "diverged_at"], "value"] = float(since)
    return replace(summary, rows=rows)


def made_up(runs, settings):
    """Join runs that are given as their case, sampler, seed and measurements."""
    tables = [
        tidy(columns).assign(case=case, sampler=sampler, seed=seed)
        for case, sampler, seed, columns in runs
    ]
    return Summary(pd.concat(tables, ignore_index=True), settings, {})


def simulate(paper, overrides):
    """Run some of a paper's experiments on embedded data, made small by overrides."""
    small = paper.model_copy(
        update={"experiments": {name: paper.experiments[name] for name in overrides}}
    )
    config = Config(
        papers=[paper.key], scale="paper", data="embedded", overrides={paper.key: overrides}
    )
    parts = {name: [] for name in overrides}
    for job in jobs(small, config):
        settings = Simulation.model_validate(job.runs[0].settings)
        seeds = [run.seed for run in job.runs]
        result = settings.simulate(job.runs[0].data, seeds, Where(Path("unused"), None)).tables
        keys = {"case": job.case, "sampler": job.sampler}
        parts[job.experiment] += [
            table.assign(**keys, seed=seed) for seed, table in zip(seeds, result, strict=True)
        ]
    return {
        name: Summary(
            pd.concat(parts[name], ignore_index=True), resolved.experiment.model_dump(), {}
        )
        for name, resolved in resolve_experiments(small, config).items()
    }
