"""Text for people: tables for the terminal, durations and sizes."""

from collections.abc import Iterable, Sequence


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


# Durations and sizes as text for readers.


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
