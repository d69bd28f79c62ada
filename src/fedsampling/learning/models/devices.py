"""How a device computes, and how this process keeps its memory."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
_NEVER = 2**31 - 1


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
