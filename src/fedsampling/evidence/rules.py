"""Rules that decide claims.

Most claims have one of these shapes, each a function that returns a finding:

- :func:`ordering`: every comparison of two samplers lies above a bound;
- :func:`equivalence`: two samplers are equal up to a margin;
- :func:`by_chance`: deviations from closed forms are no larger than chance allows.

Other claims have parts of their own, for example one for each dataset: :func:`above`,
:func:`faster`, :func:`close`, :func:`in_range` and :func:`stated` decide whether a part holds, and
:func:`verdict` combines the parts.  :func:`over_choices` combines the findings under settings that
the paper leaves open.

One standard holds for all of them.  A claimed order ("outperforms", "lower", "faster") holds if the
interval of each difference excludes zero on the claimed side; "no worse" holds up to a margin.
Intervals that decide a claim together are Holm-corrected, unless its rule says that all of them
must lie on the claimed side (intersection–union test).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.text import listed
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
from fedsampling.evidence.verdicts import (
    DEPENDS,
    UNDECIDED,
    Finding,
    Interval,
    Part,
    Reading,
    Verdict,
    disagreement,
    intervals,
)

JOINT = " (Holm-corrected)"  # after the unit of intervals that decide a claim together
TIE = 0.15  # two samplers are equal if the ratio of their costs is within 1 ± TIE
Pair = tuple[ArrayLike, ArrayLike]  # numbers of two samplers, one per seed
EQUIVALENCE: Mapping[Verdict, str] = {
    "reproduced": "Every interval lies within the margin.",
    "partly reproduced": "Some intervals lie within the margin, not all.",
    "contradicted": "An interval lies outside of the margin.",
    "inconclusive": "An interval crosses the margin.",
}
PARTS: Mapping[Part, str] = {
    "holds": "it holds for {}",
    "fails": "the opposite holds for {}",
    "tie": "no difference for {}",
    "depends": "it depends on unstated choices for {}",
    "open": "undecided for {}",
}


def ordering(
    gaps: Mapping[str, Estimate],
    bound: float,
    quantity: str,
    why: Mapping[Verdict, str] | None = None,
    *,
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
        contrary_decides=contrary_decides,
        partly=partly,
        drawn=intervals(gaps, f"{quantity}{JOINT}", least=bound),
    )


def equivalence(
    pairs: Mapping[str, Pair],
    margin: float,
    quantity: str,
    contrast: Contrast = ratio,
    *,
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
    contrast has no interval, and holds by :func:`~.statistics.never_varies_beyond`. `level` is that
    of the intervals shown, and decides nothing.
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
        contrary_decides=contrary_decides,
        partly=partly,
        drawn=intervals(estimates, quantity, paper=contrast.equal, within=margin),
    )


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


def verdict(
    parts: Mapping[str, Part],
    ours: str,
    why: Mapping[Verdict, str] | None = None,
    *,
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
