"""Local data files: comparison with the published file, copies, and archives."""

import bz2
import gzip
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.files import checked, reading, writing
from fedsampling.data.sources.sources import Source

PIECE_BYTES = 1 << 16  # read at once
MAX_UNKNOWN_BYTES = 8 << 30  # of a file whose size is unknown
MAX_UNPACKED_BYTES = 4 << 30  # of all files in an archive
# Python 3.11.0 to 3.11.3 cannot filter; the archive's checksum has been compared before.
FILTER: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
_CORRUPT = (EOFError, lzma.LZMAError, RuntimeError, ValueError, zlib.error)  # in archives
# How to read a packed file, by its suffix.
OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


class DifferingError(Exception):
    """A file that is not the published one; the message completes "it …"."""


def is_verified(source: Source, path: Path) -> bool:
    """Whether a file exists and, as far as can be verified, equals the published file."""
    try:
        verify(source, path)
    except (FileNotFoundError, DifferingError):
        return False
    return True


def verify(source: Source, path: Path) -> None:
    """Compare a file in the cache with its known size and checksums."""
    with reading(path):
        size = path.stat().st_size
        if size == 0 or size != (source.size or size):
            raise DifferingError(f"has {size:,} bytes, expected {source.size or 'some'}")
        for checksum in filter(None, (source.checksum, source.published)):
            algorithm, digest = checksum.split(":")
            with path.open("rb") as stream:
                actual = hashlib.file_digest(stream, algorithm).hexdigest()
            if actual != digest:
                raise DifferingError(f"has {algorithm} {actual}, expected {digest}")


def is_packed(source: Source, name: str) -> bool:
    """Whether a file name has a compression suffix that the stored file does not have."""
    suffix = PurePosixPath(name).suffix
    return suffix in OPENERS and suffix != PurePosixPath(source.file).suffix


def copy(source: Source, path: Path, output: Path) -> None:
    """Copy a file, decompressed by its suffix, up to the source's size."""
    opener = OPENERS[path.suffix] if is_packed(source, path.name) else open
    bound = remaining = source.size or MAX_UNKNOWN_BYTES
    with writing(output), output.open("wb") as stream:
        for piece in _pieces(path, opener):
            remaining -= len(piece)
            if remaining < 0:
                raise DifferingError(f"holds more than the {bound:,} bytes expected")
            stream.write(piece)


def _pieces(path: Path, opener: Callable[..., Any]) -> Iterator[bytes]:
    try:
        with opener(path, "rb") as stream:
            while piece := stream.read(PIECE_BYTES):
                yield piece
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise DifferingError(f"cannot be decompressed ({error})") from error
    except OSError as error:
        if error.errno is None:  # bz2 reports data in another format in this way
            raise DifferingError(f"cannot be decompressed ({error})") from error
        raise InputError(f"{path}: cannot be read ({error.strerror}); make it readable") from error


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip of limited size, or a .tar whose checksum is known, compressed or not."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as members:
                if sum(member.file_size for member in members.infolist()) > MAX_UNPACKED_BYTES:
                    raise ValueError(f"it unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
                members.extractall(checked(folder))
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(checked(folder), **FILTER)
    except (*_CORRUPT, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or f"invalid or corrupt: {error}"
        raise InputError(
            f"{archive}: cannot be unpacked ({reason}); delete it and fetch it again into a "
            "writable folder with free space"
        ) from error
