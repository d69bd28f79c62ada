"""Numbers, counted nouns, lists and tables as text: in claims, captions, pages and terminals."""

import math
import re
from collections.abc import Iterable, Sequence


def show(value: float, digits: int = 3, last: float | None = None) -> str:
    """Format a number with `digits` significant digits.

    `value`: NaN is written as a dash. `last`: last round of the run; an infinite (censored) value
    becomes ``>last``.
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        if last is not None:
            return f">{show(last, digits)}"
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    text = f"{value:.{digits - 1}e}"
    exponent = int(text.partition("e")[2])
    if -4 <= exponent < 6:
        text = f"{float(text):,.{max(digits - 1 - exponent, 0)}f}"
    return text.replace("-", "−")


def show_alike(values: Sequence[float], digits: int = 3) -> list[str]:
    """Format numbers with the decimals that the largest needs for `digits` significant digits.

    Each number has its own decimals if the smallest would become zero, or if some need exponents.
    """
    texts = [show(value, digits) for value in values]
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    if not sizes or any("e" in text for text in texts):
        return texts
    decimals = max(digits - 1 - int(f"{max(sizes):.{digits - 1}e}".partition("e")[2]), 0)
    if min(sizes) < 0.5 * 10.0**-decimals:
        return texts
    return [
        f"{value:,.{decimals}f}".replace("-", "−") if value and math.isfinite(value) else text
        for value, text in zip(values, texts, strict=True)
    ]


def show_interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """Format a number with its interval as ``5.31 [5.10, 5.52]``.

    An exact number, and one whose interval does not exist (NaN), have none.
    """
    if low == value == high or math.isnan(low) or math.isnan(high):
        return show(value, digits)
    return f"{show(value, digits)} [{show(low, digits)}, {show(high, digits)}]"


def grouped(text: str) -> str:
    """Write the thousands of whole numbers in a text: ``3131 s`` as ``3,131 s``."""
    return re.sub(r"(?<![\w.,])\d{4,}(?![\w.,]\d|\w)", lambda match: f"{int(match[0]):,}", text)


def show_range(counts: Iterable[int]) -> str:
    """Write the smallest and the largest count as ``5 to 20``, or ``5`` if all are equal."""
    counts = sorted(counts)
    return " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))


def format_duration(seconds: float) -> str:
    """Format a duration, such as ``0.8 s``, ``12 s``, ``45 min`` or ``2.1 h``; "–" for NaN."""
    if seconds != seconds:
        return "–"
    if seconds < 89.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 89.5 else f"{minutes / 60:,.1f} h"


def format_bytes(count: float) -> str:
    """Format a number of bytes, such as ``1.5 GB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB" if count < 10 else f"{count:,.0f} GB"


def plural(count: int, noun: str) -> str:
    """Write a number with its noun, such as ``1 seed`` or ``5 seeds``."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


def listed(words: Sequence[str]) -> str:
    """Join words with commas, or semicolons if they contain commas, and a final 'and'."""
    separator = "; " if any("," in word for word in words) else ", "
    return " and ".join([part for part in (separator.join(words[:-1]), *words[-1:]) if part])


def align(
    rows: Iterable[Sequence[str]], indent: str = "", numbers_from: int | None = None
) -> list[str]:
    """Align the cells of a table, one line per row; columns of numbers are aligned to the right."""
    cells = [[*row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = len(widths) if numbers_from is None else numbers_from
    padded = (
        [*map(str.ljust, row[:text], widths), *map(str.rjust, row[text:], widths[text:])]
        for row in cells
    )
    return [(indent + "  ".join(row)).rstrip() for row in padded]
