"""Verdicts on claims.

The *verdict* follows from the claim's rule; :func:`graded` adds the *grade* of the runs behind it.

Most claims have one of these shapes, each a function that returns a :class:`Finding`:

- :func:`ordering`: every comparison of two samplers lies above a bound;
- :func:`equivalence`: two samplers are equal up to a margin;
- :func:`by_chance`: deviations from closed forms are no larger than chance allows.

Other claims have parts of their own, for example one for each dataset: :func:`above`,
:func:`faster`, :func:`close`, :func:`in_range` and :func:`stated` decide whether a part holds, and
:func:`verdict` combines the parts.  :func:`over_choices` combines the findings under settings that
the paper leaves open.  A claim is :func:`answered` if all its parts are decided; a tie is a result.

One standard holds for all of them.  A claimed order ("outperforms", "lower", "faster") holds if the
interval of each difference excludes zero on the claimed side; "no worse" holds up to a margin.
Intervals that decide a claim together are Holm-corrected, unless its rule says that all of them
must lie on the claimed side (intersection–union test).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.text import listed
from fedsampling.evidence.provenance import RunEvidence, has_unverified_data
from fedsampling.evidence.statistics import (
    LEVEL,
    Contrast,
    Estimate,
    bound,
    compare,
    is_outside,
    is_within,
    never_varies_beyond,
    ratio,
    show_estimates,
)

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
TIE = 0.15  # two samplers are equal if the ratio of their costs is within 1 ± TIE


@dataclass(frozen=True)
class Interval:
    """An estimate of ours next to the paper's statement, as the report draws it.

    The unit is ``"times"`` for a ratio. The claim's rule accepts values from `least` to `most`;
    None means no bound. `level` is above 0.95 if several comparisons are corrected together.
    `effect` is what the paper prints for a number that is not its own, such as the lead of its
    fastest sampler; forecasts of the number of seeds use it, and no figure shows it.
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


def intervals(
    estimates: Mapping[str, Estimate],
    unit: str,
    *,
    least: float | None = None,
    most: float | None = None,
    paper: float | None = None,
    within: float | None = None,
    effects: Mapping[str, float] | None = None,
) -> tuple[Interval, ...]:
    """Convert estimates to intervals next to a statement of the paper; drop those without one.

    `within` sets both bounds at this distance from the paper's number; `effects` are those of
    single estimates.
    """
    if paper is not None and within is not None:
        least, most = paper - within, paper + within
    effects = effects or {}
    return tuple(
        Interval(
            name, unit, *ours, least, most, paper, estimate.n, estimate.level, effects.get(name)
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
    grade: Grade = "paper's size"  # one of :data:`GRADES`; :func:`graded` sets it
    parts: Mapping[str, Part] = field(default_factory=dict)  # whether each part of the claim holds


JOINT = " (Holm-corrected)"  # after the unit of intervals that decide a claim together
Pair = tuple[ArrayLike, ArrayLike]  # numbers of two samplers, one per seed


def above(estimate: Estimate, bound: float) -> Part:
    """Judge whether a value lies above a bound: ``open`` if its interval contains the bound."""
    if estimate.low > bound:
        return "holds"
    return "fails" if estimate.high < bound else "open"


def faster(lead: Estimate, narrow: Estimate) -> Part:
    """Judge whether a sampler is faster than another: its lead, a ratio of costs, is above 1.

    `lead`: with the interval that decides the order. `narrow`: the same ratio with a 90 % interval;
    the samplers tie if it lies inside 1 ± :data:`TIE` (two one-sided tests at 5 %).
    """
    order = above(lead, 1)
    return "tie" if order == "open" and is_within(narrow, 1, TIE) else order


def close(estimate: Estimate, narrow: Estimate, reference: float, margin: float) -> Part:
    """Judge whether a value equals the reference up to the margin.

    `estimate`: with a 95 % interval: the part fails if it lies outside ``reference ± margin``.
    `narrow`: with a 90 % interval: the part holds if it lies inside (two one-sided tests at 5 %).

    References: Schuirmann 1987; see :mod:`fedsampling.evidence.statistics`.
    """
    if is_within(narrow, reference, margin):
        return "holds"
    return "fails" if is_outside(estimate, reference, margin) else "open"


def in_range(estimate: Estimate, least: float, most: float, is_bound: bool = False) -> Part:
    """Judge whether a value lies in the accepted range: ``open`` if its interval leaves the range.

    `is_bound`: the value is a lower bound, because runs were cut off; it can only exceed the range.
    """
    if estimate.low > most or (estimate.high < least and not is_bound):
        return "fails"
    return "holds" if least <= estimate.low and estimate.high <= most and not is_bound else "open"


def stated(holds: bool | None) -> Part:
    """Convert a statement without an interval; None means undecided."""
    return "open" if holds is None else "holds" if holds else "fails"


def verdict(
    parts: Mapping[str, Part],
    ours: str,
    why: Mapping[Verdict, str] | None = None,
    contrary_decides: bool = True,
    partly: bool = True,
    drawn: tuple[Interval, ...] = (),
) -> Finding:
    """Combine a claim's parts, by their names in a sentence, into a finding.

    It is ``reproduced`` if every part holds. If some fail, it is ``partly reproduced``, or
    contradicted by one failing part with `contrary_decides`; without `partly`, it is open until all
    parts hold. A tie does not hold, but is not the contrary. `why` has sentences for some verdicts;
    by default the parts that hold are listed.
    """
    if not parts:
        return Finding("not run", ours, "There is nothing to compare.")
    by_state = {state: [n for n, part in parts.items() if part == state] for state in PARTS}
    holding, failing = by_state["holds"], by_state["fails"]
    is_decided = not by_state["open"]
    if len(holding) == len(parts):
        outcome: Verdict = "reproduced"
    elif failing and (contrary_decides or not (holding or by_state["depends"])):
        outcome = "contradicted"
    elif by_state["depends"] and is_decided:
        outcome = DEPENDS
    elif holding and partly:
        outcome = "partly reproduced"
    elif by_state["tie"] and is_decided:
        outcome = "contradicted"
    else:
        outcome = "inconclusive"
    held = "; ".join(PARTS[state].format(listed(n)) for state, n in by_state.items() if n)
    reason = (why or {}).get(outcome, f"{held[:1].upper()}{held[1:]}.")
    return Finding(outcome, ours, reason, drawn, parts=dict(parts))


def ordering(
    gaps: Mapping[str, Estimate],
    bound: float,
    quantity: str,
    why: Mapping[Verdict, str] | None = None,
    contrary_decides: bool = True,
    partly: bool = True,
) -> Finding:
    """Judge a claimed order: every difference, or every ratio, must lie above `bound`.

    `gaps` are first minus second sampler of each pair, or first over second, with joint intervals
    (:func:`~.statistics.holm`). Other arguments are passed to :func:`verdict`.
    """
    return verdict(
        {name: above(gap, bound) for name, gap in gaps.items()},
        f"{quantity}: {show_estimates(gaps)}",
        why,
        contrary_decides,
        partly,
        drawn=intervals(gaps, f"{quantity}{JOINT}", least=bound),
    )


EQUIVALENCE: Mapping[Verdict, str] = {
    "reproduced": "Every interval lies within the margin.",
    "partly reproduced": "Some intervals lie within the margin, not all.",
    "contradicted": "An interval lies outside of the margin.",
    "inconclusive": "An interval crosses the margin.",
}


def equivalence(
    pairs: Mapping[str, Pair],
    margin: float,
    quantity: str,
    contrast: Contrast = ratio,
    level: float = LEVEL,
    why: Mapping[Verdict, str] = EQUIVALENCE,
    contrary_decides: bool = True,
    partly: bool = False,
) -> Finding:
    """Judge whether two samplers are equal up to a margin, in every pair.

    `pairs` has the numbers of both per seed; the margin is on the scale of `contrast`. A pair holds
    and fails as in :func:`close`. For k pairs, intervals that fail have the level 1 − 5 %/k
    (Bonferroni). Tests that hold are not corrected, because a claim needs all of them. All
    intervals have one method, the one for the fewest seeds. A pair whose seeds all have the same
    contrast has no interval, and holds by :func:`~.statistics.never_varies_beyond`.
    """
    fewest = min((np.size(first) for first, _ in pairs.values()), default=None)
    wide, narrow = 1 - (1 - LEVEL) / max(len(pairs), 1), 1 - 2 * (1 - LEVEL)
    parts: dict[str, Part] = {
        name: "holds"
        if never_varies_beyond(*pair, contrast, margin)
        else close(
            compare(*pair, contrast, wide, fewest),
            compare(*pair, contrast, narrow, fewest),
            contrast.equal,
            margin,
        )
        for name, pair in pairs.items()
    }
    estimates = {name: compare(*pair, contrast, level, fewest) for name, pair in pairs.items()}
    return verdict(
        parts,
        f"{quantity}: {show_estimates(estimates)}",
        why,
        contrary_decides,
        partly,
        drawn=intervals(estimates, quantity, paper=contrast.equal, within=margin),
    )


PARTS: Mapping[Part, str] = {
    "holds": "it holds for {}",
    "fails": "the opposite holds for {}",
    "tie": "no difference for {}",
    "depends": "it depends on unstated choices for {}",
    "open": "undecided for {}",
}


def by_chance(largest: float, count: int, noun: str, error: float) -> Finding:
    """Judge a code check: deviations from a closed form are no larger than chance allows.

    `largest` is the largest |z|, and `error` the probability that any of them exceeds the limit by
    chance (:func:`~.statistics.bound`).
    """
    limit = bound(error, count)
    holds = largest < limit  # NaN fails
    return Finding(
        "reproduced" if holds else "contradicted",
        f"max |z| = {largest:.2f} of {count:,} {noun} (limit {limit:.2f})",
        f"{'Every' if holds else 'Not every'} |z| is below the limit; the probability that any "
        f"exceeds it by chance is at most {100 * error:g} %.",
    )


def over_choices(readings: Mapping[str, Finding], main: str) -> Finding:
    """Judge a claim over all tried values of settings that the paper does not give.

    If every value gives the same verdict, it is the claim's. The claim ``depends on unstated
    choices`` if two decided readings disagree, in their verdicts or in one of their parts; if only
    undecided readings differ, it is inconclusive. The numbers shown are those of the reading
    `main`.
    """
    table = tuple(
        Reading(name, row.verdict, row.ours, row.drawn, row.parts) for name, row in readings.items()
    )
    parts = _over_readings(table)
    finding = replace(readings[main], readings=table, parts=parts)
    outcomes = {row.verdict for row in table}
    if len(outcomes) == 1 and "depends" not in parts.values():
        return finding
    if "depends" in parts.values() and len(outcomes) == 1:  # the verdicts do not tell
        differing = listed([name for name, part in parts.items() if part == "depends"])
        reason = f"Under {len(table)} settings that the paper leaves open, the answer differs for "
        return replace(finding, verdict=DEPENDS, reason=f"{reason}{differing}.")
    if "depends" in parts.values() or (not parts and len(outcomes - UNDECIDED) > 1):
        return replace(finding, verdict=DEPENDS, reason=disagreement(table))
    if parts:
        combined = verdict(parts, finding.ours, contrary_decides=False, drawn=finding.drawn)
        return replace(combined, readings=table)
    return replace(finding, verdict="inconclusive", reason=disagreement(table))


def _over_readings(readings: Sequence[Reading]) -> dict[str, Part]:
    """Combine the readings' parts; none unless all comparable readings have the same parts."""
    comparable = [reading for reading in readings if reading.verdict != "not comparable"]
    if len({tuple(reading.parts) for reading in comparable}) != 1:
        return {}
    combined: dict[str, Part] = {}
    for name in comparable[0].parts:
        outcomes = {reading.parts[name] for reading in comparable}
        decided = outcomes - {"open"}
        combined[name] = (
            "depends" if len(decided) > 1 else "open" if "open" in outcomes else decided.pop()
        )
    return combined


def answered(outcome: Verdict, parts: Mapping[str, Part]) -> bool:
    """Whether a claim is answered: it has a verdict, and all its parts are decided."""
    return outcome not in UNDECIDED | {"not comparable"} and "open" not in parts.values()


def disagreement(readings: Sequence[Reading]) -> str:
    """Write how often each verdict occurs under settings that the paper does not give."""
    verdicts = [reading.verdict for reading in readings]
    counts = [f"{verdicts.count(word)} {word}" for word in VERDICTS if word in verdicts]
    return f"Verdicts under {len(verdicts)} settings that the paper leaves open: {listed(counts)}."


@dataclass(frozen=True)
class Declaration:
    """When a claim's rule was written."""

    # relative to the results that the rule judges, or an earlier version of them
    when: Literal["before", "after seeing"]
    date: str  # ISO 8601
    why: str  # reason for writing or changing the rule


@dataclass(frozen=True)
class Price:
    """What deciding an open claim takes.

    `seeds`: seeds in all for 80 % power at the observed effect and spread; None if they are too
    many, or if there are no intervals. `hours`: core-hours of the missing ones; None if unknown.
    `command`: computes them. `unreachable`: why no affordable number of runs decides the claim.
    """

    seeds: int | None = None
    hours: float | None = None
    command: str = ""
    unreachable: str = ""


@dataclass(frozen=True)
class Confirmation:
    """A claim judged on fresh seeds by a rule that was registered before them.

    `draws`: what a fresh seed draws, as text. `seeds`: finished seeds; `look` of `looks` is the
    number of the look at which the claim stands. `hours`: core-hours of the fresh runs.
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

    @property
    def answered(self) -> bool:
        """Whether all parts are decided."""
        return answered(self.verdict, self.parts)


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict, as ``claims/<paper>.json`` stores it.

    `reported`, `ours`: the paper's value and ours, as text. `margin`: with its unit. `verdict`: one
    of :data:`VERDICTS`. `grade`: one of :data:`GRADES`. `kind`: the second compares a sentence of
    the paper with the paper's own numbers.  Code checks are mathematically true; they test the
    code.  Both are counted separately. `declared`: when the rule was written; None if the paper's
    file does not give it. `scale`: smallest scale of its runs, a key of
    :data:`~.provenance.SCALES`; empty without runs. `seeds`, `most_seeds`: fewest and most seeds of
    the numbers shown; 0 without runs. `covers`: covered part of the paper's experiments; empty if
    all. `settles`: runs still missing for the paper's size, with their command; empty if
    complete. `power`: number of seeds that would decide an open claim; empty if decided. `drawn`:
    empty if the runs are not evidence. `readings`: the verdict under each tried setting that the
    paper does not give. `caveat`: one sentence that a reader must know to use the verdict. `parts`:
    whether each part of the claim holds. `topic`: the subject of the claim in a few words.
    `confirmation`: the claim judged on fresh seeds; None if there are none yet, or if the rule
    changed after its registration. `unconfirmed`: why there is none. `price`: what deciding the
    claim takes; None if it is answered.
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
    def confirmed(self) -> bool:
        """Whether fresh seeds answer the claim, by a rule that was registered before them."""
        return self.confirmation is not None and self.confirmation.answered

    @property
    def passes(self) -> bool:
        """Whether it holds; for code checks and texts, whose runs may be smaller."""
        return self.verdict in ("reproduced", "supports")


# Grades of verdicts, by the runs behind them.
#
# The grade is the paper's size, the paper's size on data for which nobody publishes a checksum,
# other data of the paper's size (transfer), or smaller runs (preliminary).  Grades are never
# counted together.  Runs that are no evidence give no verdict.


# The preliminary verdict in place of a rule's verdict, for runs smaller than the paper's.
PRELIMINARY: Mapping[Verdict, Verdict] = {
    "reproduced": "supports",
    "partly reproduced": "partly supports",
    "contradicted": "opposes",
    "inconclusive": "insufficient data",
}

# Labels of grades next to verdicts and in column heads; other grades are their own label.
LABELS: Mapping[str, str] = {
    "paper's size on unverified data": "unverified data",
    "transfer": "other data",
    "preliminary": "smaller runs",
}


def graded(finding: Finding, evidence: RunEvidence, transfer: bool = False) -> Finding:
    """Grade a finding by the evidence of the runs behind it.

    Its verdict is preliminary if the runs are smaller than the paper's, and ``not run`` if they are
    no evidence. With `transfer`, the runs use other data than the paper.
    """
    if finding.verdict == "not run":
        return replace(finding, grade="not run")
    if not evidence.obstacles:
        return replace(finding, grade="transfer" if transfer else "paper's size")
    if evidence.preliminary and all(has_unverified_data([word]) for word in evidence.obstacles):
        return replace(finding, grade="paper's size on unverified data")
    why = listed(evidence.obstacles)
    if not evidence.preliminary:
        reason = f"These runs are not evidence: {why}. Trial of the rule: {finding.verdict}."
        return Finding("not run", finding.ours, reason, grade="not run")
    readings = tuple(
        replace(reading, verdict=PRELIMINARY.get(reading.verdict, reading.verdict))
        for reading in finding.readings
    )
    is_counted = finding.verdict == DEPENDS and len({row.verdict for row in readings}) > 1
    words = disagreement(readings) if is_counted else finding.reason
    return replace(
        finding,
        verdict=PRELIMINARY.get(finding.verdict, finding.verdict),
        reason=f"Preliminary ({why}). {words}",
        readings=readings,
        grade="preliminary",
    )


def not_run(experiments: Mapping[str, str]) -> Finding:
    """Withhold the verdict of a claim with experiments that were not run, by their reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, why in experiments.items():
        by_reason.setdefault(why, []).append(name)
    reasons = "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
    return Finding("not run", "–", f"Not run: {reasons}.", grade="not run")


def not_judged(changes: Sequence[str]) -> Finding:
    """Withhold the verdict where settings were changed, so that the runs are not the claim's."""
    reason = f"Not judged: {listed(list(changes))} changed, with the paper's value in brackets."
    return Finding("not run", "–", reason, grade="not run")


def unfit(changes: Sequence[str]) -> Finding:
    """Withhold the verdict where a claim's rule does not fit the settings that were changed."""
    keys = listed(list(changes)) or "other experiments are left out"
    reason = f"The rule does not fit the changed settings: {keys}."
    return Finding("not run", "–", reason, grade="not run")
