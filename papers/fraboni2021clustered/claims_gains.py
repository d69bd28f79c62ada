"""Claim c10 of Fraboni et al. 2021: both algorithms' gains over MD sampling on MNIST by digit."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from fedsampling.evidence.rules import JOINT, ordering, over_choices
from fedsampling.evidence.statistics import Estimate, difference, holm
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding, intervals
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .lines import CLUSTERED, LINES, METRICS, late

Pairs = Mapping[str, tuple[pd.Series, pd.Series]]  # two samplers' numbers by seed
TIES = "ties broken at random"
BY_DIGIT = "ties broken by number, clients numbered digit by digit"


def c10(summaries: Summaries, claim: ClaimSpec, paper: Paper) -> Finding:
    """Judge both algorithms against MD sampling, with either way to break Algorithm 1's ties.

    All clients have equal sizes here.  Numbered digit by digit, with ties broken by number, each
    of Algorithm 1's distributions consists of the clients of one digit.  This is target sampling,
    whose runs are used.
    """
    summary = summaries["mnist"]
    readings = {TIES: outperform(summary, claim)}
    if "target" in set(summary.rows["sampler"]):
        readings[BY_DIGIT] = outperform(renamed(summary, "target", "algorithm1"), claim)
    return over_choices(readings, main=TIES)


def outperform(summary: Summary, claim: ClaimSpec) -> Finding:
    """Judge loss, accuracy and digits of both algorithms against MD sampling."""
    return gains_finding(holm(gains_over_md(summary), difference), claim)


def gains_over_md(summary: Summary) -> Pairs:
    """Pair each quantity of both algorithms with MD sampling's, so that a gain is positive."""
    pairs = {}
    for name in CLUSTERED:
        for metric, quantity in METRICS.items():
            ours, md = late(summary, name, metric), late(summary, "md", metric)
            pair = (md, ours) if metric == "loss" else (ours, md)
            pairs[f"{LINES[name].label} {quantity}"] = pair
    return pairs


def gains_finding(gains: Mapping[str, Estimate], claim: ClaimSpec) -> Finding:
    """Judge c10 by the gains over MD sampling."""
    by_unit = (
        intervals(
            {name: gain for name, gain in gains.items() if name.endswith(unit)},
            f"{unit}, gain over MD{JOINT}",
            least=claim.margin,
        )
        for unit in METRICS.values()
    )
    return replace(ordering(gains, claim.margin, "gain over MD"), drawn=sum(by_unit, ()))


def renamed(summary: Summary, sampler: str, name: str) -> Summary:
    """Replace the runs of `name` with the runs of `sampler`."""
    rows = summary.rows[summary.rows["sampler"] != name]
    return replace(
        summary, rows=rows.assign(sampler=rows["sampler"].astype(str).replace({sampler: name}))
    )
