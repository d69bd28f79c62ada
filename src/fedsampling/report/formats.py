"""Formats on the pages of the report: formulas, names, numbers, settings, tables, claims' axes."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isclose, isfinite, log10
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape
from matplotlib.ticker import LogLocator, MaxNLocator
from PIL import Image

from fedsampling.base.text import format_duration, show_interval
from fedsampling.evidence.verdicts import Claim, Interval
from fedsampling.experiments.papers import Reported
from fedsampling.report.drawing.artefacts import Exhibit

# A symbol is a single letter (with its accent), a closing bracket or, for powers, a number; words
# such as `peak_mb` are not symbols.  A subscript or superscript is up to three characters, or
# anything in braces, and ends before a power such as ².
_POWERS = "⁰¹²³⁴-⁹"
_SYMBOL = r"(?:(?<!\w)[^\W\d_][\u0300-\u036f]?|[\])}|‖]|(?<![\w.])\d+(?=\^))"
_SCRIPT = rf"[_^](?:\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}|[-−]?[^\W_{_POWERS}]{{1,3}}|\*)"
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "sigma": "σ", "sum": "Σ"}
_NAMED = re.compile(rf"\b(?:{'|'.join(_GREEK)})(?=[_^][\w{{])")
# Figures and tables by the paper's own number; all others are folded away.
NUMBERED = re.compile(r"(figure|table)\d+[a-z]?")
_FORMULA = re.compile(rf"({_SYMBOL})((?:{_SCRIPT})+)(?![^\W{_POWERS}])")


def typeset(text: object) -> Markup:
    """Escape plain text; typeset subscripts and superscripts, and text in backticks as code."""
    words = re.split("`([^`]+)`", str(escape(text)))
    words[::2] = [_set(word) for word in words[::2]]
    words[1::2] = [f"<code>{word}</code>" for word in words[1::2]]
    return Markup("".join(words))


def typeset_html(html: str) -> Markup:
    """Typeset subscripts and superscripts in trusted HTML; tags are unchanged."""
    return Markup(re.sub(r"(?<=>)[^<>]+", lambda match: _set(match[0]), html))


def _set(escaped: str) -> str:
    escaped = _NAMED.sub(lambda match: _GREEK[match[0]], escaped)
    escaped = re.sub(r"(?<=\d) (?=%)|(?<=\b\w) (?== )|(?<= \w =) (?=\d)", "\u00a0", escaped)
    return _FORMULA.sub(lambda match: match[1] + re.sub(_SCRIPT, _script, match[2]), escaped)


def _script(match: re.Match[str]) -> str:
    tag = "sub" if match[0][0] == "_" else "sup"
    inner = match[0][1:]
    if inner.startswith("{"):
        inner = _set(inner[1:-1])
    return f"<{tag}>{inner}</{tag}>"


def exhibit_name(exhibit: Exhibit) -> str:
    """Name an artefact: a figure or table of the paper by its number, others by their title."""
    if NUMBERED.fullmatch(exhibit.artefact):
        return in_words(exhibit.artefact)
    return exhibit.title


def in_words(identifier: str) -> str:
    """Turn an identifier into words: ``figure2_best`` into ``Figure 2 best``."""
    words = re.sub(r"(?<=[a-z])(?=\d)|_", " ", identifier)
    return words[:1].upper() + words[1:]


def statistic(value: float | str) -> str:
    """Format a statistic: integers in full, other numbers with four digits."""
    if isinstance(value, str):
        return value.replace(" x ", " × ")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def setting(value: Any) -> str:
    """Format a setting: text unchanged, a list or mapping as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def recorded_duration(seconds: float | None) -> str:
    """Format a duration that may not have been recorded."""
    return "not recorded" if seconds is None else format_duration(seconds)


def as_json(content: Any) -> Markup:
    """Write JSON that cannot close its script element."""
    return Markup(json.dumps(content, ensure_ascii=False).replace("<", "\\u003c"))


def size_attributes(png: Path) -> Markup:
    """Return a picture's size as HTML attributes, so that the page does not jump as it loads."""
    with Image.open(png) as image:
        width, height = image.size
    return Markup(f'width="{width}" height="{height}" style="--wide: {width}px"')


# Our values next to the paper's: axes of claim cards, and the numbers that a figure prints.
#
# Positions are in per cent of the axis' width; ``templates/parts.html.j2`` draws them as inline
# SVG, which fits any page width.  Printed numbers are those of ``reported.csv``.


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
    """Place a claim's intervals on axes, one for each unit and statement."""
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
    axis: Axis
    dots: tuple[Dot, ...]
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
        columns = [round(bar.value / _DOT_WIDTH) for bar in axis.bars]
        height = _DOT * max(Counter(columns).values()) + _TICKS
        dots = tuple(
            Dot(
                reading.setting,
                reading.verdict,
                bar.text,
                round(column * _DOT_WIDTH, 2),
                height - _TICKS - _DOT * (columns[:place].count(column) + 0.5),
                reading.ours == claim.ours,
            )
            for place, ((reading, _), bar, column) in enumerate(
                zip(rows, axis.bars, columns, strict=True)
            )
        )
        plots.append(SettingsPlot(name, axis, dots, height))
    return tuple(plots)


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
    numbers += [x for interval in group for x in (interval.low, interval.value, interval.high)]
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
    if region := _region(least, most):
        phrases.append(f"grey: the paper's statement holds {region}")
    return "; ".join(phrases)


def _round(value: float) -> str:
    """Format a bound or a tick without trailing zeros."""
    return f"{value:.4g}".replace("-", "−")


_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class PrintedNumber:
    """A number that the paper prints, a row of ``reported.csv``, next to ours.

    `claim` compares the number with `ours` and its interval; empty without one.
    """

    row: Reported
    claim: str
    ours: str


def printed_numbers(
    artefact: str, reports: Iterable[Reported], claims: Iterable[Claim]
) -> tuple[PrintedNumber, ...]:
    """Return the numbers that a paper prints for an artefact; compared numbers come first."""
    by_id = {claim.id: claim for claim in claims}
    numbers = [
        PrintedNumber(
            row,
            row.claim if row.claim in by_id else "",
            _ours(by_id.get(row.claim), row.value),
        )
        for row in reports
        if row.artefact == artefact
    ]
    return tuple(sorted(numbers, key=lambda number: (not number.ours, not number.claim)))


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
