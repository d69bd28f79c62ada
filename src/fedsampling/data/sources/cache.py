"""Files in the cache that only one process at a time may create."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from fedsampling.base.files import checked, writing


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Lock a file, so that only one process at a time creates it; others wait."""
    lock = target.with_name(f"{target.name}.lock")
    with writing(lock):
        checked(lock).parent.mkdir(parents=True, exist_ok=True)
        acquired = FileLock(lock).acquire()
    with acquired:
        yield


def converted(target: Path, make: Callable[[Path], None]) -> Path:
    """Return a cached file that is slow to derive from verified files; create it once."""
    if not target.is_file():
        with locked(target):
            if not target.is_file():
                make(target)
    return target
