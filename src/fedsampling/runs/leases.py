"""Leases: only one process at a time computes a run.

They are for users who share a store, and for jobs that outlive a killed Snakemake.  A lease is a
file (:class:`filelock.SoftFileLease`), because ``flock`` does not work across the nodes of many
clusters.  Its owner touches it regularly; if it is dead or has not touched the lease for
:data:`LEASE_SECONDS`, another process takes the lease over.  Leases only save work: two processes
that hold the same lease write the same table.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import SoftFileLease, Timeout

from fedsampling.base.files import writing

HEARTBEAT_SECONDS = 15.0  # time between two touches
LEASE_SECONDS = 120.0  # time without a touch after which an owner elsewhere counts as dead
POLL_SECONDS = 1.0  # time between two checks of a lease that another process holds
LEASE_MODE = 0o644  # all users of a shared store must be able to read who holds a lease


@contextmanager
def hold_leases(
    paths: Iterable[Path], on_wait: Callable[[str], None] = lambda owner: None
) -> Iterator[None]:
    """Hold several leases, acquired in order; tell `on_wait` the owner of each that is held."""
    with ExitStack() as stack:
        for path in sorted(paths):
            lease = SoftFileLease(
                path,
                lease_duration=LEASE_SECONDS,
                heartbeat_interval=HEARTBEAT_SECONDS,
                poll_interval=POLL_SECONDS,
                mode=LEASE_MODE,
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
                    owner, unknown = lease.owner, "an unknown process"
                    on_wait(f"process {owner.pid} on {owner.hostname}" if owner else unknown)
                elif _empty(path):
                    path.unlink(missing_ok=True)
                timeout = LEASE_SECONDS


def _empty(path: Path) -> bool:
    """Whether a lease is empty because its writer crashed; filelock would wait forever."""
    with suppress(OSError):
        return path.stat().st_size == 0
    return False
