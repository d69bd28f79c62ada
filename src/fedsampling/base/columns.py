"""Tables for the terminal."""

from collections.abc import Iterable, Sequence


def align(
    rows: Iterable[Sequence[str]], indent: str = "", numbers_from: int | None = None
) -> list[str]:
    """Align the cells of a table, one line per row.

    `rows`: all of the same length. `indent`: put before each line. `numbers_from`: index of the
    first column that is aligned to the right; by default none is.
    """
    cells = [[*row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = len(widths) if numbers_from is None else numbers_from
    padded = (
        [*map(str.ljust, row[:text], widths), *map(str.rjust, row[text:], widths[text:])]
        for row in cells
    )
    return [(indent + "  ".join(row)).rstrip() for row in padded]
