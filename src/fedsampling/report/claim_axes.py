"""Pictures of one claim: its intervals in their unit, and under each setting.

- :func:`axes`: the intervals next to the paper's statement;
- :func:`settings_plots`: a number under each setting that the paper leaves open.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite, log10

from matplotlib.ticker import LogLocator, MaxNLocator

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

ROW_PIXELS = 9  # height of a setting
TICKS_PIXELS = 22  # height of the ticks
MARGIN = 0.06  # of the axis, at either end
LOGARITHMIC_FROM = 10.0  # ratio of the largest to the smallest number on an axis of ratios


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


@dataclass(frozen=True)
class Dot:
    """A claim's number under one setting; `y` in pixels from the top, the rest in per cent."""

    setting: str
    verdict: str
    text: str
    low: float
    x: float
    high: float
    y: float
    is_main: bool


@dataclass(frozen=True)
class SettingsPlot:
    """A claim's number under all settings that the paper leaves open."""

    name: str
    axis: Axis
    dots: tuple[Dot, ...]
    height: int


def axes(claim: Claim) -> tuple[Axis, ...]:
    """Place a claim's intervals on axes, one for each unit and statement.

    An interval of fresh seeds follows the exploring one of the same name.
    """
    fresh = list(claim.confirmation.drawn) if claim.confirmation else []
    drawn: list[Interval] = []
    for interval in claim.drawn:
        drawn.append(interval)
        key = (interval.name, statement_of(interval))
        same = [row for row in fresh if (row.name, statement_of(row)) == key]
        drawn += [replace(row, name=FRESH + row.name) for row in same]
        fresh = [row for row in fresh if row not in same]
    drawn += [replace(row, name=FRESH + row.name) for row in fresh]
    return tuple(_axis(list(group)) for _, group in groupby(drawn, statement_of))


def settings_plots(claim: Claim) -> tuple[SettingsPlot, ...]:
    """Lay out a plot for each number that has several settings, with a row for each setting.

    Rows are sorted by value.  A number that no setting changes has a plot only if it is the first.
    """
    basis = claim.basis
    # Several settings may give the same numbers; the main setting is listed first.
    main = next((reading for reading in basis.readings if reading.ours == basis.ours), None)
    names = dict.fromkeys(interval.name for r in basis.readings for interval in r.drawn)
    plots: list[SettingsPlot] = []
    for name in names:
        rows = [
            (reading, interval)
            for reading in basis.readings
            for interval in reading.drawn
            if interval.name == name
        ]
        statements = {statement_of(interval) for _, interval in rows}
        values = {(interval.value, interval.low, interval.high) for _, interval in rows}
        if len(rows) < 2 or len(statements) > 1 or (len(values) == 1 and plots):
            continue
        rows.sort(key=lambda row: row[1].value)
        axis = _axis([interval for _, interval in rows])
        dots = tuple(
            Dot(
                reading.setting,
                reading.verdict,
                bar.text,
                bar.low,
                bar.value,
                bar.high,
                ROW_PIXELS * (position + 0.5),
                reading is main,
            )
            for position, ((reading, _), bar) in enumerate(zip(rows, axis.bars, strict=True))
        )
        plots.append(SettingsPlot(name, axis, dots, ROW_PIXELS * len(rows) + TICKS_PIXELS))
    return tuple(plots)


def _axis(group: Sequence[Interval]) -> Axis:
    unit, least, most, paper = statement_of(group[0])
    numbers = [x for x in (least, most, paper) if x is not None]
    for interval in group:
        bounds = () if interval.bound else (interval.low, interval.high)
        numbers += [interval.value, *bounds]
    place, ticks = _scale(min(numbers), max(numbers), is_ratio=unit.startswith("times"))
    holds = None
    if least is not None or most is not None:
        start = 0.0 if least is None else place(least)
        holds = start, (100.0 if most is None else place(most)) - start
    return Axis(
        unit=unit,
        bars=tuple(place_bar(interval, place, interval_text(interval)) for interval in group),
        ticks=tuple((place(tick), show_rounded(tick)) for tick in ticks),
        holds=holds,
        paper=None if paper is None else place(paper),
        statement=_legend(least, most, paper),
    )


def _scale(low: float, high: float, is_ratio: bool) -> tuple[Callable[[float], float], list[float]]:
    """Return the function from a number to its position in per cent, and the ticks."""
    logarithmic = is_ratio and low > 0 and high / low > LOGARITHMIC_FROM
    forward = log10 if logarithmic else float
    first, last = forward(low), forward(high)
    room = MARGIN * (last - first) or abs(first) or 1.0
    first, last = first - room, last + room

    def place(value: float) -> float:
        return round(100 * (forward(value) - first) / (last - first), 2)

    ends = (10**first, 10**last) if logarithmic else (first, last)
    locator = LogLocator(numticks=5) if logarithmic else MaxNLocator(4, steps=[1, 2, 5, 10])
    ticks = (float(tick) for tick in locator.tick_values(*ends))
    return place, [tick for tick in ticks if isfinite(tick) and ends[0] <= tick <= ends[1]]


def _legend(least: float | None, most: float | None, paper: float | None) -> str:
    """Explain the line and the grey region of an axis."""
    phrases = [] if paper is None else [f"dashed: the paper's number, {show_rounded(paper)}"]
    if region := region_in_words(least, most):
        phrases.append(f"grey: the paper's statement holds {region}")
    return "; ".join(phrases)
