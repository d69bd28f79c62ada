"""Text in a terminal: progress of long work, tables, durations, sizes and counted nouns."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

PERIOD = 15.0  # seconds between plain lines
REFRESH = 0.2  # seconds between updates of a line that is rewritten


@contextmanager
def reporter() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function of (name, done, total) that reports the finished steps of a job."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console  # importing rich takes longer than the rest of this module
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, object] = {}

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)  # type: ignore[arg-type]

        yield report


@contextmanager
def rewritten_line(
    name: str, total: int, show: bool | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function of `done` that rewrites a line on stderr; it is erased at the end."""
    if not (sys.stderr.isatty() or _in_a_notebook() if show is None else show):
        yield lambda done: None
        return
    began = last = time.monotonic()
    width = 0

    def report(done: int) -> None:
        nonlocal last, width
        now = time.monotonic()
        if done and (now - last >= REFRESH or done == total):
            last = now
            remaining = (now - began) * (total - done) / done
            text = f"{name}: {done} of {total} ({100 * done / total:.0f} %), {remaining:.0f} s left"
            width = max(width, len(text))
            print(f"\r{text:{width}}", end="", file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        print(f"\r{'':{width}}\r", end="", file=sys.stderr, flush=True)


def _in_a_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _lines() -> Callable[[str, int, int], None]:
    last = time.monotonic()

    def report(name: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > PERIOD:
            last = now
            print(f"{name}: {done} of {total} ({100 * done / total:.0f} %)", file=sys.stderr)

    return report


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


def plural(count: int, noun: str) -> str:
    """Write a number with its noun, such as ``1 seed`` or ``5 seeds``."""
    return f"{count} {noun}{'s' if count != 1 else ''}"


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
