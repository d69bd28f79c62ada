"""Choices that could change the verdicts of Chen et al. 2022, and the verdicts under them."""

from collections.abc import Iterator
from math import inf

from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.alternatives import Alternative, by_reason, tabulate, with_margin
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from . import claims, claims_bits

NARROWER = 0.005  # margin of c1, instead of 0.05
HALF = 0.5  # of the paper's budget


def alternatives(summaries: Summaries, paper: Paper) -> Artefact:
    """Judge c1 and c2 on all their data with other steps, margins, rounds and budgets."""
    varied = {"c1_writers": _of_order, "c2_writers": _of_budget, "c1": _of_order, "c2": _of_budget}
    judged: dict[str, Finding] = {}
    rows: list[Alternative] = []
    for name, vary in varied.items():
        spec = paper.claims[name]
        if summaries.keys() >= set(spec.experiments or paper.artefacts[spec.artefact].experiments):
            judged[name] = main = judge_function(paper, name)(summaries, spec, paper)
            rows += [
                Alternative(name, other.setting, other.verdict, "numbers on the claim's card")
                for other in main.readings
                if other.ours != main.ours
            ]
            rows += vary(name, summaries, paper)
    return tabulate(judged, rows)


def _of_order(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the margin, and the rounds that count."""
    yield by_reason(name, *with_margin(name, NARROWER, summaries, paper))
    choice = f"full − optimal over all rounds instead of the last {claims.LATE}"
    yield by_reason(name, choice, claims.c1(summaries, paper.claims[name], paper, late=inf))


def _of_budget(name: str, summaries: Summaries, paper: Paper) -> Iterator[Alternative]:
    """Vary the limit of the other samplers, and the budget."""
    spec = paper.claims[name]
    goal, limit = paper.reported("accuracy"), paper.reported("accuracy_of_others")
    choice = f"the other samplers below {goal:g} % instead of {limit:g} %"
    yield by_reason(name, choice, claims_bits.c2(summaries, spec, paper, limit=goal / 100))
    budget = paper.reported("budget")
    choice = f"{HALF * budget:g}·10^8 bits instead of {budget:g}·10^8"
    yield by_reason(name, choice, claims_bits.c2(summaries, spec, paper, budget=HALF * budget))
