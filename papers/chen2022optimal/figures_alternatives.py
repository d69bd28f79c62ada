"""Choices that could change the verdicts of chen2022optimal on MNIST by writer."""

from collections.abc import Iterator
from math import inf

from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.alternatives import Alternative, instead, tabulate, with_margin
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims

NARROWER = 0.005  # margin of c1_writers, instead of 0.05
HALF = 0.5  # of the paper's budget


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c1_writers and c2_writers again with other steps, margins, rounds and budgets."""
    judged = {
        name: getattr(claims, name)(summaries, paper.claims[name], paper)
        for name in ("c1_writers", "c2_writers")
    }
    rows = [*_of_order(summaries, paper, judged), *_of_budget(summaries, paper, judged)]
    return tabulate(judged, rows)


def _of_order(
    summaries: Summaries, paper: Paper, judged: dict[str, Finding]
) -> Iterator[Alternative]:
    """Vary the step of uniform sampling, the margin, and the rounds."""
    name = "c1_writers"
    spec = paper.claims[name]
    yield from _other_readings(name, judged[name])
    yield _instead(name, *with_margin(name, NARROWER, summaries, paper))
    yield _instead(
        name,
        f"full − optimal over all rounds instead of the last {claims.LATE}",
        claims.c1(summaries, spec, paper, late=inf),
    )


def _of_budget(
    summaries: Summaries, paper: Paper, judged: dict[str, Finding]
) -> Iterator[Alternative]:
    """Vary the step of uniform sampling, the limit of the other samplers, and the budget."""
    name = "c2_writers"
    spec = paper.claims[name]
    yield from _other_readings(name, judged[name])
    goal, limit = paper.reported("accuracy"), paper.reported("accuracy_of_others")
    yield _instead(
        name,
        f"the other samplers below {goal:g} % instead of {limit:g} %",
        claims.c2(summaries, spec, paper, limit=goal / 100),
    )
    budget = paper.reported("budget")
    yield _instead(
        name,
        f"{HALF * budget:g}·10^8 bits instead of {budget:g}·10^8",
        claims.c2(summaries, spec, paper, budget=HALF * budget),
    )


def _other_readings(name: str, judged: Finding) -> Iterator[Alternative]:
    """Record the readings that are not the main one, whose numbers the claim has."""
    for reading in judged.readings:
        if reading.ours != judged.ours:
            yield Alternative(name, reading.setting, reading.verdict, "numbers on the claim's card")


def _instead(name: str, choice: str, finding: Finding) -> Alternative:
    """Record a finding with its reason, which is shorter than its numbers."""
    return instead(name, choice, finding, finding.reason.rstrip("."))
