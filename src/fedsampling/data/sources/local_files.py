"""Local data files: verification against the published file, and unpacking of archives.

Nothing of an archive is written outside the folder; links, devices and members above the size limit
are rejected.
"""

import bz2
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from filelock import FileLock

from fedsampling.base.errors import InputError
from fedsampling.base.files import writing
from fedsampling.data.sources.sources import SOURCES, Source

PIECE_BYTES = 1 << 16  # read at once
MAX_UNKNOWN_BYTES = 8 << 30  # of a file whose size is unknown
# How to read a packed file, by its suffix.
OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}
# First bytes of files without a checksum, to reject login and error pages.
_BEGINNINGS = {".h5": (b"\x89HDF\r\n\x1a\n",), ".json": (b"{", b"["), ".zip": (b"PK\x03\x04",)}


class CorruptError(Exception):
    """The content differs from the published content; the message completes "it ..."."""


class UnreadableError(Exception):
    """A local file cannot be read; the message is the reason."""


def is_verified(source: Source, path: Path) -> bool:
    """Whether a file exists and, as far as can be verified, equals the published file."""
    try:
        verify(source, path)
    except UnreadableError as error:
        if os.path.lexists(path):
            raise InputError(f"{path}: cannot be read ({error}); make it readable") from error
        return False
    except CorruptError:
        return False
    return True


def verify(source: Source, path: Path) -> None:
    """Compare a file in the cache with its known size, checksum and first bytes."""
    try:
        size = path.stat().st_size
        if size == 0 or size != (source.size or size):
            raise CorruptError(f"has {size:,} bytes, expected {source.size or 'some'}")
        for checksum in filter(None, (source.checksum, source.published)):
            algorithm, digest = checksum.split(":")
            with path.open("rb") as stream:
                actual = hashlib.file_digest(stream, algorithm).hexdigest()
            if actual != digest:
                raise CorruptError(f"has {algorithm} {actual}, expected {digest}")
        beginning = _BEGINNINGS.get(PurePosixPath(source.file).suffix, (b"",))
        with path.open("rb") as stream:
            if not (source.checksum or stream.read(8).startswith(beginning)):
                raise CorruptError(f"does not begin as {source.file} must")
    except OSError as error:
        raise UnreadableError(str(error.strerror)) from error


def is_packed(source: Source, name: str) -> bool:
    """Whether a file name has a compression suffix that the stored file does not have."""
    suffix = PurePosixPath(name).suffix
    return suffix in OPENERS and suffix != PurePosixPath(source.file).suffix


def copy(source: Source, name: str, path: Path, output: Path) -> None:
    """Copy a file, decompressed by the suffix of `name`, up to the source's size."""
    opener = OPENERS[PurePosixPath(name).suffix] if is_packed(source, name) else open
    copy_unpacked(path, opener, output, source.size or MAX_UNKNOWN_BYTES)


def copy_unpacked(path: Path, opener: Callable[..., Any], output: Path, bound: int) -> None:
    """Copy at most `bound` bytes that `opener` reads from a file; errors as in :func:`copy`."""
    remaining = bound
    with writing(output), output.open("wb") as stream:
        for piece in _pieces(path, opener):
            remaining -= len(piece)
            if remaining < 0:
                raise CorruptError(f"holds more than the {bound:,} bytes expected")
            stream.write(piece)


def _pieces(path: Path, opener: Callable[..., Any]) -> Iterator[bytes]:
    try:
        with opener(path, "rb") as stream:
            while piece := stream.read(PIECE_BYTES):
                yield piece
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise CorruptError(f"cannot be decompressed ({error})") from error
    except OSError as error:
        if error.errno is None:  # bz2 reports data in another format in this way
            raise CorruptError(f"cannot be decompressed ({error})") from error
        raise UnreadableError(str(error.strerror)) from error


# Mirrors: folders or URLs with copies of the official files, tried before the publishers.


_NEVER_PACKED = (*OPENERS, ".lzma", ".webp", ".zip")  # already compressed


def is_url(mirror: str) -> bool:
    """Whether a mirror is a URL, not a folder."""
    return mirror.startswith(("http://", "https://"))


def folder(mirror: str) -> Path:
    """Return a mirror's folder, with ``~`` expanded."""
    return Path(os.path.expanduser(mirror))  # Path.expanduser fails for unknown users


def path_in_mirror(source: Source, mirror: str) -> Path | None:
    """Return the path of a file in a mirror's folder, plain or packed; None if absent, or a URL."""
    if is_url(mirror):
        return None
    paths = (folder(mirror) / name for name in names_in_mirror(source))
    return next((path for path in paths if path.is_file()), None)


def place_of(source: Source, cache: Path, mirror: str | None) -> str:
    """Return "cache", "mirror" or "", the place of a file, without reading it."""
    if source.path_in(cache).is_file():
        return "cache"
    return "mirror" if mirror and path_in_mirror(source, mirror) else ""


def names_in_mirror(source: Source) -> list[str]:
    """Return the possible paths of the file in a mirror."""
    suffixes = [""]
    if PurePosixPath(source.file).suffix not in _NEVER_PACKED:
        suffixes += OPENERS
    folders = [f"{source.dataset}/"]
    # A name that several datasets share (MNIST's) is ambiguous outside a dataset's folder.
    if len({entry.dataset for entry in SOURCES.values() if entry.file == source.file}) < 2:
        folders.append("")
    return [place + source.file + suffix for place in folders for suffix in suffixes]


# Files in the cache that only one process at a time may create.


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Lock a file, so that only one process at a time creates it; others wait."""
    lock = target.with_name(f"{target.name}.lock")
    with writing(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
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


@dataclass(frozen=True)
class Bounds:
    """Limits of an archive: number of members, and total bytes of unpacked members."""

    members: int
    size: int


# Name, size, and the function that opens a member; None for a folder.
_Member = tuple[str, int, Callable[[], IO[bytes] | None] | None]
_CORRUPT = (EOFError, LookupError, lzma.LZMAError, RuntimeError, ValueError, zlib.error)


def unpack(
    archive: Path, folder: Path, bounds: Bounds, selected: Callable[[str], bool] = lambda name: True
) -> dict[str, Path]:
    """Unpack the selected files of a .zip or .tar, .tar.gz, .tar.bz2 or .tar.xz, by member name.

    Members that are not selected count as members of `bounds`, but not for its size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    remaining = bounds.size
    try:
        read = _zip if zipfile.is_zipfile(archive) else _tar
        for count, (name, size, opened) in enumerate(read(archive), 1):
            path = folder / name
            if count > bounds.members:
                raise ValueError(f"it has more than {bounds.members:,} members")
            if "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
                raise ValueError(f"member {name[:60]!r} is outside {folder}")
            if opened and selected(name):
                remaining -= size
                if remaining < 0:
                    raise ValueError(f"it unpacks to more than {bounds.size:,} bytes")
                path.parent.mkdir(parents=True, exist_ok=True)
                with cast(IO[bytes], opened()) as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                paths[name] = path
    except (*_CORRUPT, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or f"invalid or corrupt: {error}"
        raise InputError(
            f"{archive}: cannot be unpacked ({reason}); delete it and fetch it again into a "
            "writable folder with free space"
        ) from error
    return paths


def _zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            open_member = None if info.is_dir() else partial(opened.open, info)
            yield info.filename, info.file_size, open_member


def _tar(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r|*") as opened:  # a stream: a compressed one is read only once
        for info in opened:
            if not (info.isreg() or info.isdir()):
                raise ValueError(f"member {info.name!r} is a link or device")
            yield info.name, info.size, None if info.isdir() else partial(opened.extractfile, info)
