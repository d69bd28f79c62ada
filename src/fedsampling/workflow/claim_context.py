"""What a paper's claims are judged with, and applying a claim's rule to it."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from fedsampling.base.errors import WARNING, InputError
from fedsampling.evidence.provenance import Summaries
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import ArtefactSpec, Paper, judge_function
from fedsampling.experiments.specs import Job
from fedsampling.workflow.project import Project


@dataclass(frozen=True)
class Context:
    """What all claims of a paper are judged with.

    `paper`, `complete`: without and with the experiments that are left out. `loaded`: summaries of
    the remaining experiments. `unfinished`: unfinished jobs of the paper's size, by experiment.
    `seconds`: of the runs in the summaries, by hash.
    """

    paper: Paper
    complete: Paper
    project: Project
    loaded: Summaries
    unfinished: Mapping[str, Sequence[Job]]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def artefact(self, claim: str) -> ArtefactSpec:
        """Return the artefact that shows a claim, also if it is left out."""
        return {**self.paper.omitted, **self.paper.artefacts}[self.paper.claims[claim].artefact]

    def cases(self, claim: str) -> list[str]:
        """Return the cases that a claim is about; empty for all."""
        return self.paper.claims[claim].cases or self.artefact(claim).cases

    def experiments(self, claim: str) -> list[str]:
        """Return the experiments that a claim is judged on."""
        spec = self.paper.claims[claim]
        if spec.kind == "text against tables":
            return []
        return spec.experiments or self.artefact(claim).experiments

    def apply_rule(self, claim: str, summaries: Summaries, outcome: str) -> Finding | None:
        """Return the finding of a claim's rule.

        If the rule fails because settings were changed, warn with `outcome` and return None.
        """
        try:
            finding: Finding = judge_function(self.paper, claim)(
                summaries, self.paper.claims[claim], self.paper
            )
        except Exception as error:  # a paper's function may rely on the paper's settings
            if not self.project.config.changes(self.paper.key):
                raise
            warn_unfit(self.paper, claim, f"{outcome}, because its rule does not fit", error)
            return None
        return finding


def decisive(changes: Sequence[str], cases: Collection[str]) -> list[str]:
    """Return the changed settings that withhold a claim's verdict.

    These are all but seeds, titles, added samplers and cases, and cases of other claims.

    `changes`: lines ``key value (paper's value)``. `cases`: of the claim; if empty, all.
    """
    return [
        line
        for line in changes
        if not line.startswith(("seeds ", "title "))
        and not (line.startswith(("samplers.", "cases.")) and line.endswith("(none)"))
        and not (cases and line.startswith("cases.") and line.split(".")[1] not in cases)
    ]


def warn_unfit(spec: Paper, name: str, outcome: str, error: Exception) -> None:
    """Warn on stderr that a paper's function fails with the changed settings.

    An InputError says by itself what is missing, and what to do.
    """
    if isinstance(error, InputError):
        line = f"{outcome.partition(',')[0]}: {error.lines[0]}"
    else:
        line = f"{outcome} the changed settings ({_in_one_line(error)})"
    print(f"{WARNING}{spec.key}/{name}: {line}", file=sys.stderr)


def _in_one_line(error: Exception) -> str:
    """Format the type and the first line of an error, shortened."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {shorten(first, 100, placeholder=' …')}"
