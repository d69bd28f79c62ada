"""The first screen of the report: a summary, a tally and a map with one cell for each claim.

Everything is generated from the verdicts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedsampling.evidence.claims import Claim
from fedsampling.evidence.grades import LABELS
from fedsampling.evidence.verdicts import GRADES, VERDICTS, Grade, Part, Verdict
from fedsampling.experiments.papers import Paper
from fedsampling.report import standing
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
    "holds": "holds",
    "fails": "fails",
    "tie": "tie",
    "depends": "depends on unstated choices",
    "open": "undecided",
}


MOST_WITHOUT_GROUPS = 14  # more claims are grouped by figure and table


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
    counts = Counter((claim.basis.grade, claim.basis.verdict) for claim in claims)
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
        return claim.basis.grade
    return "code checks" if claim.kind == "code check" else claim.kind


def legend(claims: Iterable[Claim]) -> dict[str, list[Verdict]]:
    """Return the verdicts that occur, by their glyph."""
    present = {claim.basis.verdict for claim in claims}
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
    """Write how many claims are answered and confirmed, and when their rules were written."""
    claims = of_kind("empirical", chapters)
    papers = sum(bool(of_kind("empirical", [chapter])) for chapter in chapters)
    return [*standing.sentences(claims, papers), *declared(claims)]


def declared(claims: Iterable[Claim]) -> list[str]:
    """Write how many rules of explored claims were written or changed after seeing results."""
    explored = [claim for claim in claims if claim.kind == "empirical" and not claim.confirmed]
    seen = sum(bool(claim.declared and claim.declared.when == "after seeing") for claim in explored)
    if not seen:
        return []
    rule = "has a rule that was" if seen == 1 else "have rules that were"
    return [
        f"Of the {len(explored)} claims that are not confirmed, {seen} {rule} written or changed "
        "after some results had been seen."
    ]


@dataclass(frozen=True)
class ClaimPart:
    """A part of a claim: its verdict in words from the exploring runs, and from fresh seeds."""

    name: str
    explored: Part | None
    confirmed: Part | None


def claim_parts(claim: Claim) -> tuple[ClaimPart, ...]:
    """Return the parts of a claim, in the order of the exploring runs."""
    fresh = claim.confirmation.parts if claim.confirmation else {}
    return tuple(
        ClaimPart(name, claim.parts.get(name), fresh.get(name))
        for name in dict.fromkeys([*claim.parts, *fresh])
    )


def claim_groups(chapter: Chapter) -> list[tuple[str, list[Claim]]]:
    """Group the empirical claims that were run by their figure or table, if there are many.

    Parts of one figure or table, such as ``table3a`` and ``table3b``, are one group.
    """
    claims = [
        claim
        for claim in chapter.claims
        if claim.kind == "empirical" and claim.basis.grade != "not run"
    ]
    if len(claims) <= MOST_WITHOUT_GROUPS:
        return [("", claims)] if claims else []
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        match = re.match(r"(figure|table)(\d+)", claim.artefact)
        title = f"{match[1].capitalize()} {match[2]}" if match else "Other evidence"
        groups.setdefault(title, []).append(claim)
    return [*groups.items()]


def highlights(chapters: Sequence[Chapter]) -> list[tuple[Chapter, str, str]]:
    """Return the sentences for the first page, with their chapter and title."""
    return [
        (chapter, title, sentence)
        for chapter in chapters
        for title, sentence in chapter.published.highlights.items()
    ]
