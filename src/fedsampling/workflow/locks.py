"""Locks of files in a results folder, which a process holds until it ends."""

import os
import platform
import sys
import time
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import checked, writing

if sys.platform != "win32":  # where a project is refused
    import fcntl

CHECK_SECONDS = 1  # the most that a check, which holds a lock only to test it, can take
_held: dict[Path, int] = {}  # open files of the locks that this process holds


def hold(path: Path, shared: bool = False) -> None:
    """Lock a file until this process ends; no effect if it holds the lock.

    `shared`: other processes may share it.
    """
    if not is_held(path):
        _held[path.absolute()] = _locked(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def is_held(path: Path) -> bool:
    """Whether this process holds the lock of a file."""
    return path.absolute() in _held


def check_free(path: Path) -> None:
    """Raise InputError if another process holds the lock of a file."""
    os.close(_locked(path, fcntl.LOCK_EX))


def _locked(path: Path, kind: int) -> int:
    """Open, lock and sign a file; the lock ends when the file is closed or the process ends."""
    with writing(path):
        checked(path).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            _wait_for(handle, kind)
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace")
            os.close(handle)
            raise InputError(
                f"{path.parent}: another call is running in this folder ({owner}); "
                "wait until it ends, or name this run: --config run=NAME"
            ) from None
        except OSError:
            pass  # no locks on this file system; jobs still refuse another call's configuration
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
    return handle


def _wait_for(handle: int, kind: int) -> None:
    """Lock an open file; wait for another call's check, which holds the lock only for an instant.

    Calls and jobs hold their locks until they end, and are not waited for.
    """
    deadline = time.monotonic() + CHECK_SECONDS
    while True:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)
