"""Our values next to the paper's: axes of claim cards, and the numbers that a figure prints.

Positions are in per cent of the axis' width; ``templates/parts.html.j2`` draws them as inline SVG,
which fits any page width.  :func:`settings_plots` places the settings that a paper leaves open.
Printed numbers come from the paper's text, tables and captions, as listed in ``reported.csv``.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isclose, isfinite, log10

from matplotlib.ticker import LogLocator, MaxNLocator

from fedsampling.evidence.statistics import listed, show_interval
from fedsampling.evidence.verdicts import Claim, Interval
from fedsampling.experiments.papers import Reported

_MARGIN = 0.06  # of the axis, at either end
_DOT, _DOT_WIDTH, _TICKS = 11, 1.5, 20  # a dot's height in pixels and width in per cent; the ticks
_LOGARITHMIC_FROM = 10.0  # ratio of the largest to the smallest number on an axis of ratios


@dataclass(frozen=True)
class Bar:
    """An interval on its axis; positions are in per cent from the left."""

    name: str
    text: str
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Axis:
    """Intervals that share a unit and a statement of the paper; positions are in per cent."""

    unit: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    # start and width of the region in which the paper's statement holds
    holds: tuple[float, float] | None
    paper: float | None  # position of the number that the paper prints
    statement: str  # text that states `holds` and `paper`


def axes(drawn: Iterable[Interval]) -> tuple[Axis, ...]:
    """Lay out a claim's intervals; intervals with the same unit and statement share an axis."""
    return tuple(_axis(list(group)) for _, group in groupby(drawn, _statement))


@dataclass(frozen=True)
class Dot:
    """A claim's number under one setting; `x` in per cent, `y` in pixels from the top."""

    setting: str
    verdict: str
    text: str
    x: float
    y: float
    is_main: bool


@dataclass(frozen=True)
class SettingsPlot:
    """A claim's number under all settings that the paper leaves open."""

    name: str
    unit: str
    dots: tuple[Dot, ...]
    ticks: tuple[tuple[float, str], ...]
    holds: tuple[float, float] | None
    paper: float | None
    statement: str
    height: int


def settings_plots(claim: Claim) -> tuple[SettingsPlot, ...]:
    """Lay out a plot for each number with several settings; dots that would overlap are stacked."""
    names = dict.fromkeys(interval.name for r in claim.readings for interval in r.drawn)
    plots = []
    for name in names:
        rows = [
            (reading, interval)
            for reading in claim.readings
            for interval in reading.drawn
            if interval.name == name
        ]
        if len(rows) < 2 or len({_statement(interval) for _, interval in rows}) > 1:
            continue
        axis = _axis([interval for _, interval in rows])
        taken: dict[int, int] = {}
        dots = []
        for (reading, _), bar in zip(rows, axis.bars, strict=True):
            column = round(bar.value / _DOT_WIDTH)
            taken[column] = taken.get(column, 0) + 1
            dots.append((reading, bar, column, taken[column]))
        height = _DOT * max(taken.values()) + _TICKS
        plots.append(
            SettingsPlot(
                name,
                axis.unit,
                tuple(
                    Dot(
                        reading.setting,
                        reading.verdict,
                        bar.text,
                        round(column * _DOT_WIDTH, 2),
                        height - _TICKS - _DOT * (row - 0.5),
                        reading.ours == claim.ours,
                    )
                    for reading, bar, column, row in dots
                ),
                axis.ticks,
                axis.holds,
                axis.paper,
                axis.statement,
                height,
            )
        )
    return tuple(plots)


def accepted_values(drawn: Iterable[Interval]) -> list[str]:
    """Return the values that the rule accepts as reproduced, a line for each statement."""
    lines = []
    for (unit, least, most, _), group in groupby(drawn, _statement):
        names = listed([interval.name for interval in group])
        if least is not None and most is not None:
            lines.append(f"{unit}: {_round(least)} to {_round(most)}, for {names}")
        elif least is not None:
            lines.append(f"{unit}: above {_round(least)}, for {names}")
        elif most is not None:
            lines.append(f"{unit}: below {_round(most)}, for {names}")
    return lines


def _statement(interval: Interval) -> tuple[str, float | None, float | None, float | None]:
    return interval.unit, interval.least, interval.most, interval.paper


def _axis(group: Sequence[Interval]) -> Axis:
    unit, least, most, paper = _statement(group[0])
    numbers = [x for x in (least, most, paper) if x is not None]
    for interval in group:
        numbers += [interval.low, interval.value, interval.high]
    place, ticks = _scale(min(numbers), max(numbers), is_ratio=unit.startswith("times"))
    holds = None
    if least is not None or most is not None:
        start = 0.0 if least is None else place(least)
        holds = start, (100.0 if most is None else place(most)) - start
    return Axis(
        unit=unit,
        bars=tuple(
            Bar(
                interval.name,
                show_interval(interval.value, interval.low, interval.high),
                *map(place, (interval.low, interval.value, interval.high)),
            )
            for interval in group
        ),
        ticks=tuple((place(tick), _round(tick)) for tick in ticks),
        holds=holds,
        paper=None if paper is None else place(paper),
        statement=_legend(least, most, paper),
    )


def _scale(low: float, high: float, is_ratio: bool) -> tuple[Callable[[float], float], list[float]]:
    """Return the function from a number to its position in per cent, and the ticks."""
    logarithmic = is_ratio and low > 0 and high / low > _LOGARITHMIC_FROM
    forward = log10 if logarithmic else float
    first, last = forward(low), forward(high)
    room = _MARGIN * (last - first) or abs(first) or 1.0
    first, last = first - room, last + room

    def place(value: float) -> float:
        return round(100 * (forward(value) - first) / (last - first), 2)

    ends = (10**first, 10**last) if logarithmic else (first, last)
    locator = LogLocator(numticks=5) if logarithmic else MaxNLocator(4, steps=[1, 2, 5, 10])
    ticks = (float(tick) for tick in locator.tick_values(*ends))
    return place, [tick for tick in ticks if isfinite(tick) and ends[0] <= tick <= ends[1]]


def _legend(least: float | None, most: float | None, paper: float | None) -> str:
    """Explain the line and the grey region of an axis."""
    phrases = [] if paper is None else [f"dashed: the paper's number, {_round(paper)}"]
    if least is not None and most is not None:
        phrases.append(f"grey: the paper's statement holds from {_round(least)} to {_round(most)}")
    elif least is not None:
        phrases.append(f"grey: the paper's statement holds above {_round(least)}")
    elif most is not None:
        phrases.append(f"grey: the paper's statement holds below {_round(most)}")
    return "; ".join(phrases)


def _round(value: float) -> str:
    """Format a bound or a tick without trailing zeros."""
    return f"{value:.4g}".replace("-", "−")


_DECIMAL = re.compile(r"-?\d+(?:\.(?P<digits>\d+))?(?:e(?P<power>[+-]?\d+))?")
_MEASURED = frozenset({"%", "dB", "points", "s"})  # units of integers that were rounded


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, as text: fields of ``reported.csv``, and our value.

    `rounding` is half a unit of the last printed digit; empty if the number is exact, or for text.
    `claim` compares the number with `ours` and its interval; empty without one.
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
