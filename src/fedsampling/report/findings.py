"""Findings: the main results as text, with numbers from claims and artefacts.

``papers/<key>/findings.md`` is a Jinja template; every number in it comes from results.
``docs/findings.md`` joins them, filled in from the published runs.  The text may not fit other
numbers, so the report shows a paper's findings only if its results give the same text as
``docs/findings.md``.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined, TemplateError
from markdown_it import MarkdownIt

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record
from fedsampling.evidence.numbers import listed, show, show_interval
from fedsampling.evidence.verdicts import Claim, Interval
from fedsampling.experiments.papers import Paper

FILE = "findings.md"
DOCS = Path("docs") / FILE  # in the repository
HEAD = """# Findings

Our results, and why they differ from the papers where they do.
Numbers are those of the report (`make reproduce`), with 95 % intervals; each `paper.yaml` holds the rules that decide.
`fedsampling findings` generates this file from `papers/*/findings.md`.
"""  # noqa: E501


def section(paper: Paper, claims: Sequence[Claim], artefacts: Path) -> str:
    """Return a paper's findings with the numbers of its results; empty if it has none.

    Parameters
    ----------
    paper : Paper
    claims : sequence of Claim
    artefacts : Path
        Contains ``<artefact>/<artefact>.csv``.

    Raises
    ------
    InputError
        If the results lack a number.
    """
    path = paper.folder / FILE
    if not path.is_file():
        return ""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.globals |= _Numbers(paper, claims, artefacts).template_functions()
    try:
        text = environment.from_string(path.read_text(encoding="utf-8")).render()
    except (LookupError, OSError, TemplateError, ValueError) as error:
        raise InputError(f"{path}: the results lack a number: {error}") from None
    return f"## {paper.key}\n\n{text}"


def as_published(paper: Paper, claims: Sequence[Claim], artefacts: Path) -> str:
    """Return a paper's findings as HTML; empty if ``docs/findings.md`` has other numbers.

    HTML in the text itself is escaped.
    """
    published = paper.folder.resolve().parents[1] / DOCS
    try:
        text = section(paper, claims, artefacts)
        if not text or text not in published.read_text(encoding="utf-8"):
            return ""
    except (InputError, FileNotFoundError):
        return ""
    html: str = (
        MarkdownIt("commonmark", {"html": False}).enable("table").render(text.partition("\n")[2])
    )
    return html


class _Numbers:
    """The functions through which a template reads a paper's results."""

    def __init__(self, paper: Paper, claims: Sequence[Claim], artefacts: Path) -> None:
        self._paper, self._artefacts = paper, artefacts
        self._claims = {claim.id: claim for claim in claims}

    def template_functions(self) -> dict[str, Any]:
        """Return the functions that templates can call, by name."""
        names = ("changes", "claim", "noted", "ours", "reported", "row", "rows", "table", "value")
        formats = {"n": number, "interval": interval, "listed": listed}
        return {name: getattr(self, name) for name in names} | formats

    def claim(self, name: str) -> Any:
        """Return a claim with its verdict."""
        return self._claims[name]

    def table(self, *names: str) -> str:
        """Tabulate the named claims, or all claims that were run."""
        chosen = names or [n for n, claim in self._claims.items() if claim.grade != "not run"]
        lines = ["| claim | paper | ours | verdict |", "|---|---|---|---|"]
        for name in chosen:
            claim = self._claims[name]
            verdict = _with_grade(claim)
            check = " (code check)" if claim.kind == "code check" else ""
            cells = (f"{name}{check}: {claim.statement}", claim.reported, claim.ours, verdict)
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        return "\n".join(lines)

    def changes(self, before: Mapping[str, Sequence[str]]) -> str:
        """Tabulate earlier verdicts, today's, and the reasons of the changes.

        Parameters
        ----------
        before : mapping
            By claim: the earlier verdict, and the reason if it changed.
        """
        lines = ["| claim | before | now | reason of the change |", "|---|---|---|---|"]
        for name, (verdict, *reason) in before.items():
            verdict_now = _with_grade(self._claims[name])
            lines.append(
                f"| `{name}` | {verdict} | {verdict_now} | {' '.join(reason) or 'no change'} |"
            )
        return "\n".join(lines)

    def ours(self, name: str, drawn: str) -> str:
        """Format the interval named `drawn` of a claim."""
        return interval(asdict(self._drawn(name, drawn)), "value")

    def value(self, name: str, drawn: str) -> float:
        """Return the estimate of the interval named `drawn` of a claim."""
        return self._drawn(name, drawn).value

    def _drawn(self, name: str, drawn: str) -> Interval:
        return {interval.name: interval for interval in self._claims[name].drawn}[drawn]

    def noted(self, artefact: str, pattern: str) -> str:
        """Return the first group of a regular expression in an artefact's notes."""
        path = self._artefacts / artefact / "artefact.json"
        notes = read_record(path)["notes"]
        match = re.search(pattern, "\n".join(notes))
        if match is None:
            raise LookupError(f"no note of {artefact} has '{pattern}'")
        return match[1]

    def reported(self, name: str) -> float:
        """Return a number that the paper prints, by its id."""
        return self._paper.reported(name)

    def rows(self, artefact: str, **where: Any) -> list[dict[str, Any]]:
        """Return the rows of an artefact's CSV with these column values."""
        table = pd.read_csv(self._artefacts / artefact / f"{artefact}.csv")
        for column, value in where.items():
            table = table[table[column.replace("__", " ")] == value]
        return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]

    def row(self, artefact: str, **where: Any) -> dict[str, Any]:
        """Return the only row with these column values."""
        matches = self.rows(artefact, **where)
        if len(matches) != 1:
            raise LookupError(f"{len(matches)} rows of {artefact} have {where}")
        return matches[0]


def _with_grade(claim: Claim) -> str:
    """Return the verdict; add the grade if the runs differ from the paper's size or data."""
    if claim.grade in ("paper's size", "not run"):
        return claim.verdict
    return f"{claim.verdict} ({', '.join(filter(None, (claim.grade, claim.covers)))})"


def number(value: float, digits: int = 3, per: float = 1.0) -> str:
    """Format a number with `digits` significant digits, in units of `per`."""
    return show(float(value) / per, digits) if not math.isnan(value) else "N/A"


def interval(row: Mapping[str, Any], mean: str = "mean") -> str:
    """Format the mean of a row with its interval; a speed-up of zero is a missed target."""
    if mean == "speed_up" and row[mean] == 0:
        return "target missed"
    return show_interval(row[mean], row["low"], row["high"])
