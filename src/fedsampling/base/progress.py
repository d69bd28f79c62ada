"""Progress of long work: bars in a terminal, lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
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
    if show is None:
        show = sys.stderr.isatty() or _in_a_notebook()
    if not show:
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
