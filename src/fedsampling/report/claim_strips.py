"""All claims of a paper on one logarithmic scale: ours over the paper's number or rule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10

from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import Interval
from fedsampling.report.claim_bars import (
    FRESH,
    Bar,
    interval_text,
    place_bar,
    region_in_words,
    show_rounded,
    statement_of,
)

MAX_RATIO = 100.0  # largest ratio on the scale; the smallest is its inverse
MARGIN_FACTOR = 1.15  # by which the scale extends beyond the numbers, at either end
MAX_TICKS = 7
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FEW_TICKS = (0.01, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Strip:
    """A claim on the scale of all claims: ours over the paper's number, or over the rule's bound.

    `bars`: the exploring runs, then fresh seeds. `holds`: start and width of the region that the
    rule accepts. `reference`: what the value 1 means, as text.
    """

    bars: tuple[Bar, ...]
    holds: tuple[float, float] | None
    reference: str


@dataclass(frozen=True)
class Strips:
    """All claims with such a ratio on one scale, by id; `unity` is the position of one."""

    of: Mapping[str, Strip]
    ticks: tuple[tuple[float, str], ...]
    unity: float


def strips(claims: Iterable[Claim]) -> Strips | None:
    """Place all claims whose numbers have a ratio to the paper's on one scale; None without any."""
    chosen = {claim.id: ratios for claim in claims if (ratios := _ratios(claim))}
    if not chosen:
        return None
    numbers = [
        x for rows in chosen.values() for row in rows for x in (row.low, row.value, row.high)
    ]
    least = min([0.5, *(x for x in numbers if x > 0)])
    first = max(least, 1 / MAX_RATIO) / MARGIN_FACTOR
    last = min(max(2.0, *numbers), MAX_RATIO) * MARGIN_FACTOR

    def place(value: float) -> float:
        inside = min(max(value, first), last) if value > 0 else first
        return round(100 * (log10(inside) - log10(first)) / (log10(last) - log10(first)), 2)

    ticks = [tick for tick in TICKS if first <= tick <= last]
    if len(ticks) > MAX_TICKS:
        ticks = [tick for tick in ticks if tick in FEW_TICKS]
    return Strips(
        {name: _strip(ratios, place) for name, ratios in chosen.items()},
        tuple((place(tick), show_rounded(tick)) for tick in ticks),
        place(1.0),
    )


def row_number(claim: Claim) -> str:
    """Write the first number of a claim without a strip, of the runs that its verdict rests on."""
    shown = [claim.drawn[0], *_like(claim.drawn[0], claim.basis.drawn)][-1]
    unit = shown.unit.partition(",")[0].replace(" (Holm-corrected)", "")
    return f"{interval_text(shown)} {unit}"


def _ratios(claim: Claim) -> list[Interval]:
    """Return a claim's main number over its reference: of exploring runs, and of fresh seeds."""
    fresh = claim.confirmation.drawn if claim.confirmation else ()
    placed = [row for row in (*claim.drawn, *fresh) if _reference(row)]
    placed.sort(key=lambda row: bool(row.bound))  # a bound only if there is nothing else
    if not placed:
        return []
    same = [
        (row, is_fresh)
        for is_fresh, rows in ((False, claim.drawn), (True, fresh))
        for row in _like(placed[0], rows)
    ]
    return [
        replace(
            row,
            name=f"{FRESH if is_fresh else ''}{row.name}",
            unit=f"{interval_text(row)}, {_reference_text(row)}",
            value=row.value / reference,
            low=row.low / reference,
            high=row.high / reference,
            least=None if row.least is None else row.least / reference,
            most=None if row.most is None else row.most / reference,
        )
        for row, is_fresh in same
        if (reference := _reference(row))
    ]


def _like(interval: Interval, rows: Sequence[Interval]) -> list[Interval]:
    """Return the rows with an interval's name and statement, or the first with its statement.

    The name may contain the fastest sampler, which can be another one with fresh seeds.
    """
    stated = [row for row in rows if statement_of(row) == statement_of(interval)]
    return [row for row in stated if row.name == interval.name] or stated[:1]


def _reference(interval: Interval) -> float:
    """Return what an interval is divided by: the paper's number, or a bound; zero if neither."""
    if interval.value <= 0:
        return 0.0
    for number in (interval.paper, interval.least, interval.most):
        if number is not None:
            return max(number, 0.0)
    return 0.0


def _reference_text(interval: Interval) -> str:
    if interval.paper is not None:
        return f"paper {show_rounded(interval.paper)}"
    region = region_in_words(interval.least, interval.most)
    # A line must not end between the sign and the number.
    signs = {"above ": ">\N{NO-BREAK SPACE}", "below ": "<\N{NO-BREAK SPACE}", "from ": ""}
    for word, sign in signs.items():
        region = region.replace(word, sign)
    return f"rule: {region}"


def _strip(rows: Sequence[Interval], place: Callable[[float], float]) -> Strip:
    least, most = rows[0].least, rows[0].most
    start = 0.0 if least is None else place(least)
    end = 100.0 if most is None else place(most)
    has_region = least is not None or most is not None
    return Strip(
        tuple(place_bar(row, place, row.unit) for row in rows),
        (start, round(end - start, 2)) if has_region else None,
        "the paper's number" if rows[0].paper is not None else "the rule's bound",
    )
