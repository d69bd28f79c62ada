"""Memory: available bytes, one-line errors for runs that need more, and cyclic garbage."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.machine import total_memory

FIX = "give a smaller model or batch, fewer seeds at once or fewer clients"
GARBAGE_THRESHOLDS = (70_000, 20, 50)  # new objects, and collections of younger generations
_GROUPS = Path("/proc/self/cgroup")  # control groups of this process
_MOUNT = Path("/sys/fs/cgroup")


def available() -> int:
    """Return the bytes that the machine, the container or the cluster's job has."""
    limits = [total_memory(), *_group_limits(), *_slurm_limits()]
    return min((limit for limit in limits if limit), default=sys.maxsize)


def collect_rarely() -> None:
    """Search for cyclic garbage a hundred times less often than Python does.

    For processes that plan and draw: they have millions of objects, hardly any of them garbage, and
    the searches would take up to a quarter of their time.  Processes that train have few objects,
    but large arrays.
    """
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def _group_limits() -> Iterator[int]:
    """Yield the limits of the process's control groups and of those around them, if any.

    Version 1 has a folder per resource, version 2 one for all.  In a container, the outermost
    folder is the container's, whatever path the process's list names.
    """
    groups = [(_MOUNT / "memory", "", "memory.limit_in_bytes"), (_MOUNT, "", "memory.max")]
    with suppress(OSError):
        for line in _GROUPS.read_text("utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            if "memory" in kinds.split(","):
                groups.append((_MOUNT / "memory", path, "memory.limit_in_bytes"))
            elif not kinds:
                groups.append((_MOUNT, path, "memory.max"))
    for mount, path, name in groups:
        folder = mount / path.strip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(mount):
                with suppress(OSError, ValueError):  # no such group, or "max"
                    yield int((group / name).read_text("utf-8"))


def _slurm_limits() -> Iterator[int]:
    """Yield the memory that SLURM gave to this job, which some sites enforce without groups."""
    with suppress(KeyError, ValueError):
        yield int(os.environ["SLURM_MEM_PER_NODE"]) * 2**20  # 0: all of the node
    with suppress(KeyError, ValueError):
        cpus = int(os.environ["SLURM_CPUS_ON_NODE"])
        yield int(os.environ["SLURM_MEM_PER_CPU"]) * cpus * 2**20


def lacking(size: float) -> str:
    """Return an error line if a run that needs `size` bytes exceeds the memory, else ""."""
    limit = available()
    if size <= limit:
        return ""
    return f"memory: at least {size / 1e9:,.0f} GB needed, {limit / 1e9:,.0f} GB available; {FIX}"


def exhausted(error: BaseException) -> InputError | None:
    """Return the line for an out-of-memory error of NumPy or PyTorch; None for another error."""
    texts = ("allocate memory", "out of memory")
    of_torch = isinstance(error, RuntimeError) and any(t in str(error).lower() for t in texts)
    if isinstance(error, MemoryError) or of_torch:
        return InputError(f"memory: not enough for this run; {FIX}")
    return None


@contextmanager
def in_a_line() -> Iterator[None]:
    """Convert out-of-memory errors of NumPy and PyTorch into an InputError."""
    try:
        yield
    except Exception as error:
        if line := exhausted(error):
            raise line from error
        raise
