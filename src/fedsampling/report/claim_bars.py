"""Intervals of claims as bars of inline SVG, next to the paper's statement.

Positions are percentages of the width, so that bars fit any page.  ``templates/parts.html.j2``
draws them.
:mod:`.claim_axes` places the intervals of one claim in their unit, :mod:`.claim_strips` all claims
of a paper on one scale.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fedsampling.base.text import show, show_interval
from fedsampling.evidence.verdicts import Interval

FRESH = "◆ "  # before the name of an interval of fresh seeds
Statement = tuple[str, float | None, float | None, float | None]


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


def interval_text(interval: Interval) -> str:
    """Write an interval; a bound without one, as ``> 7.5, cut off``."""
    if interval.bound:
        return f"{interval.bound} {show(interval.value)}, cut off"
    return show_interval(interval.value, interval.low, interval.high)


def place_bar(interval: Interval, place: Callable[[float], float], text: str) -> Bar:
    """Place an interval; `place`: from a number to its position in per cent."""
    sign = interval.bound
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


def region_in_words(least: float | None, most: float | None) -> str:
    """Describe the values that a rule accepts, such as ``above 1``; empty if it accepts all."""
    if least is not None and most is not None:
        return f"from {show_rounded(least)} to {show_rounded(most)}"
    if least is not None:
        return f"above {show_rounded(least)}"
    return f"below {show_rounded(most)}" if most is not None else ""


def statement_of(interval: Interval) -> Statement:
    """Return an interval's unit, the bounds of its rule, and the paper's number."""
    return interval.unit, interval.least, interval.most, interval.paper


def show_rounded(value: float) -> str:
    """Format a bound, a tick or a printed number without trailing zeros."""
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:,.4g}"
    return text.replace("-", "−")
