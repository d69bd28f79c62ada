"""Findings: the main results as text, with numbers from claims and artefacts.

``papers/<key>/findings.md`` is a Jinja template; numbers of results in it come from results, and
only counts of what papers' and datasets' files contain are typed.
``docs/findings.md`` joins them, filled in from the published runs; their sections ``### Data`` go
to ``docs/data.md``, and the earlier verdicts of ``paper.yaml`` to ``docs/history.md``.  The
report's first page shows the sections ``### In short`` and ``### Errors in the theory``.  The text
may not fit other numbers, so the report shows a paper's findings only if its results give the same
text as ``docs/findings.md``.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import TemplateError
from markdown_it import MarkdownIt

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record
from fedsampling.base.text import listed, show, show_interval
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.grades import LABELS
from fedsampling.evidence.verdicts import Interval
from fedsampling.experiments.papers import Paper
from fedsampling.report.claim_bars import interval_text
from fedsampling.report.drawing.saving import slug
from fedsampling.report.names import paper_name
from fedsampling.report.text import TEMPLATES, environment, macro

FILE = "findings.md"
DOCS = Path("docs") / FILE  # in the repository
HEAD = (TEMPLATES / "findings_head.md").read_text("utf-8")
DATA_DOCS = Path("docs") / "data.md"
DATA_HEAD = (TEMPLATES / "data_head.md").read_text("utf-8")
DATA_SECTION = "\n### Data\n"
IN_SHORT, ERRORS = "### In short", "### Errors in the theory"
HISTORY_DOCS = Path("docs") / "history.md"
HISTORY_HEAD = (TEMPLATES / "history_head.md").read_text("utf-8")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def history(papers: Mapping[str, tuple[Paper, Sequence[Claim]]]) -> str:
    """Tabulate each change of a claim's verdict, with the reason; the last one led to today's."""
    lines = []
    for paper, claims in papers.values():
        cited = paper_name(paper)
        now = {claim.id: with_grade(claim) for claim in claims}
        for name, spec in paper.claims.items():
            after = [*(past.verdict for past in spec.history[1:]), now[name]]
            lines += [
                f"| {cited} | {name} | {past.date} | {past.verdict} | {verdict} | {past.why} |\n"
                for past, verdict in zip(spec.history, after, strict=False)
            ]
    return HISTORY_HEAD + "".join(lines)


def sections(paper: Paper, claims: Sequence[Claim], artefacts: Path) -> tuple[str, str]:
    """Return a paper's findings and its notes on data, with the numbers of its results."""
    path = paper.folder / FILE
    if not path.is_file():
        return "", ""
    functions = _Numbers(paper, claims, artefacts).template_functions()
    try:
        template = environment(keep_trailing_newline=True).from_string(path.read_text("utf-8"))
        text = template.render(functions)
    except (LookupError, OSError, TemplateError, ValueError) as error:
        raise InputError(f"{path}: the results lack a number: {error}") from None
    text, _, notes = text.partition(DATA_SECTION)
    head = f"## {paper_name(paper)}\n\n"
    return text if text.startswith("## ") else head + text, head + notes.lstrip() if notes else ""


@dataclass(frozen=True)
class Published:
    """A paper's findings as HTML; empty unless ``docs/findings.md`` has the same numbers.

    `highlights`: sentences for the first page, by topic, such as "It depends".
    `errors`: table of the errors in the paper's theory.
    """

    text: str = ""
    highlights: Mapping[str, str] = field(default_factory=dict)
    errors: str = ""


def as_published(paper: Paper, claims: Sequence[Claim], artefacts: Path) -> Published:
    """Return a paper's findings as HTML."""
    published = paper.folder.resolve().parents[1] / DOCS
    try:
        text, _ = sections(paper, claims, artefacts)
        if not text or text not in published.read_text(encoding="utf-8"):
            return Published()
    except (InputError, FileNotFoundError):
        return Published()
    text = text.partition("\n")[2]
    text, short = _cut(text, IN_SHORT)
    text, errors = _cut(text, ERRORS)
    points = re.findall(r"^- \*\*(.+?)\.\*\* (.+)$", short, re.MULTILINE)
    return Published(
        _html(text, paper),
        {title: _MARKDOWN.renderInline(sentence) for title, sentence in points},
        _html(errors, paper),
    )


def _cut(text: str, head: str) -> tuple[str, str]:
    """Return a text without the section under a heading, and the section's content."""
    before, found, rest = text.partition(f"\n{head}\n")
    if not found:
        return text, ""
    section, marker, after = rest.partition("\n### ")
    return before + marker + after, section


def _html(text: str, paper: Paper) -> str:
    """Render Markdown; names of artefacts become links."""
    html: str = _MARKDOWN.render(text)
    for name in paper.artefacts:
        code = f"<code>{name}</code>"
        html = html.replace(code, f'<a href="#{slug(name)}">{code}</a>')
    return html


class _Numbers:
    """The functions through which a template reads a paper's results."""

    def __init__(self, paper: Paper, claims: Sequence[Claim], artefacts: Path) -> None:
        self._paper, self._artefacts = paper, artefacts
        self._claims = {claim.id: claim for claim in claims}

    def template_functions(self) -> dict[str, Any]:
        """Return the functions that templates can call, by name."""
        names = ("choices", "noted", "ours", "row", "rows", "table", "value")
        return {
            **{name: getattr(self, name) for name in names},
            "claim": self._claims.__getitem__,
            "reported": self._paper.reported,
            "n": number,
            "interval": interval,
            "listed": listed,
        }

    def table(self) -> str:
        """Tabulate the empirical claims that were run, and count all other claims."""
        return macro("findings.md.j2", "table", self._claims.values(), main_number, with_grade)

    def choices(self) -> str:
        """Tabulate the choices over which claims are judged, with the count of verdicts."""
        lines = ["| claim | choice | verdicts |", "|---|---|---|"]
        for name, claim in self._claims.items():
            if claim.basis.readings:
                counts = Counter(reading.verdict for reading in claim.basis.readings)
                names = [
                    re.sub(r" \([\d-]+\)$", "", n) for n in self._paper.claims[name].open_choices
                ]
                verdicts = ", ".join(f"{count} {word}" for word, count in counts.most_common())
                lines.append(f"| {name} | {'; '.join(names)} | {verdicts} |")
        return "\n".join(lines)

    def ours(self, name: str, drawn: str) -> str:
        """Format the interval named `drawn` of a claim."""
        return interval(asdict(self._drawn(name, drawn)), "value")

    def value(self, name: str, drawn: str) -> float:
        """Return the estimate of the interval named `drawn` of a claim."""
        return self._drawn(name, drawn).value

    def _drawn(self, name: str, drawn: str) -> Interval:
        return {interval.name: interval for interval in self._claims[name].basis.drawn}[drawn]

    def noted(self, artefact: str, pattern: str) -> str:
        """Return the first group of a regular expression in an artefact's notes."""
        notes = read_record(self._artefacts / artefact / "artefact.json")["notes"]
        match = re.search(pattern, "\n".join(notes))
        if match is None:
            raise LookupError(f"no note of {artefact} has '{pattern}'")
        return match[1]

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


def main_number(claim: Claim) -> str:
    """Return a claim's first number with its interval; its text if it has no interval.

    A claim that is confirmed has the number of its fresh seeds.
    """
    if not claim.basis.drawn:
        return claim.basis.ours
    first = claim.basis.drawn[0]
    number = interval_text(first) if first.bound else interval(asdict(first), "value")
    return f"{first.name}: {number}"


def with_grade(claim: Claim) -> str:
    """Return the verdict that counts, whether it is confirmed, and a grade that is not the best.

    The best grade is that of the paper's size and data.
    """
    basis = claim.basis
    words = f"{basis.verdict}, confirmed" if claim.confirmed else basis.verdict
    if basis.grade in ("paper's size", "not run"):
        return words
    notes = (LABELS.get(basis.grade, basis.grade), "" if claim.confirmed else claim.covers)
    return f"{words} ({', '.join(filter(None, notes))})"


def number(value: float, digits: int = 3, per: float = 1.0) -> str:
    """Format a number with `digits` significant digits, in units of `per`."""
    return show(float(value) / per, digits) if not math.isnan(value) else "N/A"


def interval(row: Mapping[str, Any], mean: str = "mean") -> str:
    """Format the mean of a row with its interval; a speed-up of zero is a missed target."""
    if mean == "speed_up" and row[mean] == 0:
        return "target missed"
    return show_interval(row[mean], row["low"], row["high"])
