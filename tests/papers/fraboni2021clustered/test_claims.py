"""Each claim of fraboni2021clustered reaches the verdicts that its rule in paper.yaml names.

The runs are the published ones, some of whose numbers are changed.
"""

from dataclasses import replace

import numpy as np
import pytest

from fedsampling.experiments.papers import load_paper
from papers.fraboni2021clustered import claims

from ..shared import PAPERS, changed, judge, lost, published

KEY = "fraboni2021clustered"
PAPER = load_paper(KEY, PAPERS)


def times(factor):
    return lambda values: factor * values


def at(level, rarely=None):
    """Set values to a level, and in some rounds to another, since equal runs have no interval."""
    rng = np.random.default_rng(0)
    return lambda values: np.where(rng.random(len(values)) < 0.02, rarely or level, level)


def judged(claim, changes, seeds=10, cases=(), **chosen):
    """Judge by the published runs, changed by sampler, metric and, if it is given, case."""
    spec = PAPER.claims[claim]
    runs = {}
    for name in spec.experiments or PAPER.artefacts[spec.artefact].experiments:
        summary = published(KEY, name).only(cases)
        for key, change in changes.items():
            of = dict(zip(("sampler", "metric", "case"), key, strict=False))
            summary = changed(summary, change, **of, **chosen)
        runs[name] = replace(summary, rows=summary.rows[summary.rows["seed"] < seeds])
    return judge(PAPER, claim, runs)


SMALL, SMALLEST, LARGE = "alpha-0.01", "alpha-0.001", "alpha-10"
ORDERED = {("md", "loss", SMALLEST): times(1.5), ("md", "loss", SMALL): times(1.5)}
MORE_WORK = ("algorithm2", "loss", "steps-500")
FEWER_CLIENTS = ("algorithm2-5", "loss", SMALL)
WORSE_MD = {("md", metric): times(factor) for metric, factor in (("loss", 2), ("labels", 0.5))}
WORSE_MD[("md", "accuracy")] = times(0.5)


@pytest.mark.parametrize(
    ("claim", "changes", "verdict"),
    [
        ("c1", {("md", "clients"): at(10, 9)}, "partly reproduced"),
        ("c1", {("algorithm1", "clients"): at(9, 10)}, "partly reproduced"),
        ("c1", {(("md", "algorithm1"), "clients"): at(9, 10)}, "contradicted"),
        ("c2", {("md", "labels"): at(5, 6)}, "contradicted"),
        ("c3", {("algorithm2", "loss"): times(1.5)}, "partly reproduced"),
        ("c3", {("algorithm2", ("loss", "accuracy", "labels")): times(1.5)}, "contradicted"),
        ("c4", ORDERED, "reproduced"),
        ("c4", {**ORDERED, ("algorithm2", "loss", LARGE): times(0.1)}, "partly reproduced"),
        ("c4", {("md", "loss", SMALLEST): times(0.5)}, "contradicted"),
        ("c5", {("algorithm1", "loss", LARGE): times(0.7)}, "contradicted"),
        ("c6", {MORE_WORK: times(0.5), FEWER_CLIENTS: times(0.5)}, "reproduced"),
        ("c6", {MORE_WORK: times(0.5)}, "partly reproduced"),
        ("c6", {MORE_WORK: times(2)}, "contradicted"),
        ("c7", {("l1", "loss"): times(1.3)}, "contradicted"),
        ("c8", {("md", "loss"): times(1.5)}, "reproduced"),
        ("c8", {("md", "loss"): times(0.5)}, "contradicted"),
        ("c10", WORSE_MD, "reproduced"),
        ("c10", {**WORSE_MD, (("md", "algorithm2"), "labels"): at(5)}, "partly reproduced"),
        ("c10", {**WORSE_MD, ("algorithm2", "loss"): times(3)}, "contradicted"),
    ],
)
def test_claims_follow_the_numbers_of_their_runs(claim, changes, verdict):
    assert judged(claim, changes).verdict == verdict


@pytest.mark.parametrize("measure", ["arccos", "l2", "l1"])
def test_c12_compares_every_measure_of_algorithm_2_with_md(measure):
    runs = {name: published(KEY, name) for name in PAPER.claims["c12"].experiments}
    assert judge(PAPER, "c12", runs).verdict == "reproduced"
    runs["measures"] = changed(runs["measures"], times(1.1), sampler=measure, metric="loss")
    assert judge(PAPER, "c12", runs).verdict == "inconclusive"


def test_c4_has_another_verdict_if_losses_may_be_a_twentieth_higher():
    runs = {"alpha": published(KEY, "alpha")}
    claim = PAPER.claims["c4"]
    assert claims.c4(runs, claim, PAPER, tolerance=0.05).verdict == "reproduced"
    assert claims.c4(runs, claim, PAPER).verdict == "partly reproduced"


@pytest.mark.parametrize("claim", ["c1", "c4", "c5", "c7"])
def test_claims_are_open_without_intervals(claim):
    assert judged(claim, {}, seeds=2).verdict == "inconclusive"


def test_c3_compares_over_the_second_half():
    last = published(KEY, "mnist").rows["at"].max()
    early = judged("c3", {("algorithm2", "loss"): times(100)}, until=last / 2 - 1)
    assert early.ours == judged("c3", {}).ours


def test_claims_are_judged_by_the_alphas_that_were_run():
    assert judged("c5", {}, cases=[SMALL]).verdict == "not run"
    assert judged("c4", ORDERED, cases=[SMALL]).verdict == "partly reproduced"


def test_a_diverged_run_decides_nothing():
    runs = {"prox": lost(published(KEY, "prox"), "md", since=50)}
    assert judge(PAPER, "c8", runs).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("metric", "value", "verdict"),
    [
        ("variance_above_md", 1e-15, "reproduced"),
        ("draws_above_bound", -1, "reproduced"),
        ("rows_off", 1, "contradicted"),
        ("columns_off", 1, "contradicted"),
        ("variance_above_md", 1e-6, "contradicted"),
        ("inclusion_below_md", 1e-6, "contradicted"),
        ("draws_above_bound", 1, "contradicted"),
    ],
)
def test_c9_wants_every_bound_in_every_allocation(metric, value, verdict):
    changes = {("algorithm1", metric, "by_digit"): at(value)}
    assert judged("c9", changes, until=0).verdict == verdict
