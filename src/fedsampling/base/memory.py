"""Memory limits: available bytes, and one-line errors for runs that need more."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedsampling.base.errors import InputError

FIX = "give a smaller model or batch, fewer seeds at once or fewer clients"
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container or a cluster's job


def available() -> int:
    """Return the memory of this machine in bytes, or of this process's control group if smaller."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # no control group, or no limit
        memory = min(memory, int(_GROUP_LIMIT.read_text()))
    return memory


def lacking(size: float) -> str:
    """Return an error line if a run that needs `size` bytes exceeds the memory, else ""."""
    limit = available()
    if size <= limit:
        return ""
    return f"memory: at least {size / 1e9:,.0f} GB needed, {limit / 1e9:,.0f} GB available; {FIX}"


@contextmanager
def in_a_line() -> Iterator[None]:
    """Convert out-of-memory errors of NumPy and PyTorch into an InputError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # NumPy's, and PyTorch's
        text = str(error).lower()
        if isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text:
            raise InputError(f"memory: not enough for this run; {FIX}") from error
        raise
