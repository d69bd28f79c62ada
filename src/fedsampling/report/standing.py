"""Answered and confirmed claims, counted in sentences that report, README and CLI share."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fedsampling.base.text import plural
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import DEPENDS, Part, Verdict


class Outcome(NamedTuple):
    """The verdicts of an outcome, and its verb for one claim and for several."""

    verdicts: frozenset[Verdict]
    one: str
    several: str


# By key, in the order in which the sentence counts them.
OUTCOMES: Mapping[str, Outcome] = {
    "reproduced": Outcome(frozenset({"reproduced", "supports"}), "reproduces", "reproduce"),
    "partly": Outcome(frozenset({"partly reproduced", "partly supports"}), "in part", "in part"),
    "contradicted": Outcome(
        frozenset({"contradicted", "opposes"}), "is contradicted", "are contradicted"
    ),
    "depends": Outcome(
        frozenset({DEPENDS}),
        "hinges on settings the papers leave out",
        "hinge on settings the papers leave out",
    ),
}
OPEN = "open"  # key of the claims that are not answered
# Names of the outcomes, in the order of the first page.
TITLES: Mapping[str, str] = {
    **{key: each.several.removeprefix("are ") for key, each in OUTCOMES.items()},
    OPEN: "undecided",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Segment:
    """The claims of one outcome: how many, how many of them are confirmed, and their name."""

    key: str
    count: int
    confirmed: int
    label: str


def outcome(claim: Claim) -> str:
    """Return the key of a claim's outcome: of :data:`OUTCOMES`, or :data:`OPEN`."""
    if not claim.answered:
        return OPEN
    verdict = claim.basis.verdict
    return next(key for key, each in OUTCOMES.items() if verdict in each.verdicts)


def segments(claims: Iterable[Claim]) -> tuple[Segment, ...]:
    """Count empirical claims by outcome, those that are open last; empty without claims."""
    empirical = [claim for claim in claims if claim.kind == "empirical"]
    counts = Counter(map(outcome, empirical))
    confirmed = Counter(outcome(claim) for claim in empirical if claim.confirmed)
    return tuple(
        Segment(key, counts[key], confirmed[key], label)
        for key, label in TITLES.items()
        if counts[key]
    )


def sentences(claims: Collection[Claim], papers: int) -> list[str]:
    """Write how many claims, and how many of their parts, are answered and confirmed."""
    empirical = [claim for claim in claims if claim.kind == "empirical"]
    if not empirical:
        return []
    counts = Counter(map(outcome, empirical))
    smaller = Counter(outcome(claim) for claim in empirical if claim.basis.grade == "preliminary")
    answered = len(empirical) - counts[OPEN]
    confirmed = sum(claim.confirmed for claim in empirical)
    number = NUMBERS[papers] if papers < len(NUMBERS) else str(papers)
    total = plural(len(empirical), "experimental claim")
    first = (
        f"Of {total} in {number} paper{'s' if papers != 1 else ''}, {answered} "
        f"{'is' if answered == 1 else 'are'} answered"
    )
    verbs = [
        f"{counts[key]} {each.one if counts[key] == 1 else each.several}"
        + (f" ({smaller[key]} in smaller runs)" if smaller[key] else "")
        for key, each in OUTCOMES.items()
        if counts[key]
    ]
    if verbs:
        first += f": {', '.join(verbs)}"
    parts = [part for claim in empirical for part in _parts(claim)]
    decided = sum(part != OPEN for part in parts)
    weaker = sum(claim.answered and claim.basis.grade != "paper's size" for claim in empirical)
    return [
        f"{first}; {counts[OPEN]} we cannot decide. {confirmed or 'None'} of the {answered} "
        f"{'is' if confirmed == 1 else 'are'} confirmed by rules fixed before the runs.",
        f"A claim is answered if all its parts are decided: of {plural(len(parts), 'part')}, "
        f"{decided} are.",
        *(
            [
                f"{weaker} of the {answered} answers rest on smaller runs, unverified data or "
                "other data."
            ]
            if weaker
            else []
        ),
    ]


def _parts(claim: Claim) -> list[Part]:
    """Return the parts of the verdict that counts; a claim without parts is one part."""
    return [*claim.basis.parts.values()] or ["holds" if claim.answered else "open"]
