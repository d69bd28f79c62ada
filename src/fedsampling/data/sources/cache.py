"""Files in the cache that only one process at a time may create."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from fedsampling.base.files import checked, read_bytes, sha256, write_text, writing


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
    """Return a file that `make` converts from verified files, which is slow.

    The cache keeps it with its SHA-256; it is converted again if the two do not match.
    """
    beside = target.with_name(f"{target.name}.sha256")
    if not _is_intact(target, beside):
        with locked(target):
            if not _is_intact(target, beside):  # another process may have created it meanwhile
                make(target)
                write_text(beside, sha256(target))
    return target


def _is_intact(path: Path, beside: Path) -> bool:
    try:
        return read_bytes(beside) == sha256(path).encode()
    except FileNotFoundError:
        return False
