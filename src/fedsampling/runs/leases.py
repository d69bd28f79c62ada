"""Leases: only one process at a time computes a run.

They are for users who share a store, and for jobs that outlive a killed Snakemake.  A lease is a
file (:class:`filelock.SoftFileLease`), because ``flock`` does not work across the nodes of many
clusters.  Its owner touches it regularly; if it is dead or has not touched the lease for
:data:`LEASE_SECONDS`, another process takes the lease over.  Leases only save work: two processes
that hold the same lease write the same table.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import SoftFileLease, Timeout

from fedsampling.base.files import remove, writing

HEARTBEAT_SECONDS = 15.0  # time between two touches
LEASE_SECONDS = 120.0  # time without a touch after which an owner elsewhere counts as dead
STOPPED_SECONDS = 5.0  # time between two checks whether an owner on this machine was stopped
POLL_SECONDS = 1.0  # time between two checks of a lease that another process holds
LEASE_MODE = 0o644  # all users of a shared store must be able to read who holds a lease


@contextmanager
def hold_leases(
    paths: Iterable[Path], on_wait: Callable[[str], None] = lambda owner: None
) -> Iterator[None]:
    """Hold several leases, acquired in order; tell `on_wait` each owner that is waited for."""
    leases = [
        SoftFileLease(
            path,
            lease_duration=LEASE_SECONDS,
            heartbeat_interval=HEARTBEAT_SECONDS,
            poll_interval=POLL_SECONDS,
            mode=LEASE_MODE,
        )
        for path in sorted(paths)
    ]
    reported: set[str] = set()  # owners
    with ExitStack() as stack:
        for number, lease in enumerate(leases):
            with writing(path := Path(lease.lock_file)):
                while not lease.is_locked:
                    if not _acquired(lease, 0) and not _freed(lease, path):
                        if (owner := _owner(lease)) not in reported:
                            reported.add(owner)
                            on_wait(owner)
                        # The time without a touch begins for all leases, so they expire together.
                        for later in leases[number + 1 :]:
                            if _acquired(later, 0):
                                later.release()
                        _acquired(lease, STOPPED_SECONDS)
            stack.callback(lease.release)
        yield


def _acquired(lease: SoftFileLease, timeout: float) -> bool:
    with suppress(Timeout):
        lease.acquire(timeout=timeout)
        return True
    return False


def _freed(lease: SoftFileLease, path: Path) -> bool:
    """Remove a lease that nobody will release: its owner was stopped, or crashed as it wrote it."""
    if is_dead := _is_stopped(lease) or _is_empty(path):
        remove(path)
    return is_dead


def _owner(lease: SoftFileLease) -> str:
    owner = lease.owner
    return f"process {owner.pid} on {owner.hostname}" if owner else "an unknown process"


def _is_stopped(lease: SoftFileLease) -> bool:
    """Whether the owner is a process of this machine that was stopped, such as by Ctrl-Z.

    If it goes on later, it computes the same results again.
    """
    if (owner := lease.owner) and owner.hostname.partition("?")[0] == socket.gethostname():
        with suppress(OSError, IndexError):  # the process is hidden, or there is no /proc
            state = Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[0]
            return state in ("T", "t")
    return False


def _is_empty(path: Path) -> bool:
    """Whether a lease stays empty because its writer crashed; filelock would wait forever."""
    with suppress(OSError):
        status = path.stat()
        return not status.st_size and abs(time.time() - status.st_mtime) > LEASE_SECONDS
    return False
