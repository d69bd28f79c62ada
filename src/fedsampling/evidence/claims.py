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
    """What confirming a claim takes: the next look at it, or the reason why there is none.

    `seeds`: fresh seeds of the look, `look` of `looks`, in all. `hours`: core-hours of its missing
    runs; None if no such run was timed. `command`: computes them. `unreachable`: why no further
    look can decide the claim; the rest is then unset.
    """

    seeds: int | None = None
    look: int = 0
    looks: int = 0
    hours: float | None = None
    command: str = ""
    unreachable: str = ""


@dataclass(frozen=True)
class Confirmation:
    """A claim judged on fresh seeds by a rule that was registered before them.

    `draws`: what a fresh seed draws, as text. `seeds`: those of the last look that is finished, the
    `look`-th of `looks`; further seeds do not count. `hours`: core-hours of these seeds.
    `registered`, `commit`: time and commit of the registration; `first_run`: when the first of the
    runs started. Other fields as in :class:`Claim`.
    """

    verdict: Verdict
    ours: str
    reason: str
    parts: Mapping[str, Part]
    drawn: tuple[Interval, ...]
    readings: tuple[Reading, ...]
    grade: Grade
    draws: str
    seeds: int
    look: int
    looks: tuple[int, ...]
    hours: float
    registered: str
    commit: str
    first_run: str
    caveat: str = ""

    @property
    def answered(self) -> bool:
        """Whether all parts are decided."""
        return answered(self.verdict, self.parts)


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict, as ``claims/<paper>.json`` stores it.

    `reported`, `ours`: the paper's value and ours, as text. `margin`: with its unit. `verdict`: one
    of :data:`.verdicts.VERDICTS`. `grade`: one of :data:`.verdicts.GRADES`. `kind`: the second
    compares a sentence of the paper with the paper's own numbers.  Code checks are mathematically
    true; they test the code.  Both are counted separately. `declared`: when the rule was written;
    None if the paper's file does not give it. `scale`: smallest scale of its runs, a key of
    :data:`~.provenance.SCALES`; empty without runs. `seeds`, `most_seeds`: fewest and most seeds of
    the numbers shown; 0 without runs. `covers`: covered part of the paper's experiments; empty if
    all. `settles`: runs still missing for the paper's size, with their command; empty if
    complete. `power`: number of seeds that would decide an open claim, from fresh seeds if there
    are any; empty if decided. `drawn`: empty if the runs are not evidence. `readings`: the verdict
    under each tried setting that the paper does not give. `caveat`: one sentence that a reader must
    know to use the verdict. `parts`: whether each part of the claim holds. `topic`: the subject of
    the claim in a few words. `confirmation`: the claim judged on fresh seeds; None if there are
    none yet, or if they do not count. `unconfirmed`: why there is none. `price`: what confirming an
    empirical claim takes; None if it is confirmed, if its numbers are exact, or for the reason in
    `unconfirmed`.
    """

    id: str
    statement: str
    artefact: str
    reported: str
    ours: str
    margin: str
    verdict: Verdict
    reason: str
    rule: str
    grade: Grade = "paper's size"
    kind: Literal["empirical", "text against tables", "code check"] = "empirical"
    declared: Declaration | None = None
    scale: str = ""
    seeds: int = 0
    most_seeds: int = 0
    covers: str = ""
    settles: str = ""
    power: str = ""
    drawn: tuple[Interval, ...] = ()
    readings: tuple[Reading, ...] = ()
    caveat: str = ""
    parts: Mapping[str, Part] = field(default_factory=dict)
    topic: str = ""
    confirmation: Confirmation | None = None
    unconfirmed: str = ""
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
