"""Numbers that a paper prints for one of its figures or tables, next to ours.

The numbers come from the paper's text, tables and captions, as listed in its ``reported.csv``.
None is read off a curve, because the papers' figures are not available as files.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import isclose

from fedsampling.evidence.statistics import show_interval
from fedsampling.evidence.verdicts import Claim
from fedsampling.experiments.papers import Reported

_DECIMAL = re.compile(r"-?\d+(?:\.(?P<digits>\d+))?(?:e(?P<power>[+-]?\d+))?")
_MEASURED = frozenset({"%", "dB", "points", "s"})  # units of integers that were rounded


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, as text.

    `quantity`, `value`, `unit`, `where`: as in ``reported.csv``. `rounding`: half a unit of the
    last printed digit; empty if the number is exact, or for text. `claim`, `ours`: claim that
    compares the number, and our value with its interval; empty without a claim.
    """

    quantity: str
    value: str
    unit: str
    where: str
    rounding: str
    claim: str
    ours: str


def printed_numbers(
    artefact: str, reports: Iterable[Reported], claims: Iterable[Claim]
) -> tuple[PrintedNumber, ...]:
    """Return the numbers that a paper prints for an artefact; compared numbers come first."""
    by_id = {claim.id: claim for claim in claims}
    rows = [
        PrintedNumber(
            row.quantity,
            row.value,
            row.unit,
            row.where,
            rounding(row.value, row.unit),
            row.claim if row.claim in by_id else "",
            _ours(by_id.get(row.claim), row.value),
        )
        for row in reports
        if row.artefact == artefact
    ]
    return tuple(sorted(rows, key=lambda row: (not row.ours, not row.claim)))


def rounding(value: str, unit: str) -> str:
    """Return half a unit of the last printed digit, such as ``± 0.05`` for 23.1."""
    match = _DECIMAL.fullmatch(value)
    if not match or (match["digits"] is None and match["power"] is None and unit not in _MEASURED):
        return ""
    exponent = int(match["power"] or 0) - len(match["digits"] or "")
    return f"± {0.5 * 10.0**exponent:g}"


def _ours(claim: Claim | None, value: str) -> str:
    """Return our estimate of a number that a claim compares."""
    if claim is None or not _DECIMAL.fullmatch(value):
        return ""
    number = float(value)
    return "; ".join(
        show_interval(interval.value, interval.low, interval.high)
        for interval in claim.drawn
        if interval.paper is not None and isclose(interval.paper, number, rel_tol=1e-9)
    )
