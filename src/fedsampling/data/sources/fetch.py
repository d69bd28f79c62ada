"""Fetch official files: from the cache, else from a mirror, else from the publisher.

A dataset has editions, an edition has files, and :func:`fetch` fetches one file.  Every file is
verified before it enters the cache, and again at each use.  Downloads are retried.  If several
processes need a file, one fetches it and the others wait.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from fedsampling import __version__
from fedsampling.base.errors import InputError, gathering
from fedsampling.base.files import replacing, writing
from fedsampling.base.lazy import requests
from fedsampling.data.sources.cache import locked
from fedsampling.data.sources.local_files import (
    MAX_UNKNOWN_BYTES,
    PIECE_BYTES,
    DifferingError,
    copy,
    is_packed,
    is_verified,
    verify,
)
from fedsampling.data.sources.mirrors import folder, names_in_mirror, path_in_mirror
from fedsampling.data.sources.sources import Source, editions, no_files

Tell = Callable[[str, int, int], None]  # name, bytes received, bytes in total

_ABSENT = (403, 404, 410)  # object stores return 403 for missing objects
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)
_TIMEOUTS = 10.0, 30.0  # seconds until connected, and between two parts of a response
MIN_SPEED = 1000  # bytes per second, on average
PAUSES = (1.0, 5.0, 25.0)  # seconds before each further attempt


class AbsentError(Exception):
    """A server does not hold the file."""


class UnreachableError(Exception):
    """A download failed; the message is the reason in a few words."""

    def __init__(self, reason: str, is_temporary: bool) -> None:
        super().__init__(reason)
        self.is_temporary = is_temporary


def download(url: str, path: Path, bound: int, tell: Callable[[int, int], None]) -> None:
    """Download a URL into a file; more than `bound` bytes are a DifferingError.

    `tell` gets the bytes received and the total (or `bound`).
    """
    for pause in (*PAUSES, None):
        received = 0
        try:
            with writing(path), path.open("wb") as stream:
                for piece, total in _received(url):
                    received += len(piece)
                    if max(received, total) > bound:
                        raise DifferingError(f"is longer than the {bound:,} bytes expected")
                    stream.write(piece)
                    tell(received, total or bound)
            return
        except UnreachableError as error:
            if pause is None or not error.is_temporary:
                raise
            time.sleep(pause)


def _received(url: str) -> Iterator[tuple[bytes, int]]:
    """Yield the parts of a response, each with the length of the whole; 0 if it is unknown."""
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    # No transfer compression: lengths must refer to the file's own bytes.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"fedsampling/{__version__}"}
    try:
        with requests.get(url, stream=True, headers=headers, timeout=_TIMEOUTS) as response:
            status = response.status_code
            if status in _ABSENT:
                raise AbsentError
            if status != 200:
                raise UnreachableError(f"HTTP status {status}", status in _TEMPORARY)
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else 0
            received, start = 0, time.monotonic()
            # `read1` returns what has arrived, so that a server that drips is noticed.
            while piece := response.raw.read1(PIECE_BYTES, decode_content=False):
                received += len(piece)
                seconds = time.monotonic() - start
                if seconds > _TIMEOUTS[1] and received < MIN_SPEED * seconds:
                    raise UnreachableError(f"slower than {MIN_SPEED} bytes a second", True)
                yield piece, total
            if received < total:
                raise UnreachableError(f"broke off after {received:,} bytes", is_temporary=True)
    except (requests.Timeout, ReadTimeoutError) as error:
        raise UnreachableError("no answer in time", is_temporary=True) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        raise UnreachableError("the connection failed", is_temporary=True) from error


def fetch_dataset(
    dataset: str, cache: Path, mirror: str | None, tell: Tell | None = None
) -> dict[str, Path]:
    """Fetch one edition of a dataset: preferably from the cache, then the mirror, then its URLs."""
    lines: list[str] = []
    for files in ordered_editions(dataset, cache, mirror):
        with gathering([] if lines else lines):
            return fetch_all(files, cache, mirror, tell)
    raise InputError(*lines)


def ordered_editions(dataset: str, cache: Path, mirror: str | None) -> list[tuple[Source, ...]]:
    """List a dataset's editions: those in the cache, those in the mirror, those with all URLs."""
    listed = list(editions(dataset).values())
    if not listed:
        raise InputError(no_files(dataset))

    def rank(files: tuple[Source, ...]) -> int:
        if all(is_verified(source, source.path_in(cache)) for source in files):
            return 0
        if mirror and all(path_in_mirror(source, mirror) for source in files):
            return 1
        return 2 if all(source.urls for source in files) else 3

    return sorted(listed, key=rank)


def download_sizes(
    datasets: Iterable[str], cache: Path, mirror: str | None
) -> dict[str, int | None]:
    """Return the size in bytes of each missing official file; None if unknown."""
    return {
        source.name: source.size
        for dataset in sorted(set(datasets))
        for source in ordered_editions(dataset, cache, mirror)[0]
        if not source.path_in(cache).is_file()
    }


def fetch_all(
    sources: Iterable[Source], cache: Path, mirror: str | None, tell: Tell | None = None
) -> dict[str, Path]:
    """Fetch several files, by name; a failure does not stop the others."""
    paths: dict[str, Path] = {}
    lines: list[str] = []
    for source in sources:
        with gathering(lines):
            paths[source.name] = fetch(source, cache, mirror, tell)
    if lines:
        raise InputError(*dict.fromkeys(lines))  # a missing mirror is reported once
    return paths


def fetch(source: Source, cache: Path, mirror: str | None, tell: Tell | None = None) -> Path:
    """Return the path of a source's verified file, fetching the file if necessary.

    `mirror` is a folder that is searched before the publisher for ``<mirror>/<dataset>/<file>``,
    plain or with .xz, .bz2 or .gz. `tell` gets the source's name, the bytes received and the total
    (or an upper bound).
    """
    target = source.path_in(cache)
    if is_verified(source, target):
        return target
    if mirror and not os.path.isdir(folder(mirror)):
        raise InputError(
            f"mirror: '{mirror}' is not a folder; set it to the folder of {source.dataset}/"
        )
    with locked(target):
        if not is_verified(source, target):  # another process may have fetched it meanwhile
            if mirror and (path := path_in_mirror(source, mirror)):
                _from_mirror(source, target, path)
            else:
                _from_publisher(source, target, mirror, tell or (lambda *_: None))
    return target


def _install(source: Source, path: Path, target: Path) -> None:
    """Copy a file, plain or packed, into the cache if it is the published one."""
    with replacing(target) as new:
        copy(source, path, new)
        verify(source, new)


def _from_mirror(source: Source, target: Path, path: Path) -> None:
    try:
        _install(source, path, target)
    except DifferingError as error:
        raise InputError(
            f"mirror: {path} is not the published {source.file}: it {error}; "
            f"copy it again from {_origin(source)}"
        ) from error


def _from_publisher(source: Source, target: Path, mirror: str | None, tell: Tell) -> None:
    failures = []
    if mirror:
        names = ", ".join(names_in_mirror(source))
        failures.append(f"not in the mirror {mirror} (looked for {names})")
    for url in source.urls:
        try:
            _download(source, target, url, tell)
        except AbsentError:
            failures.append(f"not at {url}")
        except DifferingError as error:
            failures.append(f"{url}: it {error}")
        except UnreachableError as error:
            failures.append(f"{url} cannot be reached ({error})")
        else:
            return
    if not source.urls:
        failures.append("it has no URL")
    name = PurePosixPath(urlsplit(source.urls[0]).path).name if source.urls else source.file
    hint = name if is_packed(source, name) else source.file
    raise InputError(
        f"{source.file}: {', '.join(failures)}; download {_origin(source)} by hand, save it as "
        f"{source.dataset}/{hint} in any folder, and set mirror to that folder"
    )


def _download(source: Source, target: Path, url: str, tell: Tell) -> None:
    """Fetch the file from a URL."""
    bound = (source.size or MAX_UNKNOWN_BYTES) + PIECE_BYTES  # even if packing gains nothing
    with TemporaryDirectory(dir=target.parent) as scratch:
        path = Path(scratch, PurePosixPath(urlsplit(url).path).name or source.file)
        download(url, path, bound, lambda received, total: tell(source.name, received, total))
        _install(source, path, target)


def _origin(source: Source) -> str:
    return source.urls[0] if source.urls else source.page
