"""Artefacts as drawn and as files, and tables: as text, HTML, LaTeX, and of alternative choices."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd
from markupsafe import escape
from matplotlib.figure import Figure

from fedsampling.base.text import grouped, listed, show
from fedsampling.evidence.provenance import Provenance
from fedsampling.evidence.provenance import Summaries as Summaries
from fedsampling.evidence.verdicts import Finding, Reading
from fedsampling.experiments.papers import Paper, judge_function


@dataclass(frozen=True)
class Artefact:
    """A figure or table, drawn."""

    data: pd.DataFrame  # tidy data, written as CSV and, for a table, also as HTML and LaTeX
    figure: Figure | None = None  # none for a table
    alt: str = ""  # one sentence for readers who cannot see the figure
    notes: tuple[str, ...] = ()  # sentences below the caption
    # number of significant digits in a table, by column
    formats: Mapping[str, int] = field(default_factory=dict)
    table: pd.DataFrame | None = None  # the table to show, if it differs from `data`
    caption: str = ""  # replaces the caption in ``paper.yaml``, unless empty
    caption_end: str = ""  # computed sentences that end the caption


Draw = Callable[[Summaries, Paper], Artefact]


@dataclass(frozen=True)
class Exhibit:
    """An artefact as files, described by its ``artefact.json``.

    Names and SHA-256 of files are by format. `command` redraws it; `badges` are reasons why it is
    not evidence.
    """

    paper: str
    artefact: str
    kind: Literal["figure", "table", "text"]
    title: str
    caption: str
    alt: str
    notes: tuple[str, ...]
    badges: tuple[str, ...]
    files: Mapping[str, str]
    digests: Mapping[str, str]
    command: str
    provenance: Provenance


_NAMES_AS_NUMBERS = ("seed", "seeds", "year")  # columns whose numbers count nothing
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "–": "--",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
}


def displayed(data: pd.DataFrame, formats: Mapping[str, int]) -> pd.DataFrame:
    """Format a table: numbers as text, with the significant digits of `formats` (default 4)."""
    texts = {}
    for column in data.columns:
        values = data[column]
        if pd.api.types.is_float_dtype(values):
            digits = formats.get(str(column), 4)
            texts[column] = [show(float(value), digits) for value in values]
        else:
            write = str if column in _NAMES_AS_NUMBERS else _in_full
            texts[column] = ["–" if value is None else write(value) for value in values]
    return pd.DataFrame(texts)


def _in_full(value: Any) -> str:
    """Write a value; whole numbers get thousands separators."""
    text = str(value)
    return grouped(text) if re.fullmatch(r"\d+", text) else text


def markup(table: pd.DataFrame, badges: Sequence[str]) -> tuple[str, str]:
    """Return a table as HTML and LaTeX; its last row lists why it is not evidence."""
    table = table.rename(columns=_in_words)
    html: str = table.to_html(index=False, border=0, escape=True)
    tex: str = table.to_latex(index=False, escape=True)
    if badges:
        warning, columns = " · ".join(badges), len(table.columns)
        foot = f'  <tfoot><tr><td colspan="{columns}">{escape(warning)}</td></tr></tfoot>\n</table>'
        html = html.replace("</table>", foot)
        cell = rf"\multicolumn{{{columns}}}{{l}}{{{latex_text(warning)}}} \\"
        foot = f"\\midrule\n{cell}\n\\bottomrule"
        tex = tex.replace(r"\bottomrule", foot)
    return html, tex


def latex_text(text: str) -> str:
    """Escape the characters that LaTeX reads as commands."""
    return "".join(_LATEX.get(character, character) for character in text)


def _in_words(column: str) -> str:
    """Write a column's name with spaces; symbols such as p_i stay as they are."""
    words = column.replace("speed_up", "speed-up").replace("_", " ")
    return words if re.fullmatch(r"[a-z-]{2,}(_[a-z-]{2,})+", column) else column


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
