"""Leases on the runs of a store: only one process at a time computes a run.

Two processes need the same run if Snakemake was killed on a cluster and its successor submits the
job again, or if two users share a store.  The second process waits and uses the result.

A lease is a file (:class:`filelock.SoftFileLease`), because ``flock`` does not work across the
nodes of many clusters.  Its owner touches it regularly.  Another process takes a lease over if its
owner is known to be dead or has not touched it for :data:`LEASE_SECONDS`.  Leases only save work:
if two processes hold the same lease, for example after a machine was suspended, both write the same
table, and the second file replaces the first atomically.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import SoftFileLease, Timeout

from fedsampling.base.files import writing

HEARTBEAT_SECONDS = 15.0  # time between two touches
LEASE_SECONDS = 120.0  # time without a touch after which an owner elsewhere counts as dead
POLL_SECONDS = 1.0  # time between two checks of a lease that another process holds
MODE = 0o644  # all users of a shared store must be able to read who holds a lease


@contextmanager
def hold_leases(
    paths: Iterable[Path], on_wait: Callable[[str], None] = lambda owner: None
) -> Iterator[None]:
    """Hold several leases; wait for leases that other processes hold.

    `paths`: acquired in sorted order by all processes, which prevents deadlocks. `on_wait`: called
    with the owner of each lease that another process holds.
    """
    with ExitStack() as stack:
        for path in sorted(paths):
            lease = SoftFileLease(
                path,
                lease_duration=LEASE_SECONDS,
                heartbeat_interval=HEARTBEAT_SECONDS,
                poll_interval=POLL_SECONDS,
                mode=MODE,
            )
            _acquire(lease, path, on_wait)
            stack.callback(lease.release)
        yield


def _acquire(lease: SoftFileLease, path: Path, on_wait: Callable[[str], None]) -> None:
    timeout = 0.0
    with writing(path):
        while not lease.is_locked:
            try:
                lease.acquire(timeout=timeout)
            except Timeout:
                if not timeout:
                    owner = lease.owner
                    on_wait(
                        f"process {owner.pid} on {owner.hostname}"
                        if owner
                        else "an unknown process"
                    )
                elif _empty(path):
                    path.unlink(missing_ok=True)
                timeout = LEASE_SECONDS


def _empty(path: Path) -> bool:
    """Whether a lease is empty because its writer crashed, for example in a power failure.

    filelock would wait forever for an empty file: its older versions wrote empty locks.
    """
    with suppress(OSError):
        return path.stat().st_size == 0
    return False
