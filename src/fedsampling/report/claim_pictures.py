"""Pictures of a claim: its intervals next to the paper's statement, as positions of inline SVG.

Positions are in per cent of the width, which fits any page; ``templates/parts.html.j2`` draws them.

- :func:`strips`: all claims of a paper on one logarithmic scale, ours over the paper's;
- :func:`axes`: the intervals of one claim in their unit;
- :func:`settings_plots`: a claim's number under each setting that the paper leaves open.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import isfinite, log10

from matplotlib.ticker import LogLocator, MaxNLocator

from fedsampling.base.text import show, show_interval
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import Interval

CUT_OFF = ", cut off"  # ends the name of a ratio with a run that never reached its target
FRESH = "◆ "  # before the name of an interval of fresh seeds
_MARGIN = 0.06  # of the axis, at either end
_ROW, _TICKS = 9, 22  # heights in pixels: of a setting, and of the ticks
_LOGARITHMIC_FROM = 10.0  # ratio of the largest to the smallest number on an axis of ratios
_WIDEST = 100.0  # largest ratio on the scale of all claims; the smallest is its inverse
_COMMON_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True)
class Bar:
    """An interval on its axis; positions are in per cent from the left.

    `bound`: ``>`` or ``<`` if the value is only a bound, because runs were cut off; such a bar
    reaches to the end of the axis. `is_fresh`: whether it comes from fresh seeds.
    """

    name: str
    text: str
    low: float
    value: float
    high: float
    bound: str = ""
    is_fresh: bool = False


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


def interval_text(interval: Interval) -> str:
    """Write an interval; a bound without one, as ``> 7.5, never reached``."""
    if sign := _bound(interval):
        return f"{sign} {show(interval.value)}, never reached"
    return show_interval(interval.value, interval.low, interval.high)


def strips(claims: Iterable[Claim]) -> Strips | None:
    """Place all claims whose numbers have a ratio to the paper's on one scale; None without any."""
    chosen = {claim.id: ratios for claim in claims if (ratios := _ratios(claim))}
    if not chosen:
        return None
    numbers = [
        x for rows in chosen.values() for row in rows for x in (row.low, row.value, row.high)
    ]
    first = max(min([0.5, *(x for x in numbers if x > 0)]), 1 / _WIDEST) / 1.15
    last = min(max(2.0, *numbers), _WIDEST) * 1.15

    def place(value: float) -> float:
        inside = min(max(value, first), last) if value > 0 else first
        return round(100 * (log10(inside) - log10(first)) / (log10(last) - log10(first)), 2)

    ticks = [tick for tick in _COMMON_TICKS if first <= tick <= last]
    if len(ticks) > 7:
        ticks = [tick for tick in ticks if tick in (0.01, 0.1, 1.0, 10.0, 100.0)]
    return Strips(
        {name: _strip(ratios, place) for name, ratios in chosen.items()},
        tuple((place(tick), _round(tick)) for tick in ticks),
        place(1.0),
    )


def axes(claim: Claim) -> tuple[Axis, ...]:
    """Place a claim's intervals on axes, one for each unit and statement.

    An interval of fresh seeds follows the exploring one of the same name.
    """
    fresh = list(claim.confirmation.drawn) if claim.confirmation else []
    drawn: list[Interval] = []
    for interval in claim.drawn:
        drawn.append(interval)
        key = (interval.name, _statement(interval))
        same = [row for row in fresh if (row.name, _statement(row)) == key]
        drawn += [replace(row, name=FRESH + row.name) for row in same]
        fresh = [row for row in fresh if row not in same]
    drawn += [replace(row, name=FRESH + row.name) for row in fresh]
    return tuple(_axis(list(group)) for _, group in groupby(drawn, _statement))


def settings_plots(claim: Claim) -> tuple[SettingsPlot, ...]:
    """Lay out a plot for each number with several settings, a row for each in order of value.

    After the first, numbers that no setting changes have no plot.
    """
    names = dict.fromkeys(interval.name for r in claim.readings for interval in r.drawn)
    plots: list[SettingsPlot] = []
    for name in names:
        rows = [
            (reading, interval)
            for reading in claim.readings
            for interval in reading.drawn
            if interval.name == name
        ]
        statements = {_statement(interval) for _, interval in rows}
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
                _ROW * (position + 0.5),
                reading.ours == claim.ours,
            )
            for position, ((reading, _), bar) in enumerate(zip(rows, axis.bars, strict=True))
        )
        plots.append(SettingsPlot(name, axis, dots, _ROW * len(rows) + _TICKS))
    return tuple(plots)


def _ratios(claim: Claim) -> list[Interval]:
    """Return a claim's main number over its reference: of exploring runs, and of fresh seeds."""
    fresh = claim.confirmation.drawn if claim.confirmation else ()
    placed = [row for row in (*claim.drawn, *fresh) if _reference(row)]
    placed.sort(key=lambda row: bool(_bound(row)))  # a bound only if there is nothing else
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
    stated = [row for row in rows if _statement(row) == _statement(interval)]
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
        return f"paper {interval.paper:.3g}"
    region = _region(interval.least, interval.most)
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
        tuple(_bar(row, place, row.unit) for row in rows),
        (start, round(end - start, 2)) if has_region else None,
        "the paper's number" if rows[0].paper is not None else "the rule's bound",
    )


def _bar(interval: Interval, place: Callable[[float], float], text: str) -> Bar:
    sign = _bound(interval)
    value = place(interval.value)
    return Bar(
        name=interval.name,
        text=text,
        low={">": value, "<": 0.0}.get(sign, place(interval.low)),
        value=value,
        high={">": 100.0, "<": value}.get(sign, place(interval.high)),
        bound=sign,
        is_fresh=interval.name.startswith(FRESH),
    )


def _bound(interval: Interval) -> str:
    """Return whether a value is a lower (``>``) or upper bound (``<``); empty if it is neither.

    A ratio whose denominator was cut off ("random selection's seconds over …") is an upper bound.
    """
    if not interval.name.endswith(CUT_OFF):
        return ""
    return "<" if " over" in interval.unit else ">"


def _region(least: float | None, most: float | None) -> str:
    """Describe the values that a rule accepts, such as ``above 1``; empty if it accepts all."""
    if least is not None and most is not None:
        return f"from {_round(least)} to {_round(most)}"
    if least is not None:
        return f"above {_round(least)}"
    return f"below {_round(most)}" if most is not None else ""


def _statement(interval: Interval) -> tuple[str, float | None, float | None, float | None]:
    return interval.unit, interval.least, interval.most, interval.paper


def _axis(group: Sequence[Interval]) -> Axis:
    unit, least, most, paper = _statement(group[0])
    numbers = [x for x in (least, most, paper) if x is not None]
    for interval in group:
        bounds = () if _bound(interval) else (interval.low, interval.high)
        numbers += [interval.value, *bounds]
    place, ticks = _scale(min(numbers), max(numbers), is_ratio=unit.startswith("times"))
    holds = None
    if least is not None or most is not None:
        start = 0.0 if least is None else place(least)
        holds = start, (100.0 if most is None else place(most)) - start
    return Axis(
        unit=unit,
        bars=tuple(_bar(interval, place, interval_text(interval)) for interval in group),
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
    if region := _region(least, most):
        phrases.append(f"grey: the paper's statement holds {region}")
    return "; ".join(phrases)


def _round(value: float) -> str:
    """Format a bound or a tick without trailing zeros."""
    return f"{value:,.4g}".replace("-", "−")
