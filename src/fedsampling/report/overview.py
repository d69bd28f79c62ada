"""The first screen of the report: a summary, a tally and a map with one cell for each claim.

Everything is generated from the verdicts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedsampling.base.text import listed, plural, show_interval
from fedsampling.evidence.verdicts import (
    GRADES,
    LABELS,
    VERDICTS,
    Claim,
    Grade,
    Part,
    Verdict,
)
from fedsampling.experiments.papers import Paper
from fedsampling.report.content import Chapter
from fedsampling.report.names import paper_name

# A glyph for each verdict, so that the map can be read without colours.
GLYPHS: Mapping[Verdict, str] = {
    "reproduced": "✓",
    "partly reproduced": "◐",
    "contradicted": "✗",
    "inconclusive": "?",
    "depends on unstated choices": "⇄",
    "not comparable": "≠",
    "supports": "✓",
    "partly supports": "◐",
    "opposes": "✗",
    "insufficient data": "?",
    "not run": "–",
}
Column = Grade | Literal["text against tables", "code checks"]
COLUMNS: tuple[Column, ...] = (*GRADES, "text against tables", "code checks")
ANSWERS: Mapping[Part, str] = {
    "holds": "Holds",
    "fails": "Fails",
    "tie": "Tie",
    "depends": "Depends on unstated choices",
    "open": "Undecided",
}


@dataclass(frozen=True)
class MapRow:
    """A row of the evidence map: a paper's claims by column."""

    chapter: Chapter
    cells: Mapping[Column, tuple[Claim, ...]]

    @property
    def used_columns(self) -> tuple[Column, ...]:
        """The columns in which the paper has claims."""
        return tuple(column for column, claims in self.cells.items() if claims)


def tallies(claims: Iterable[Claim]) -> dict[Grade, dict[Verdict, int]]:
    """Count claims by grade and verdict that occur, in the order of grades and verdicts."""
    counts = Counter((claim.grade, claim.verdict) for claim in claims)
    by_grade = {
        grade: {word: counts[grade, word] for word in VERDICTS if counts[grade, word]}
        for grade in GRADES
    }
    return {grade: by_verdict for grade, by_verdict in by_grade.items() if by_verdict}


def of_kind(kind: str, chapters: Iterable[Chapter]) -> list[Claim]:
    """Return the claims of a kind; runs could contradict the empirical ones."""
    return [claim for chapter in chapters for claim in chapter.claims if claim.kind == kind]


def evidence_map(chapters: Sequence[Chapter]) -> tuple[MapRow, ...]:
    """Arrange all claims by paper and grade; the other kinds have a column each."""
    return tuple(
        MapRow(
            chapter,
            {
                column: tuple(claim for claim in chapter.claims if _column(claim) == column)
                for column in COLUMNS
            },
        )
        for chapter in chapters
        if chapter.claims
    )


def _column(claim: Claim) -> Column:
    if claim.kind == "empirical":
        return claim.grade
    return "code checks" if claim.kind == "code check" else claim.kind


def legend(claims: Iterable[Claim]) -> dict[str, list[Verdict]]:
    """Return the verdicts that occur, by their glyph."""
    present = {claim.verdict for claim in claims}
    words: dict[str, list[Verdict]] = {}
    for verdict, glyph in GLYPHS.items():
        if verdict in present:
            words.setdefault(glyph, []).append(verdict)
    return words


def readme_table(papers: Mapping[str, tuple[Paper, Sequence[Claim]]]) -> str:
    """Tabulate verdicts by paper and grade in Markdown, for the README."""
    labels = (LABELS.get(grade, grade) for grade in GRADES)
    heads = ["paper", *labels, *COLUMNS[len(GRADES) :]]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for key, (paper, claims) in papers.items():
        if not claims:
            continue
        counts = tallies(claim for claim in claims if claim.kind == "empirical")
        cells = [
            ", ".join(
                str(count) if grade == "not run" else f"{count} {verdict}"
                for verdict, count in counts.get(grade, {}).items()
            )
            for grade in GRADES
        ]
        for kind, word in (("text against tables", "agree"), ("code check", "pass")):
            checks = [claim for claim in claims if claim.kind == kind]
            passed = sum(claim.passes for claim in checks)
            cells.append(f"{passed} of {len(checks)} {word}" if checks else "")
        lines.append(f"| [{paper_name(paper)}](papers/{key}/paper.yaml) | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(chapters: Sequence[Chapter]) -> list[str]:
    """Write how many claims were tested, the main verdicts, and when rules were written."""
    claims = of_kind("empirical", chapters)
    if not claims:
        return []
    tested = [claim for claim in claims if claim.grade != "not run"]
    full = Counter(claim.verdict for claim in tested if claim.grade == "paper's size")
    papers = sum(bool(of_kind("empirical", [chapter])) for chapter in chapters)
    sentences = [
        f"We tested {len(tested)} of {plural(len(claims), 'empirical claim')} "
        f"of {plural(papers, 'paper')}."
    ]
    if full:
        verdicts = [
            f"{full[word]} {word if full[word] == 1 else word.replace('depends', 'depend')}"
            for word in VERDICTS
            if full[word]
        ]
        sentences.append(f"At the paper's size on verified data: {listed(verdicts)}.")
    if weaker := len(tested) - full.total():
        sentences.append(f"The evidence map shows the other {weaker}, with weaker evidence.")
    return [*sentences, *declared(tested)]


def declared(claims: Iterable[Claim]) -> list[str]:
    """Write how many rules were written or changed after some results had been seen."""
    tested = [claim for claim in claims if claim.kind == "empirical" and claim.grade != "not run"]
    seen = sum(bool(claim.declared and claim.declared.when == "after seeing") for claim in tested)
    if not seen:
        return []
    which = f"All {seen}" if seen == len(tested) else f"{seen} of the {len(tested)}"
    return [f"{which} rules that decide were written or changed after some results had been seen."]


def main_outcomes(
    chapters: Sequence[Chapter],
) -> dict[str, tuple[tuple[Chapter, Claim], ...]]:
    """Return the claims that hold and those that do not, with their chapters."""
    if not of_kind("empirical", chapters):
        return {}
    verdicts = {"Holds": "reproduced", "Does not hold": "contradicted"}
    return {
        title: tuple(
            (chapter, claim)
            for chapter in chapters
            for claim in of_kind("empirical", [chapter])
            if claim.verdict == verdict
        )
        for title, verdict in verdicts.items()
    }


def headline(claim: Claim) -> str:
    """Write our finding on a claim, with our main numbers and the paper's next to them."""
    printed = [row for row in claim.drawn if row.paper is not None]
    numbers = [
        f"{row.name}: {show_interval(row.value, row.low, row.high)}"
        + ("" if row.paper is None else f" (paper {row.paper:.3g})")
        for row in printed[:2] or claim.drawn[:1]
    ]
    theirs = "" if printed else f" Paper: {claim.reported}."
    sentence = f" {_sentence('; '.join(numbers))}" if numbers else ""
    return f"{claim.topic or claim.statement.rstrip('.')}. {claim.reason}{sentence}{theirs}"


def _sentence(text: str) -> str:
    """End a text with a full stop, and begin it with a capital if it begins with a word."""
    is_word = text[:3].isascii() and text[:3].islower() and text[:3].isalpha()
    return f"{text[:1].upper() if is_word else text[:1]}{text[1:]}."


def answers(claim: Claim) -> str:
    """Write which parts of a claim hold; empty if it has a single part."""
    if len(claim.parts) < 2:
        return ""
    names = {part: [name for name, each in claim.parts.items() if each == part] for part in ANSWERS}
    return " ".join(f"{ANSWERS[part]}: {'; '.join(each)}." for part, each in names.items() if each)
