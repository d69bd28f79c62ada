"""Assignment of local GPUs: each job takes a free one and sees no other.

Snakemake counts GPUs (``--resources gpu=2``) but does not assign them.  A job locks a file per
GPU; the kernel releases the lock when the process ends, so no cleanup is needed.  If SLURM has
already assigned a GPU, that one is used.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

VISIBLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 0.5


@contextmanager
def assigned(uses_gpu: bool, on_wait: Callable[[], None]) -> Iterator[None]:
    """Restrict this process to one GPU; must be called before PyTorch is imported.

    If all GPUs are in use, calls `on_wait` once, and waits.
    """
    gpus = visible() if uses_gpu and not os.environ.get("SLURM_JOB_ID") else []
    if not gpus:
        yield
        return
    lock, gpu = _locked(gpus)
    if lock is None:
        on_wait()
    while lock is None:
        time.sleep(POLL_SECONDS)
        lock, gpu = _locked(gpus)
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = gpu
    try:
        yield
    finally:
        del os.environ[VISIBLE]
        if before is not None:
            os.environ[VISIBLE] = before
        lock.release()


def visible() -> list[str]:
    """Return the GPUs of this machine that this process may use."""
    variable = os.environ.get(VISIBLE)
    if variable is not None:
        # CUDA ignores everything after a negative number.
        names = [name.strip() for name in variable.split(",")]
        return [name for name in names if name and not name.startswith("-")]
    numbers = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")]
    return sorted((number for number in numbers if number.isdigit()), key=int)


def _locked(gpus: list[str]) -> tuple[FileLock | None, str]:
    """Lock a free GPU; (None, "") if all are in use.  Users do not share locks."""
    for gpu in gpus:
        name = re.sub(r"[^\w-]", "_", f"fedsampling-{os.getuid()}-gpu-{gpu}")
        lock = FileLock(Path(tempfile.gettempdir()) / f"{name}.lock", mode=0o600)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        return lock, gpu
    return None, ""
