"""Reading and atomic writing: a reader never sees an incomplete file.

The pipeline writes every file through :func:`write_bytes` or :func:`replacing`: the content goes to
a temporary file in the same folder, is flushed to the disk, and replaces the target by a rename,
which POSIX makes atomic.  After a power failure either the old or the new file exists, complete.

A file is corrupt only if its digest or its decoding fails.  A file that cannot be read, for lack of
permission, of file descriptors or of memory, or because a disk or server fails, may be intact: it
is reported in one line, and never renamed, replaced or taken for missing.

A folder that steps write to may come from somebody else, with links that lead out of it.  All files
are written, renamed and removed by functions of this module, which refuse to follow such links
(:func:`guard`).
"""

import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedsampling.base.errors import CorruptError, InputError

RECORD_DIGEST = "sha256"  # key in the JSON of :func:`write_record`


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an OSError, such as a full disk, into an InputError that names `path`."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); "
            "choose a writable folder with free space"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert an OSError, except for a missing file, into an InputError that names `path`."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def read_bytes(path: Path) -> bytes:
    """Read a file."""
    with reading(path):
        try:
            return path.read_bytes()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            return path.read_bytes()  # another node has replaced the file


@contextmanager
def decoding(path: Path, damage: str, fix: str, fix_if_missing: str = "") -> Iterator[None]:
    """Convert the errors of a decoder, which may be of any kind, into a line about `path`.

    `fix_if_missing`: another fix for a file that does not exist.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError as error:
        raise _unreadable(path, "not enough memory") from error
    except ImportError as error:  # of a part of the decoder, for example without file descriptors
        raise _unreadable(path, str(error)) from error
    except OSError as error:  # of decoders: without a number, or with the number of an invalid seek
        if fix_if_missing and error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise InputError(f"{path}: missing; {fix_if_missing}") from error
        if error.errno not in (None, errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            raise _unreadable(path, error.strerror or str(error)) from error
        raise CorruptError(f"{path}: {damage}; {fix}") from error
    except Exception as error:
        raise CorruptError(f"{path}: {damage}; {fix}") from error


def _unreadable(path: Path, reason: str) -> InputError:
    fix = "nothing was changed; make it readable or move it away, and run the same command again"
    return InputError(f"{path}: cannot be read ({reason}); {fix}")


_guarded: list[Path] = []  # folders that no file below them may leave


def guard(*folders: Path) -> None:
    """Let nothing below these folders be written or removed outside them, through links."""
    for folder in folders:
        if (absolute := Path(os.path.abspath(folder))) not in _guarded:
            _guarded.append(absolute)


def checked(path: Path) -> Path:
    """Return a path that is to be written or removed, after checking that no link leads it away.

    A guarded folder may itself be a link.
    """
    absolute = Path(os.path.abspath(path))
    around = [folder for folder in _guarded if absolute != folder and folder in absolute.parents]
    if around and not is_below(absolute, max(around, key=lambda folder: len(folder.parts))):
        raise InputError(f"{path}: a symbolic link leads out of the folder; replace it by a folder")
    return path


def is_below(path: Path, folder: Path) -> bool:
    """Whether a file is in a folder or below it, also after following the links to it."""
    name = Path(os.path.abspath(path))
    if not name.is_relative_to(os.path.abspath(folder)):
        return False
    return name.parent.resolve().is_relative_to(folder.resolve())


def remove(path: Path) -> None:
    """Remove a file, if it exists."""
    checked(path).unlink(missing_ok=True)


def rename(path: Path, target: Path) -> None:
    """Rename a file or a folder; a file replaces an older one."""
    os.replace(checked(path), checked(target))


def remove_folder(folder: Path) -> None:
    """Remove a folder with its content as far as possible; links are removed, not followed."""
    if checked(folder).is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def copy(source: Path, target: Path) -> None:
    """Copy a file, into a folder that is created if necessary."""
    checked(target).parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    shutil.copyfile(source, target)


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield a temporary path; on success it is renamed to `path`, on failure it is deleted."""
    with writing(path):
        checked(path).parent.mkdir(parents=True, exist_ok=True)
        # Same suffix as the target: some writers (matplotlib, Parquet) choose the format by it.
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            os.chmod(temporary, 0o666 & ~_umask() if mode is None else mode)
            _flush(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write `content` to `path` atomically, as UTF-8."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write `content` to `path` atomically, with sorted keys: equal content gives equal bytes."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_record(path: Path, content: Mapping[str, Any]) -> None:
    """Write a mapping to `path` as JSON, in its order, with their digest as ``sha256``."""
    record = {**content, RECORD_DIGEST: _record_digest(content)}
    write_text(path, json.dumps(record, indent=2, allow_nan=False) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read a mapping that :func:`write_record` wrote."""
    fix = "delete the file and rerun the command"
    try:
        text = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    with decoding(path, "not JSON", fix):
        content = json.loads(text)
    if not isinstance(content, dict):
        raise CorruptError(f"{path}: not a JSON object; {fix}")
    if content.pop(RECORD_DIGEST, None) != _record_digest(content):
        raise CorruptError(f"{path}: checksum differs; {fix}")
    return content


def check_writable(folder: Path) -> None:
    """Check that files can be created below `folder`, before work that stores results in it."""
    target = folder.absolute()
    nearest = next(path for path in (target, *target.parents) if os.path.lexists(path))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        reason = "not writable" if nearest.is_dir() else f"{nearest} is not a folder"
        raise InputError(f"{folder}: cannot be written ({reason}); choose a writable folder")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content as 64 hexadecimal digits."""
    with reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_by_name(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by name."""
    return {path.name: sha256(path) for path in paths}


def digest(content: Any) -> str:
    """Return sixteen hexadecimal digits of the SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def verified_digest(path: Path, recorded: str | None, actual: str, setting: str = "content") -> str:
    """Return the actual digest of a user's file, after comparing it with that in a setting."""
    if recorded not in (None, "", actual):
        raise ValueError(f"{setting}: {path} has changed; remove {setting} and rerun")
    return actual


def _record_digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _flush(path: Path) -> None:
    """Flush a file's content to the disk, so that the rename cannot reach the disk first."""
    handle = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
