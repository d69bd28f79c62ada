"""Verdicts on claims: their words, and the finding with which a claim's rule answers.

:mod:`.rules` decides a claim, :mod:`.grades` adds the grade of the runs behind it, and
:mod:`.claims` has the records that are stored and shown.  A claim is :func:`answered` if all its
parts are decided; a tie is a result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from fedsampling.base.text import listed
from fedsampling.evidence.statistics import LEVEL, Estimate

Verdict = Literal[
    "reproduced",
    "partly reproduced",
    "contradicted",
    "inconclusive",
    "depends on unstated choices",
    "not comparable",
    "supports",
    "partly supports",
    "opposes",
    "insufficient data",
    "not run",
]
Grade = Literal[
    "paper's size", "paper's size on unverified data", "transfer", "preliminary", "not run"
]
GRADES: tuple[Grade, ...] = get_args(Grade)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
DEPENDS: Verdict = "depends on unstated choices"
UNDECIDED: frozenset[Verdict] = frozenset({"inconclusive", "insufficient data", "not run"})
# Whether a part of a claim holds.  "tie": two samplers are equal where the claim orders them;
# "depends": decided under each of several settings that the paper leaves open, and differently.
Part = Literal["holds", "fails", "tie", "depends", "open"]
# How a true value lies to a number of runs that were cut off before their target.
Bound = Literal["", ">", "<"]


@dataclass(frozen=True)
class Interval:
    """An estimate of ours next to the paper's statement, as the report draws it.

    The unit is ``"times"`` for a ratio. The claim's rule accepts values from `least` to `most`;
    None means no bound. `level` is above 0.95 if several comparisons are corrected together.
    `effect` is what the paper prints for a number that is not its own, such as the lead of its
    fastest sampler; forecasts of the number of seeds use it, and no figure shows it. `part`: the
    part of the claim that it decides, if the rule says so. `look_level`: level of a single look, if
    the interval allows for several. `bound`: whether the true value is above (``>``) or below the
    number, because some runs were cut off before their target; empty if it is an estimate.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    least: float | None = None
    most: float | None = None
    paper: float | None = None
    seeds: int = 0
    level: float = LEVEL
    effect: float | None = None
    part: str = ""
    look_level: float | None = None
    bound: Bound = ""


def intervals(
    estimates: Mapping[str, Estimate],
    unit: str,
    *,
    least: float | None = None,
    most: float | None = None,
    paper: float | None = None,
    within: float | None = None,
    effects: Mapping[str, float] | None = None,
    part: str = "",
    bounds: Mapping[str, Bound] | None = None,
) -> tuple[Interval, ...]:
    """Convert estimates to intervals next to a statement of the paper; drop those without one.

    `within` sets both bounds at this distance from the paper's number; `effects` and
    `bounds` are those of single estimates; `part` is the part of the claim that they decide.
    """
    if paper is not None and within is not None:
        least, most = paper - within, paper + within
    effects, bounds = effects or {}, bounds or {}
    return tuple(
        Interval(
            name,
            unit,
            *ours,
            least,
            most,
            paper,
            seeds=estimate.n,
            level=estimate.level,
            effect=effects.get(name),
            part=part,
            look_level=estimate.look_level,
            bound=bounds.get(name, ""),
        )
        for name, estimate in estimates.items()
        if np.isfinite(ours := (estimate.value, estimate.low, estimate.high)).all()
    )


@dataclass(frozen=True)
class Reading:
    """A claim's verdict under one setting that the paper leaves open."""

    setting: str  # the choice and its value, as text
    verdict: Verdict  # one of :data:`VERDICTS`
    ours: str  # our value with its interval
    drawn: tuple[Interval, ...] = ()  # the numbers of `ours` that have an interval
    parts: Mapping[str, Part] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The outcome of a claim's rule."""

    verdict: Verdict  # one of :data:`VERDICTS`
    ours: str  # our value with its interval, as the claims table shows it
    reason: str  # one sentence with the reason
    drawn: tuple[Interval, ...] = ()  # the numbers of `ours` that have an interval
    # the verdict under each tried setting that the paper does not give
    readings: tuple[Reading, ...] = ()
    caveat: str = ""  # one sentence that a reader must know to use the verdict; empty if none
    grade: Grade = "paper's size"  # one of :data:`GRADES`; :func:`.grades.graded` sets it
    parts: Mapping[str, Part] = field(default_factory=dict)  # whether each part of the claim holds


def answered(outcome: Verdict, parts: Mapping[str, Part]) -> bool:
    """Whether a claim is answered: it has a verdict, and all its parts are decided."""
    return outcome not in UNDECIDED | {"not comparable"} and "open" not in parts.values()


def disagreement(readings: Sequence[Reading]) -> str:
    """Write how often each verdict occurs under settings that the paper does not give."""
    verdicts = [reading.verdict for reading in readings]
    counts = [f"{verdicts.count(word)} {word}" for word in VERDICTS if word in verdicts]
    return f"Verdicts under {len(verdicts)} settings that the paper leaves open: {listed(counts)}."
