"""Tables of alternatives: the verdicts under other choices than the paper's or ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from fedsampling.base.text import listed
from fedsampling.evidence.provenance import Summaries
from fedsampling.evidence.verdicts import Finding, Reading
from fedsampling.experiments.papers import Paper, judge_function
from fedsampling.report.drawing.artefacts import Artefact


@dataclass(frozen=True)
class Alternative:
    """An alternative to a choice, the paper's or ours, and the claim's verdict under it."""

    claim: str
    choice: str  # the choice and its alternative
    verdict: str
    gives: str  # our value under the alternative


def instead(claim: str, choice: str, finding: Finding, gives: str | None = None) -> Alternative:
    """Record a claim's verdict under an alternative choice; `gives` replaces our value."""
    return Alternative(claim, choice, finding.verdict, finding.ours if gives is None else gives)


def by_reason(claim: str, choice: str, finding: Finding) -> Alternative:
    """Record a claim's verdict under an alternative with its reason, shorter than its numbers."""
    return instead(claim, choice, finding, finding.reason.rstrip("."))


def with_margin(
    name: str, margin: float, summaries: Summaries, paper: Paper, unit: str = ""
) -> tuple[str, Finding]:
    """Judge a claim with another margin; return the choice in words, and the finding."""
    claim = paper.claims[name]
    changed = claim.model_copy(update={"margin": margin})
    finding = judge_function(paper, name)(summaries, changed, paper)
    return f"margin {margin:g} instead of {claim.margin:g}{unit}", finding


def counted(claim: str, choice: str, readings: Iterable[Reading]) -> Alternative:
    """Count the verdicts of a claim's readings."""
    verdicts = pd.Series([reading.verdict for reading in readings]).value_counts(sort=True)
    counts = listed([f"{word} in {count}" for word, count in verdicts.items()])
    only = next(iter(verdicts.index), "")  # empty without readings
    gives = only if len(verdicts) < 2 else f"{len(verdicts)} verdicts"
    return Alternative(claim, choice, gives, counts)


def tabulate(judged: Mapping[str, Finding], rows: Iterable[Alternative]) -> Artefact:
    """Draw the table of all alternatives, with each claim's verdict as it was judged."""
    columns = ["claim", "verdict", "choice", "gives", "ours"]
    cells = [
        (row.claim, judged[row.claim].verdict, row.choice, row.verdict, row.gives) for row in rows
    ]
    return Artefact(pd.DataFrame(cells, columns=columns))
