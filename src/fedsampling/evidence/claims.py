"""Claims with their verdicts, as ``claims/<paper>.json`` stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fedsampling.evidence.verdicts import (
    Grade,
    Interval,
    Part,
    Reading,
    Verdict,
    answered,
)


@dataclass(frozen=True)
class Declaration:
    """When a claim's rule was written."""

    # relative to the results that the rule judges, or an earlier version of them
    when: Literal["before", "after seeing"]
    date: str  # ISO 8601
    why: str  # reason for writing or changing the rule


@dataclass(frozen=True)
class Price:
    """What confirming a claim takes: the next look at it, or the reason why there is none."""

    seeds: int | None = None  # fresh seeds that the look has, with those of earlier looks
    look: int = 0  # number of the look, from 1
    looks: int = 0  # number of looks in the plan
    hours: float | None = None  # core-hours of its missing runs; None if no such run was timed
    command: str = ""  # computes these runs
    unreachable: str = ""  # why no further look can decide the claim; the rest is then unset


@dataclass(frozen=True)
class Confirmation:
    """A claim judged on fresh seeds by a rule that was registered before them.

    Fields without a comment are those of :class:`Claim`.
    """

    verdict: Verdict
    ours: str
    reason: str
    parts: Mapping[str, Part]
    drawn: tuple[Interval, ...]
    readings: tuple[Reading, ...]
    grade: Grade
    draws: str  # what a fresh seed draws, as text
    seeds: int  # of the last look that is finished; further seeds do not count
    look: int  # number of this look, from 1
    looks: tuple[int, ...]  # number of seeds of each look in the plan
    hours: float  # core-hours of the seeds
    registered: str  # time of the registration, ISO 8601
    commit: str  # of the registration
    first_run: str  # when the first of the runs started, ISO 8601
    caveat: str = ""

    @property
    def answered(self) -> bool:
        """Whether all parts are decided."""
        return answered(self.verdict, self.parts)


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict, as ``claims/<paper>.json`` stores it."""

    id: str
    statement: str
    artefact: str
    reported: str  # the paper's value, as text
    ours: str  # our value with its interval, as text
    margin: str  # with its unit
    verdict: Verdict  # one of :data:`.verdicts.VERDICTS`
    reason: str  # one sentence with the reason for the verdict
    rule: str
    grade: Grade = "paper's size"  # one of :data:`.verdicts.GRADES`
    # "text against tables" compares a sentence of the paper with the paper's own numbers.  Code
    # checks are mathematically true; they test the code.  Each kind is counted separately.
    kind: Literal["empirical", "text against tables", "code check"] = "empirical"
    declared: Declaration | None = None  # None if the paper's file does not say it
    # smallest scale of its runs, a key of :data:`~.provenance.SCALES`; empty without runs
    scale: str = ""
    seeds: int = 0  # fewest seeds of the numbers shown; 0 without runs
    most_seeds: int = 0  # most seeds of the numbers shown
    covers: str = ""  # covered part of the paper's experiments; empty if all
    settles: str = ""  # runs still missing for the paper's size, with their command; may be empty
    # number of seeds that would decide an open claim, from fresh seeds if there are any; empty if
    # decided
    power: str = ""
    drawn: tuple[Interval, ...] = ()  # the numbers of `ours`; empty if the runs are not evidence
    # the verdict under each tried setting that the paper does not give
    readings: tuple[Reading, ...] = ()
    caveat: str = ""  # what a reader must know to use the verdict; may be empty
    parts: Mapping[str, Part] = field(default_factory=dict)  # whether each part of the claim holds
    topic: str = ""  # the subject in a few words
    confirmation: Confirmation | None = None  # None if no fresh seeds count
    unconfirmed: str = ""  # why `confirmation` is None
    # what confirming an empirical claim takes; None if it is confirmed, if its numbers are exact,
    # or for the reason in `unconfirmed`
    price: Price | None = None

    @property
    def answered(self) -> bool:
        """Whether all parts are decided, by confirming or else by exploring runs."""
        return self.confirmed or answered(self.verdict, self.parts)

    @property
    def basis(self) -> "Claim | Confirmation":
        """What the verdict that counts rests on: fresh seeds if they answer the claim.

        Otherwise the claim itself, whose fields are those of the runs that explored it.
        """
        if self.confirmation is not None and self.confirmation.answered:
            return self.confirmation
        return self

    @property
    def confirmed(self) -> bool:
        """Whether fresh seeds answer the claim, by a rule that was registered before them."""
        return self.basis is not self

    @property
    def passes(self) -> bool:
        """Whether it holds; for code checks and texts, whose runs may be smaller."""
        return self.verdict in ("reproduced", "supports")
