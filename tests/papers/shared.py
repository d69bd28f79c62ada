"""What tests of several papers share: published, changed and made-up runs, and verdicts."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
from tests.shared import PAPERS

from fedsampling.evidence import summaries
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import judge_function
from fedsampling.experiments.simulations.simulation import tidy
from fedsampling.workflow.draw import summarise
from fedsampling.workflow.project import Project

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
