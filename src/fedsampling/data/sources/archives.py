"""Safe unpacking of archives.

Python's standard library reads them; this module adds limits.  Nothing is written outside the
folder; links, devices and members above the size limit are rejected.
"""

import errno
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO, cast

from fedsampling.base.errors import InputError

# Errors that member names can cause: too long, or a file in place of a folder.
_NAME_ERRORS = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)
# Errors that another folder avoids.
_FOLDER_ERRORS = (errno.EACCES, errno.EDQUOT, errno.ENOSPC, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Bounds:
    """Limits of an archive: number of members, and total bytes of unpacked members."""

    members: int
    size: int


def unpack(
    archive: Path, folder: Path, bounds: Bounds, selected: Callable[[str], bool] = lambda name: True
) -> dict[str, Path]:
    """Unpack the selected files of a .zip or .tar, .tar.gz, .tar.bz2 or .tar.xz, by member name.

    Members that are not selected count as members of `bounds`, but not for its size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    remaining = bounds.size
    with _readable_errors(archive):
        read = _zip if zipfile.is_zipfile(archive) else _tar
        for count, (name, size, extract) in enumerate(read(archive, folder), 1):
            if count > bounds.members:
                raise _HostileError(f"it has more than {bounds.members:,} members")
            path = _place(folder, name, bool(extract))
            if extract and selected(name):
                remaining -= size
                if remaining < 0:
                    raise _HostileError(f"it unpacks to more than {bounds.size:,} bytes")
                extract()
                paths[name] = path
    return paths


def _place(folder: Path, name: str, file: bool) -> Path:
    """Return the path of an unpacked member, after checking that it is inside the folder."""
    path, label = folder / name, repr(name) if len(name) < 80 else f"{name[:60]!r}…"
    if "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise _HostileError(f"member {label} is outside {folder}")
    if file and path.resolve() == folder.resolve():
        raise _HostileError(f"member {label} is a file without a name")
    return path


class _HostileError(Exception):
    """Content that a genuine archive does not have."""


# Name, size, and the function that unpacks the member; None for a folder.
_Member = tuple[str, int, Callable[[], object] | None]


def _zip(archive: Path, folder: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():

            def extract(info: zipfile.ZipInfo = info) -> str:
                return opened.extract(info, folder)

            yield info.filename, info.file_size, None if info.filename.endswith("/") else extract


def _tar(archive: Path, folder: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r|*") as opened:  # a stream: a compressed one is read only once
        for info in opened:
            if not (info.isreg() or info.isdir()):
                raise _HostileError(f"member {info.name!r} is a link or device")

            def extract(info: tarfile.TarInfo = info) -> None:
                # Extract only contents: owners and permissions are not needed, and filters
                # against them need Python 3.11.4.
                path = folder / info.name
                path.parent.mkdir(parents=True, exist_ok=True)
                with cast(IO[bytes], opened.extractfile(info)) as packed, path.open("wb") as file:
                    shutil.copyfileobj(packed, file)

            yield info.name, info.size, None if info.isdir() else extract


@contextmanager
def _readable_errors(archive: Path) -> Iterator[None]:
    """Convert errors of an archive's content, and of the disk, to one line."""
    try:
        yield
    except _HostileError as error:
        raise _unusable(archive, str(error)) from error
    except OSError as error:
        if error.errno is None:  # gzip and bz2 report invalid data in this way
            raise _unusable(archive, f"it is corrupt ({error})") from error
        if error.errno in _NAME_ERRORS:
            reason = f"a member's name is unusable ({error.strerror})"
            raise _unusable(archive, reason) from error
        is_full = error.errno in _FOLDER_ERRORS
        fix = "choose a writable folder with free space" if is_full else "run the command again"
        raise InputError(
            f"{error.filename or archive}: cannot be unpacked ({error.strerror}); {fix}"
        ) from error
    except (
        EOFError,
        LZMAError,
        ValueError,  # a field of a header that is not a number
        NotImplementedError,
        RuntimeError,  # an encrypted member of a zip archive
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise _unusable(archive, f"it is corrupt ({error})") from error


def _unusable(archive: Path, reason: str) -> InputError:
    return InputError(f"{archive}: not used: {reason}; delete it and fetch it again")
