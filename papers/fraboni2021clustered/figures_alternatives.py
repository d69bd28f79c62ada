"""Choices that could change the verdicts of fraboni2021clustered, each judged again."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from fedsampling.evidence.statistics import compare, difference
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.alternatives import (
    Alternative,
    by_reason,
    counted,
    instead,
    tabulate,
    with_margin,
)
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims, claims_gains

NARROWER = 0.01  # margin of c3, instead of a tenth
SMALLER_RUNS = ("c4", "c5", "c6", "c7", "c8")


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c3 and c10 again with other margins, rounds, intervals, and forms of the algorithms."""
    summary, c3, c10 = summaries["mnist"], paper.claims["c3"], paper.claims["c10"]
    judged = {"c3": claims.c3(summaries, c3, paper), "c10": claims_gains.c10(summaries, c10, paper)}
    measured = sorted(summary.select("md", "loss")["at"].unique())
    middle, last = measured[len(measured) // 2], measured[-1]
    rows_until = summary.rows[summary.rows["at"] <= middle]  # claims read their second half
    early = {"mnist": replace(summary, rows=rows_until)}
    instead_of = f"instead of {last // 2} to {last}"
    first = f"rounds {middle // 2} to {middle} {instead_of}"
    readings = judged["c10"].readings
    pairs = claims_gains.gains_over_md(summary)
    uncorrected = {name: compare(*pair, difference) for name, pair in pairs.items()}
    as_coded = []
    if "algorithm2-code" in set(summary.rows["sampler"]):
        coded = {"mnist": claims_gains.renamed(summary, "algorithm2-code", "algorithm2")}
        choice = "Ward's method as the authors' code applies it"
        as_coded = [instead("c3", choice, claims.c3(coded, c3, paper))]
    rows = [
        instead("c3", *with_margin("c3", NARROWER, summaries, paper)),
        instead("c3", first, claims.c3(early, c3, paper)),
        *as_coded,
        counted("c10", "how Algorithm 1 breaks ties between clients of equal size", readings),
        by_reason("c10", first, claims_gains.outperform(early["mnist"], c10)),
        by_reason(
            "c10",
            "intervals not corrected for six comparisons",
            claims_gains.gains_finding(uncorrected, c10),
        ),
    ]
    for name in SMALLER_RUNS:
        spec = paper.claims[name]
        used = spec.experiments or paper.artefacts[spec.artefact].experiments
        if summaries.keys() >= set(used):
            judged[name] = judge_function(paper, name)(summaries, spec, paper)
            rows += _of_smaller_runs(name, summaries, paper)
            if name == "c4":
                tolerance = paper.claims["c12"].margin  # of “no worse”
                choice = f"losses at most {100 * tolerance:g} % higher instead of lower"
                rows.append(by_reason(name, choice, claims.c4(summaries, spec, paper, tolerance)))
    return tabulate(judged, rows)


def _of_smaller_runs(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Judge a claim about late losses on all rounds and on the first half; vary a margin."""
    for choice, changed in {"all rounds": _all_rounds, "the first half": _first_half}.items():
        changed_runs = {key: changed(summary) for key, summary in summaries.items()}
        finding = judge_function(paper, name)(changed_runs, paper.claims[name], paper)
        choice = f"{choice} instead of the second half of the rounds"
        yield by_reason(name, choice, finding)
    if margin := paper.claims[name].margin:
        yield instead(name, *with_margin(name, margin / 2, summaries, paper))


def _all_rounds(summary: Summary) -> Summary:
    """Move all rounds into the second half, which claims read."""
    rows = summary.rows
    return replace(summary, rows=rows.assign(at=(rows["at"] + _last(rows)) / 2))


def _first_half(summary: Summary) -> Summary:
    """Keep the rounds that claims do not read, and move them into the second half."""
    rows = summary.rows
    return _all_rounds(replace(summary, rows=rows[rows["at"] < _last(rows) / 2]))


def _last(rows: pd.DataFrame) -> pd.Series:
    """Return the last round of each row's case."""
    last: pd.Series = rows.groupby("case", observed=True)["at"].transform("max")
    return last
