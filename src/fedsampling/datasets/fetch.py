"""From a :class:`~fedsampling.datasets.sources.Source` to its verified text in the cache.

The cache, then the mirror, then the publisher.  Whatever arrives is unpacked within a size bound
and compared with the checksum in memory; only then does it take its place, by one rename.  So the
cache holds right files or none, and what stood there stays until something right replaces it.
"""

import bz2
import hashlib
import io
import lzma
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import IO

import requests

from fedsampling.datasets.sources import Source
from fedsampling.errors import InputError
from fedsampling.files import write_bytes

TIMEOUT = (10.0, 30.0)  # seconds to connect, and between two pieces of an answer
PAUSES = (1.0, 2.0)  # seconds before each further attempt

_ABSENT = (403, 404, 410)  # object stores answer 403 for what they do not hold
_PIECE = 1 << 16
_OPENERS: dict[str, Callable[[io.BytesIO], IO[bytes]]] = {
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}


def fetch(source: Source, cache: Path, mirror: str | None) -> Path:
    """Return the path of a source's decompressed, verified file, bringing it if need be.

    Parameters
    ----------
    source : Source
    cache : Path
        The file is kept as ``<cache>/<dataset>/<file>`` and verified again whenever it is used.
    mirror : str or None
        A folder or an http(s) URL, looked at before the publisher for
        ``<mirror>/<dataset>/<file>`` and ``<mirror>/<file>``, plain or with .xz or .bz2.

    Raises
    ------
    InputError
        If the mirror is missing or holds a file that is not the published one, if nothing right
        can be had anywhere, or if the cache cannot be written.
    """
    target = cache / source.dataset / source.file
    if not _is_verified(source, target):
        content = _from_mirror(source, mirror) if mirror else None
        if content is None:
            content = _from_publisher(source, mirror)
        write_bytes(target, content)
    return target


class _CorruptError(Exception):
    """What arrived is not the published content; the text completes "it ..."."""


def _is_verified(source: Source, target: Path) -> bool:
    try:
        _unpack(source, source.file, _read(source, target))
    except (OSError, _CorruptError):  # absent, unreadable or damaged: bring it again
        return False
    return True


def _from_mirror(source: Source, mirror: str) -> bytes | None:
    """Return the content, or None if the mirror does not hold the file."""
    remote = mirror.startswith(("http://", "https://"))
    if not remote and not Path(mirror).expanduser().is_dir():
        raise InputError(
            f"mirror: '{mirror}' is not a folder, so {source.file} was not looked for; "
            f"give the folder or URL that holds {source.dataset}/{source.file}"
        )
    for name in _names(source):
        place = f"{mirror.rstrip('/')}/{name}" if remote else str(Path(mirror).expanduser() / name)
        try:
            raw = _download(source, place) if remote else _read_if_there(source, Path(place))
            if raw is not None:
                return _unpack(source, name, raw)
        except _CorruptError as error:
            raise InputError(
                f"mirror: {place} is not the published {source.file}: it {error}; "
                f"copy it again from {source.urls[0]}"
            ) from error
        except OSError as error:  # requests' exceptions are among these
            raise InputError(
                f"mirror: {place} cannot be read ({_reason(error)}); mend it or unset mirror"
            ) from error
    return None


def _from_publisher(source: Source, mirror: str | None) -> bytes:
    looked = []
    if mirror:
        looked.append(
            f"not in the mirror {mirror} (neither {source.dataset}/{source.file} nor "
            f"{source.file}, be it plain, {' or '.join(_OPENERS)})"
        )
    for url in source.urls:
        try:
            raw = _download(source, url)
            if raw is not None:
                return _unpack(source, PurePosixPath(url).name, raw)
            looked.append(f"not at {url}")
        except _CorruptError as error:
            looked.append(f"{url}: it {error}")
        except requests.RequestException as error:
            looked.append(f"{url} cannot be reached ({_reason(error)})")
    packed = PurePosixPath(source.urls[0]).name
    raise InputError(
        f"{source.file}: {', '.join(looked)}; download {source.urls[0]} by hand as "
        f"{source.dataset}/{packed} into a folder of yours and set mirror to that folder"
    )


def _names(source: Source) -> list[str]:
    return [
        folder + source.file + suffix
        for folder in (f"{source.dataset}/", "")
        for suffix in ("", *_OPENERS)
    ]


def _read_if_there(source: Source, path: Path) -> bytes | None:
    try:
        return _read(source, path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read(source: Source, path: Path) -> bytes:
    with path.open("rb") as stream:
        return _bounded(source, iter(lambda: stream.read(_PIECE), b""))


def _download(source: Source, url: str) -> bytes | None:
    """Return a URL's bytes, or None if there is nothing; tries again where that can help."""
    for pause in (*PAUSES, None):
        try:
            with requests.get(url, stream=True, timeout=TIMEOUT) as response:
                if response.status_code in _ABSENT:
                    return None
                response.raise_for_status()
                return _bounded(source, response.iter_content(_PIECE))
        except requests.RequestException:
            if pause is None:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _bounded(source: Source, pieces: Iterable[bytes]) -> bytes:
    """Join the pieces, refusing more than the content could take even if packing gains nothing."""
    raw = bytearray()
    for piece in pieces:
        raw += piece
        if len(raw) > source.size + _PIECE:
            raise _CorruptError(f"is longer than the {source.size:,} bytes published")
    return bytes(raw)


def _unpack(source: Source, name: str, raw: bytes) -> bytes:
    """Decompress by the name's suffix, never beyond the known size, and verify."""
    opener = _OPENERS.get(PurePosixPath(name).suffix)
    if opener is None:
        content = raw
    else:
        try:
            with opener(io.BytesIO(raw)) as stream:
                content = stream.read(source.size + 1)
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise _CorruptError(f"cannot be decompressed ({error})") from error
    if len(content) > source.size:
        raise _CorruptError(f"holds more than the {source.size:,} bytes published")
    algorithm, expected = source.checksum.split(":")
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise _CorruptError(f"has {algorithm} {found}, expected {expected}")
    return content


def _reason(error: OSError) -> str:
    """Say in a few words what the libraries below say in many."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return error.strerror or type(error).__name__
