"""Keep the memory that training frees, instead of giving it back and asking again.

Every step of stacked training makes and drops arrays of many megabytes.  By default the C library
returns each to the system, which hands it out again page by page, cleared: with large networks
that takes longer than the arithmetic (``benchmarks/recurrent.py`` shows it).
"""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_NEVER = 2**31 - 1


def keep_memory() -> bool:
    """Let this process keep what it frees, for its own later use.

    Returns
    -------
    bool
        Whether the C library is one that can be told so (glibc); elsewhere nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _NEVER)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER))
