"""The report on one page, as PDF: summary, evidence map, clearest findings and advice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fedsampling.base.files import replacing
from fedsampling.evidence.verdicts import GRADES, Claim, Verdict
from fedsampling.report.citation import Software
from fedsampling.report.content import Chapter, clearest, period
from fedsampling.report.drawing.style import style
from fedsampling.report.overview import GLYPHS, MapRow, evidence_map, legend, summary
from fedsampling.report.which_sampler.comparison import Comparison

NAME = "summary.pdf"
WIDTH, HEIGHT = 8.27, 11.69  # inches: A4
MARGIN, LINE = 0.7, 0.19  # inches
CHARACTERS = 104  # of a line of text
# Colours of verdicts, as in style.css; other verdicts are grey.
COLOURS: dict[Verdict, str] = {
    "reproduced": "#def0e3",
    "partly reproduced": "#faebc8",
    "depends on unstated choices": "#faebc8",
    "contradicted": "#fae1de",
    "inconclusive": "#e1e8f5",
    "not comparable": "#e1e8f5",
}
FINDINGS_END = 9.2  # inches from the top; the space below is for the advice
CELL, NARROWEST = 0.16, 0.65  # inches: a claim, a column of the map


@dataclass
class _Page:
    """A page that is written from top to bottom; `top` is in inches from the top."""

    figure: Figure
    top: float = MARGIN

    def write(self, text: str, size: float = 9.0, indent: float = 0.0, **looks: Any) -> None:
        """Write a paragraph and move below it."""
        characters = CHARACTERS * 9.0 / size - 15 * indent
        if looks.get("weight") == "bold":
            characters *= 0.88
        for line in wrap(text, int(characters)):
            self.figure.text(*self.place(MARGIN + indent, self.top), line, size=size, **looks)
            self.top += LINE * size / 9.0

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Convert inches from the page's top left corner to figure coordinates, from 0 to 1."""
        return x / WIDTH, 1 - y / HEIGHT

    def cell(self, x: float, claim: Claim) -> None:
        """Draw a claim as a cell: filled if the runs have the paper's size, else outlined."""
        full = claim.grade in ("paper's size", "transfer")
        self.figure.add_artist(
            Rectangle(
                self.place(x, self.top + 0.04),
                (CELL - 0.03) / WIDTH,
                (CELL - 0.03) / HEIGHT,
                facecolor=COLOURS.get(claim.verdict, "white") if full else "white",
                edgecolor="#555b64",
                linewidth=0.5,
                transform=self.figure.transFigure,
            )
        )
        middle = self.place(x + CELL / 2 - 0.015, self.top)
        self.figure.text(*middle, GLYPHS[claim.verdict], size=6.5, ha="center", va="baseline")


def write(
    root: Path,
    chapters: Sequence[Chapter],
    comparisons: Mapping[str, Comparison],
    software: Software,
) -> str:
    """Write the page; return its name relative to `root`."""
    with style(), rc_context({"figure.constrained_layout.use": False}):
        page = _Page(Figure(figsize=(WIDTH, HEIGHT)))
        page.write("Client sampling in federated learning: which claims hold", 14, weight="bold")
        page.top += 0.08
        for sentence in summary(chapters):
            page.write(sentence, 10)
        page.top += 0.15
        _draw_map(page, evidence_map(chapters))
        _findings(page, chapters)
        if comparisons:
            _advice(page, comparisons)
        when = period(chapters)
        dated = f"; last run {when[1][:10]}" if when else ""
        page.top = HEIGHT - MARGIN
        page.write(
            f"fedsampling {software.version}{dated}. Rules, numbers and runs are in the report.", 8
        )
        with replacing(root / NAME) as path:
            page.figure.savefig(path, format="pdf", metadata={"CreationDate": None})
    return NAME


def _draw_map(page: _Page, rows: Sequence[MapRow]) -> None:
    columns = [grade for grade in GRADES if any(row.cells[grade] for row in rows)]
    widths = {
        grade: max(NARROWEST, CELL * max(len(row.cells[grade]) for row in rows) + 0.12)
        for grade in columns
    }
    x = MARGIN + 1.7
    for column in columns:
        head = {"transfer": "other data"}.get(column, column)
        page.figure.text(*page.place(x, page.top), head, size=8, weight="bold")
        x += widths[column]
    for row in rows:
        page.top += 0.24
        page.figure.text(*page.place(MARGIN, page.top), row.chapter.name, size=8.5)
        x = MARGIN + 1.7
        for column in columns:
            for place, claim in enumerate(row.cells[column]):
                page.cell(x + CELL * place, claim)
            x += widths[column]
    page.top += 0.28
    words = legend(claim for row in rows for grade in columns for claim in row.cells[grade])
    page.write("   ".join(f"{glyph} {' or '.join(names)}" for glyph, names in words.items()), 7.5)
    page.write("Filled: runs of the paper's size. Outlined: smaller runs, or not run.", 7.5)


def _findings(page: _Page, chapters: Sequence[Chapter]) -> None:
    page.top += 0.2
    page.write("The clearest finding on each paper", 11, weight="bold")
    for chapter in chapters:
        if page.top < FINDINGS_END and (claim := clearest(chapter.claims)):
            page.top += 0.04
            page.write(f"{chapter.name}, {chapter.paper.title}", 8.5, weight="bold")
            page.write(f"{claim.id}: {claim.statement} {_outcome(claim)}", 8.5, indent=0.15)


def _outcome(claim: Claim) -> str:
    reason = shorten(claim.reason, 200, placeholder=" …")
    return f"→ {GLYPHS[claim.verdict]} {claim.verdict}. {reason}"


def _advice(page: _Page, comparisons: Mapping[str, Comparison]) -> None:
    page.top += 0.2
    page.write("Which sampler?", 11, weight="bold")
    page.write(next(iter(comparisons.values())).gain_from_tuning, 8.5)
    for measure, comparison in comparisons.items():
        page.write(f"To save {measure}: {' '.join(comparison.advice().lines[:2])}", 8.5)
