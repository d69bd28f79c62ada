"""How a device computes: all slots at once on a GPU, one by one on a CPU; and its memory.

:func:`at_once` is the only place that chooses between the two ways.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

STACK_BYTES = 2**30  # of the steps of slots that are trained together on a CPU; fits its cache
GPU_SHARE = 0.8  # of a GPU's memory for these steps; the rest is for data, models and observations
JOBS_VARIABLE = "FEDSAMPLING_JOBS_PER_GPU"  # jobs that share this process's GPU
_forced = False
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
_NEVER = 2**31 - 1


def at_once(device: torch.device) -> bool:
    """Whether the device computes all slots in one launch: a GPU does, a CPU computes one by one.

    Both give the same results up to rounding.
    """
    return _forced or device.type != "cpu"


@contextmanager
def forced_at_once() -> Iterator[None]:
    """Compute all slots at once on a CPU, too, to test a GPU's way and count its operations."""
    global _forced
    before, _forced = _forced, True
    try:
        yield
    finally:
        _forced = before


def stack_bytes(device: str) -> float:
    """Return the bytes that the steps of a stack's slots may use, together."""
    if device == "cpu":
        return STACK_BYTES
    total = torch.cuda.get_device_properties(device).total_memory
    return GPU_SHARE * total / int(os.environ.get(JOBS_VARIABLE, "1"))


def keep_memory() -> bool:
    """Let this process reuse the memory that it frees.

    Every step of stacked training creates and frees arrays of many megabytes.  By default the C
    library returns each to the system, which clears it page by page before handing it out again.
    For large networks this takes longer than the arithmetic (see ``benchmarks/recurrent.py``).

    Returns whether the C library supports this (glibc); otherwise nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _NEVER)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER))


@contextmanager
def precise(device: str) -> Iterator[None]:
    """On a GPU, convolve in single precision, with the same result in each run.

    By default, PyTorch rounds the inputs of convolutions to ten bits (TF32), and its kernels may
    add in another order in each run.
    """
    if device == "cpu":
        yield
    else:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
