"""Choices that could change the verdicts of fraboni2021clustered that rest on the paper's size."""

from collections.abc import Iterator
from dataclasses import replace

from fedsampling.evidence.statistics import compare, difference
from fedsampling.evidence.summaries import Summary
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.alternatives import (
    Alternative,
    counted,
    instead,
    tabulate,
    with_margin,
)
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims

NARROWER = 0.01  # margin of c3, instead of a tenth


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c3 and c10 again with other margins, rounds, intervals, and forms of the algorithms."""
    summary, c3, c10 = summaries["mnist"], paper.claims["c3"], paper.claims["c10"]
    judged = {"c3": claims.c3(summaries, c3, paper), "c10": claims.c10(summaries, c10, paper)}
    measured = sorted(summary.select("md", "loss")["at"].unique())
    middle, last = measured[len(measured) // 2], measured[-1]
    early = {"mnist": _until(summary, middle)}
    instead_of = f"instead of {last // 2} to {last}"
    first = f"rounds {middle // 2} to {middle} {instead_of}"
    readings = judged["c10"].readings
    rows = [
        instead("c3", *with_margin("c3", NARROWER, summaries, paper)),
        instead("c3", first, claims.c3(early, c3, paper)),
        *_as_coded(summary, c3, paper),
        counted("c10", "how Algorithm 1 breaks ties between clients of equal size", readings),
        _instead(first, claims.outperform(early["mnist"], c10)),
        _instead(
            "intervals not corrected for six comparisons",
            claims.gains_finding(
                {
                    name: compare(*pair, difference)
                    for name, pair in claims.gains_over_md(summary).items()
                },
                c10,
            ),
        ),
    ]
    return tabulate(judged, rows)


def _as_coded(summary: Summary, spec: ClaimSpec, paper: Paper) -> Iterator[Alternative]:
    """Judge c3 with Ward's method as the authors' code applies it, where that was run."""
    if "algorithm2-code" in set(summary.rows["sampler"]):
        coded = {"mnist": claims.renamed(summary, "algorithm2-code", "algorithm2")}
        choice = "Ward's method as the authors' code applies it"
        yield instead("c3", choice, claims.c3(coded, spec, paper))


def _instead(choice: str, finding: Finding) -> Alternative:
    """Record a finding of c10 with its reason, which is shorter than its six gains."""
    return instead("c10", choice, finding, finding.reason.rstrip("."))


def _until(summary: Summary, last: float) -> Summary:
    """Keep the rounds up to a round; claims read the second half of them."""
    return replace(summary, rows=summary.rows[summary.rows["at"] <= last])
