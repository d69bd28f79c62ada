"""The first screen of the report: a summary, a tally and a map with one cell for each claim.

Everything is generated from the verdicts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from fedsampling.evidence.statistics import listed, show_interval
from fedsampling.evidence.verdicts import (
    DEPENDS,
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
# Verdicts with a clear answer: predicates of one claim and of several.
CLEAR: Mapping[str, tuple[str, str]] = {
    "reproduced": ("holds", "hold"),
    "partly reproduced": ("holds in part", "hold in part"),
    "contradicted": ("is contradicted", "are contradicted"),
    "supports": ("is supported", "are supported"),
    "partly supports": ("is supported in part", "are supported in part"),
    "opposes": ("is opposed", "are opposed"),
}
Column = Grade | Literal["text against tables", "code checks"]
COLUMNS: tuple[Column, ...] = (*GRADES, "text against tables", "code checks")
UNCLEAR: Mapping[str, tuple[str, str]] = {
    DEPENDS: ("depends on unstated choices", "depend on unstated choices"),
    "not comparable": ("is not comparable", "are not comparable"),
    "unclear": ("is undecided", "are undecided"),
}
ANSWERS: Mapping[Part, str] = {"holds": "Holds", "fails": "Fails", "open": "Undecided"}


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


def text_checks(chapters: Iterable[Chapter]) -> list[Claim]:
    """Return the sentences of the papers that their own numbers decide."""
    kind = "text against tables"
    return [claim for chapter in chapters for claim in chapter.claims if claim.kind == kind]


def code_checks(chapters: Iterable[Chapter]) -> list[Claim]:
    """Return the claims that are mathematically true and test our code."""
    return [claim for chapter in chapters for claim in chapter.claims if claim.kind == "code check"]


def evidence_map(chapters: Sequence[Chapter]) -> tuple[MapRow, ...]:
    """Arrange all claims by paper and grade; the other kinds have a column each."""
    return tuple(
        MapRow(
            chapter,
            {
                **{
                    grade: tuple(claim for claim in empirical([chapter]) if claim.grade == grade)
                    for grade in GRADES
                },
                "text against tables": tuple(text_checks([chapter])),
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
                str(tally.count) if grade == "not run" else f"{tally.count} {tally.verdict}"
                for tally in counts
                if tally.grade == grade
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
    claims = empirical(chapters)
    if not claims:
        return []
    tested = [claim for claim in claims if claim.grade != "not run"]
    full = [claim for claim in tested if claim.grade == "paper's size"]
    number = "all" if len(tested) == len(claims) else len(tested)
    sentences = [f"{_papers_and_claims(chapters)}; we tested {number}."]
    if full:
        verdicts = _count_verdicts(full, required=("contradicted",))
        sentences.append(f"At the paper's size on verified data ({len(full)}), {verdicts}.")
    if some := _contradicted_under_some(tested):
        sentences.append(some)
    if weaker := len(tested) - len(full):
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


def _contradicted_under_some(tested: Sequence[Claim]) -> str:
    """Count the claims that are contradicted under some values of unstated choices, not all."""
    against = {"contradicted", "opposes"}
    some = [
        claim
        for claim in tested
        if claim.verdict == DEPENDS and against & {reading.verdict for reading in claim.readings}
    ]
    if not some:
        return ""
    verb = "is" if len(some) == 1 else "are"
    return (
        f"{len(some)} of the claims that depend on unstated choices {verb} contradicted under some "
        "of them."
    )


def main_outcomes(chapters: Sequence[Chapter]) -> tuple[Outcome, ...]:
    """Return the claims that hold and those that do not.

    If no claim at full size has the verdict, preliminary evidence takes its place.
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
    known = {*CLEAR, *UNCLEAR}
    counts = Counter(claim.verdict if claim.verdict in known else "unclear" for claim in claims)
    predicates = {**CLEAR, **UNCLEAR}
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
