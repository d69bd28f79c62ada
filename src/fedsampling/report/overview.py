"""The first screen of the report: a summary, a tally and a map with one cell for each claim.

Everything is generated from the verdicts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedsampling.evidence.numbers import listed
from fedsampling.evidence.verdicts import GRADES, VERDICTS, Claim, Grade, Verdict
from fedsampling.report.content import Chapter

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
# Verdicts with a clear answer: predicates of one claim and of several.
CLEAR: Mapping[str, tuple[str, str]] = {
    "reproduced": ("holds", "hold"),
    "partly reproduced": ("holds in part", "hold in part"),
    "contradicted": ("is contradicted", "are contradicted"),
    "supports": ("is supported", "are supported"),
    "partly supports": ("is supported in part", "are supported in part"),
    "opposes": ("is opposed", "are opposed"),
}
Column = Grade | Literal["code checks"]
COLUMNS: tuple[Column, ...] = (*GRADES, "code checks")


@dataclass(frozen=True)
class Tally:
    """The number of claims with one grade and one verdict."""

    grade: Grade
    verdict: Verdict
    count: int


@dataclass(frozen=True)
class Outcome:
    """An outcome on the first screen: its title, a sentence, and the claims with their chapters."""

    title: str
    text: str
    claims: tuple[tuple[Chapter, Claim], ...] = ()


@dataclass(frozen=True)
class MapRow:
    """A row of the evidence map: a paper's claims by column."""

    chapter: Chapter
    cells: Mapping[Column, tuple[Claim, ...]]

    @property
    def used_columns(self) -> tuple[Column, ...]:
        """The columns in which the paper has claims."""
        return tuple(column for column, claims in self.cells.items() if claims)


def tallies(claims: Iterable[Claim]) -> tuple[Tally, ...]:
    """Count claims by grade and verdict, in the order of grades and verdicts."""
    counts = Counter((claim.grade, claim.verdict) for claim in claims)
    return tuple(
        Tally(grade, word, counts[grade, word])
        for grade in GRADES
        for word in VERDICTS
        if counts[grade, word]
    )


def empirical(chapters: Iterable[Chapter]) -> list[Claim]:
    """Return the claims that runs could contradict."""
    return [claim for chapter in chapters for claim in chapter.claims if claim.kind == "empirical"]


def code_checks(chapters: Iterable[Chapter]) -> list[Claim]:
    """Return the claims that are mathematically true and test our code."""
    return [claim for chapter in chapters for claim in chapter.claims if claim.kind == "code check"]


def evidence_map(chapters: Sequence[Chapter]) -> tuple[MapRow, ...]:
    """Arrange all claims by paper and grade; code checks have their own column."""
    return tuple(
        MapRow(
            chapter,
            {
                **{
                    grade: tuple(claim for claim in empirical([chapter]) if claim.grade == grade)
                    for grade in GRADES
                },
                "code checks": tuple(code_checks([chapter])),
            },
        )
        for chapter in chapters
        if chapter.claims
    )


def legend(claims: Iterable[Claim]) -> dict[str, list[Verdict]]:
    """Return the verdicts that occur, by their glyph."""
    present = {claim.verdict for claim in claims}
    words: dict[str, list[Verdict]] = {}
    for verdict, glyph in GLYPHS.items():
        if verdict in present:
            words.setdefault(glyph, []).append(verdict)
    return words


def readme_table(papers: Mapping[str, Sequence[Claim]]) -> str:
    """Tabulate verdicts by paper and grade in Markdown, for the README.

    Parameters
    ----------
    papers : mapping of str to sequence of Claim
        Claims by key of the paper.  Papers without claims are left out.
    """
    heads = ("paper", *GRADES, "code checks")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for key, claims in papers.items():
        if not claims:
            continue
        counts = tallies(claim for claim in claims if claim.kind == "empirical")
        checks = [claim for claim in claims if claim.kind == "code check"]
        cells = [
            ", ".join(
                str(tally.count) if grade == "not run" else f"{tally.count} {tally.verdict}"
                for tally in counts
                if tally.grade == grade
            )
            for grade in GRADES
        ]
        passed = sum(claim.verdict == "reproduced" for claim in checks)
        cells.append(f"{passed} of {len(checks)} pass" if checks else "")
        lines.append(f"| [{key}](papers/{key}/paper.yaml) | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(chapters: Sequence[Chapter]) -> list[str]:
    """Write up to three sentences: claims tested, verdicts at full size, preliminary results.

    Returns
    -------
    list of str
        Grades without claims have no sentence; empty if there are no claims.
    """
    claims = empirical(chapters)
    if not claims:
        return []
    by_grade = {grade: [claim for claim in claims if claim.grade == grade] for grade in GRADES}
    transfer, smaller = by_grade["transfer"], by_grade["preliminary"]
    full = [*by_grade["paper's size"], *transfer]
    tested = len(claims) - len(by_grade["not run"])
    sentences = [f"{_papers_and_claims(chapters)}; we tested {tested}."]
    if full:
        elsewhere = f" ({len(transfer)} on other data)" if transfer else ""
        verdicts = _count_verdicts(full, required=("contradicted",))
        sentences.append(f"Of the {len(full)} tested at the paper's size{elsewhere}, {verdicts}.")
    if smaller:
        sentences.append(
            f"Of the {len(smaller)} tested in smaller runs, {_count_verdicts(smaller)}."
        )
    return sentences


def main_outcomes(chapters: Sequence[Chapter]) -> tuple[Outcome, ...]:
    """Return the claims that hold and those that do not.

    If no claim at full size has the verdict, preliminary evidence takes its place.

    Returns
    -------
    tuple of Outcome
        Empty without claims.
    """
    if not empirical(chapters):
        return ()
    outcomes = []
    for title, verdict, preliminary, side in (
        ("Holds", "reproduced", "supports", "for"),
        ("Does not hold", "contradicted", "opposes", "against"),
    ):
        claims, text = _with_verdict(chapters, verdict), ""
        if not claims:
            claims = _with_verdict(chapters, preliminary)
            text = "No claim at the paper's size."
            text += f" Smaller runs give evidence {side}:" if claims else ""
        outcomes.append(Outcome(title, text, claims))
    return tuple(outcomes)


def _with_verdict(chapters: Sequence[Chapter], verdict: str) -> tuple[tuple[Chapter, Claim], ...]:
    return tuple(
        (chapter, claim)
        for chapter in chapters
        for claim in empirical([chapter])
        if claim.verdict == verdict
    )


def _papers_and_claims(chapters: Sequence[Chapter]) -> str:
    papers = sum(any(claim.kind == "empirical" for claim in chapter.claims) for chapter in chapters)
    return (
        f"{_in_words(papers).capitalize()} paper{'s'[: papers != 1]} make{'s'[: papers == 1]} "
        f"{len(empirical(chapters))} empirical claims about client sampling"
    )


def _count_verdicts(claims: Iterable[Claim], required: Collection[str] = ()) -> str:
    """Count the verdicts in words; those in `required` even if there are none."""
    counts = Counter(claim.verdict if claim.verdict in CLEAR else "unclear" for claim in claims)
    predicates = {**CLEAR, "unclear": ("has no clear answer", "have no clear answer")}
    return listed(
        [
            f"{counts[word] or 'none'} {predicate[counts[word] > 1]}"
            for word, predicate in predicates.items()
            if counts[word] or word in required
        ]
    )


def _in_words(count: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if count < len(words) else str(count)
