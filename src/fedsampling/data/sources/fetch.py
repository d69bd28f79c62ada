"""Fetch official files: from the cache, else from a mirror, else from the publisher.

A dataset has editions, an edition has files, and :func:`fetch` fetches one file.  Every file is
verified before it enters the cache, and again at each use.  Downloads are retried, and resumed.  If
several processes need a file, one fetches it and the others wait.
"""

import os
import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event, Lock, Thread
from urllib.parse import urlsplit

from fedsampling import __version__
from fedsampling.base.errors import InputError, gathering
from fedsampling.base.files import replacing, writing
from fedsampling.base.lazy import requests
from fedsampling.data.sources.local_files import (
    MAX_UNKNOWN_BYTES,
    PIECE_BYTES,
    CorruptError,
    UnreadableError,
    copy,
    folder,
    is_packed,
    is_url,
    is_verified,
    locked,
    names_in_mirror,
    path_in_mirror,
    verify,
)
from fedsampling.data.sources.sources import Source, editions, no_files

Received = Callable[[int, int], None]  # bytes, and bytes in total

_ABSENT = (403, 404, 410)  # object stores return 403 for missing objects
_TEMPORARY = (408, 416, 425, 429, 500, 502, 503, 504)
_PROGRESS_BYTES = 1 << 20  # an attempt that receives more does not count as failed
_MIN_BYTES_PER_SECOND = 1000  # a slower transfer counts as failed
_MAX_WAIT_SECONDS = 60.0  # even if a server requests more
_JITTER = random.SystemRandom()  # for waiting times only; no result depends on it


@dataclass(frozen=True)
class Patience:
    """When to give up on a server: consecutive attempts that fail, and times in seconds."""

    connect: float = 10.0
    read: float = 30.0  # between two parts of a response; its speed is checked as often
    answer: float = 90.0  # until a response's headers are complete, redirects included
    attempts: int = 4
    pause: float = 1.0  # before the second attempt; doubled before each further one


PATIENCE = Patience()


class AbsentError(Exception):
    """A server does not hold the file."""


class UnreachableError(Exception):
    """A download failed; the message is the reason in a few words."""


class _TemporaryError(Exception):
    """A temporary failure; `wait` is the number of seconds that the server requests."""

    def __init__(self, reason: str, wait: str = "") -> None:
        super().__init__(reason)
        self.wait = float(wait) if wait.isdecimal() else 0.0


def download(url: str, part: Path, bound: int, tell: Received, resume: bool) -> None:
    """Download a URL into a partial file of at most `bound` bytes.

    With `resume`, an earlier partial file is continued; its content must be verified afterwards, as
    the server's file may have changed. `tell` gets the bytes received and the total.
    """
    furthest, failed = 0, 0
    while True:
        if not resume:
            part.unlink(missing_ok=True)
        try:
            _attempt(url, part, bound, tell)
            return
        except _TemporaryError as error:
            received = part.stat().st_size if part.exists() else 0
            failed = 1 if received >= furthest + _PROGRESS_BYTES else failed + 1
            furthest = max(furthest, received)
            if failed >= PATIENCE.attempts:
                raise UnreachableError(str(error)) from error
            pause = PATIENCE.pause * 2 ** (failed - 1) * _JITTER.uniform(0.5, 1)
            time.sleep(min(max(pause, error.wait), _MAX_WAIT_SECONDS))


def _attempt(url: str, part: Path, bound: int, tell: Received) -> None:
    import urllib3

    offset = part.stat().st_size if part.exists() else 0
    # No transfer compression: lengths and ranges must refer to the file's own bytes.
    headers = {"Accept-Encoding": "identity", "User-Agent": f"fedsampling/{__version__}"}
    headers |= {"Range": f"bytes={offset}-"} if offset else {}
    try:
        with _answer(url, headers) as response:
            if response.status_code == 416:  # the partial file is longer than the server's
                part.unlink()
            _check_status(response)
            offset *= response.status_code == 206
            _receive(response, part, offset, bound, tell)
    except (TimeoutError, requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise _TemporaryError("no answer in time") from error
    except requests.ConnectionError as error:
        raise _TemporaryError("no connection") from error
    except requests.RequestException as error:
        raise UnreachableError(f"not a usable answer: {type(error).__name__}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise _TemporaryError("the connection broke off") from error


def _answer(url: str, headers: dict[str, str]) -> "requests.Response":
    """Request a URL in a thread: requests itself never gives up on headers that keep dripping."""
    answer: Future[requests.Response] = Future()
    timeout = (PATIENCE.connect, PATIENCE.read)
    get = requests.get  # imports the library before the time counts

    def ask() -> None:
        try:
            answer.set_result(get(url, stream=True, headers=headers, timeout=timeout))
        except Exception as error:
            answer.set_exception(error)

    Thread(target=ask, daemon=True).start()  # an abandoned one does not keep the process alive
    return answer.result(PATIENCE.answer)


def _check_status(response: "requests.Response") -> None:
    status = response.status_code
    if status in _ABSENT:
        raise AbsentError
    if status in _TEMPORARY:
        raise _TemporaryError(f"HTTP status {status}", response.headers.get("Retry-After", ""))
    if status not in (200, 206):
        raise UnreachableError(f"HTTP status {status}")


def _receive(
    response: "requests.Response", part: Path, offset: int, bound: int, tell: Received
) -> None:
    """Write a response's undecoded bytes as they arrive, so that slow transfers show progress."""
    length = response.headers.get("Content-Length", "")
    total = offset + int(length) if length.isdecimal() else None
    if total is not None and total > bound:
        raise CorruptError(f"is {total:,} bytes long, more than the {bound:,} expected")
    received = counted = offset
    since = time.monotonic()
    with writing(part):
        stream = part.open("ab" if offset else "wb", buffering=0)
    with stream:
        while piece := response.raw.read1(PIECE_BYTES, decode_content=False):
            received += len(piece)
            if received > bound:
                raise CorruptError(f"is longer than the {bound:,} bytes expected")
            rest = memoryview(piece)
            with writing(part):
                while rest:  # unbuffered writes may be partial
                    rest = rest[stream.write(rest) :]
            tell(received, total or bound)
            if (seconds := time.monotonic() - since) > PATIENCE.read:
                if received - counted < _MIN_BYTES_PER_SECOND * seconds:
                    raise _TemporaryError(f"slower than {_MIN_BYTES_PER_SECOND} bytes a second")
                counted, since = received, time.monotonic()
    if total is not None and received < total:
        raise _TemporaryError(f"broke off after {received:,} of {total:,} bytes")


Tell = Callable[[str, int, int], None]  # name, bytes received, bytes in total


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
        # If the mirror is a URL, it may have files without any other address.
        return 2 if all(source.urls for source in files) or (mirror and is_url(mirror)) else 3

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
    """Fetch several files in parallel, by name; a failure does not stop the others."""
    turn, stopped = Lock(), Event()

    def tell_in_turn(name: str, received: int, total: int) -> None:
        if stopped.is_set():
            raise InterruptedError
        with turn:
            if tell:
                tell(name, received, total)

    requested = list(sources)
    paths: dict[str, Path] = {}
    lines: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fetch, file, cache, mirror, tell_in_turn) for file in requested]
        try:
            for file, job in zip(requested, jobs, strict=True):
                with gathering(lines):
                    paths[file.name] = job.result()
        except BaseException:  # mainly Ctrl-C: partial files remain, to be resumed
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    if lines:
        raise InputError(*dict.fromkeys(lines))  # a missing mirror is reported once
    return paths


def fetch(source: Source, cache: Path, mirror: str | None, tell: Tell | None = None) -> Path:
    """Return the path of a source's verified file, fetching the file if necessary.

    `mirror` is a folder or URL that is searched before the publisher for
    ``<mirror>/<dataset>/<file>`` and ``<mirror>/<file>``, plain or with .xz, .bz2 or .gz. `tell`
    gets the source's name, the bytes received and the total (or an upper bound).
    """
    target = source.path_in(cache)
    if is_verified(source, target):
        return target
    if mirror and not is_url(mirror) and not os.path.isdir(folder(mirror)):
        raise InputError(
            f"mirror: '{mirror}' is not a folder; set it to the folder or URL of {source.dataset}/"
        )
    with locked(target):
        if not is_verified(source, target):  # another process may have fetched it meanwhile
            job = _Job(source, target, tell or (lambda *_: None))
            if not (mirror and _from_mirror(job, mirror)):
                _from_publisher(job, mirror)
    return target


@dataclass(frozen=True)
class _Job:
    """One file to fetch, and its place in the cache."""

    source: Source
    target: Path
    tell: Tell

    def install(self, write: Callable[[Path], None]) -> None:
        """Write a temporary file, verify it, and move it into the cache."""
        with replacing(self.target) as new:
            write(new)
            verify(self.source, new)


def _from_mirror(job: _Job, mirror: str) -> bool:
    """Fetch the file from the mirror; return False if the mirror does not have it."""
    source = job.source
    for name in names_in_mirror(source):
        location = f"{mirror.rstrip('/')}/{name}" if is_url(mirror) else str(folder(mirror) / name)
        try:
            if _download(job, location) if is_url(mirror) else _copy(job, Path(location)):
                return True
        except CorruptError as error:
            raise InputError(
                f"mirror: {location} is not the published {source.file}: it {error}; "
                f"copy it again from {_origin(source)}"
            ) from error
        except (UnreadableError, UnreachableError) as error:
            raise InputError(
                f"mirror: {location} cannot be read ({error}); fix it or unset mirror"
            ) from error
    return False


def _copy(job: _Job, path: Path) -> bool:
    """Copy a local file; return False if it does not exist."""
    if not path.exists():
        return False
    if not path.is_file():  # opening a pipe would wait for its writer
        raise UnreadableError("not a regular file")
    job.install(lambda new: copy(job.source, path.name, path, new))
    return True


def _from_publisher(job: _Job, mirror: str | None) -> None:
    source = job.source
    failures = []
    if mirror:
        names = ", ".join(names_in_mirror(source))
        failures.append(f"not in the mirror {mirror} (looked for {names})")
    for url in source.urls:
        try:
            if _download(job, url):
                return
            failures.append(f"not at {url}")
        except CorruptError as error:
            failures.append(f"{url}: it {error}")
        except UnreachableError as error:
            failures.append(f"{url} cannot be reached ({error})")
    if not source.urls:
        failures.append("it has no URL")
    name = PurePosixPath(urlsplit(source.urls[0]).path).name if source.urls else source.file
    hint = name if is_packed(source, name) else source.file
    raise InputError(
        f"{source.file}: {', '.join(failures)}; download {_origin(source)} by hand, save it as "
        f"{source.dataset}/{hint} in any folder, and set mirror to that folder"
    )


def _download(job: _Job, url: str) -> bool:
    """Fetch the file from a URL; return False if the server does not have it."""
    source = job.source
    part = job.target.with_name(f"{job.target.name}.part")
    bound = (source.size or MAX_UNKNOWN_BYTES) + PIECE_BYTES  # even if packing gains nothing

    def tell(received: int, total: int) -> None:
        job.tell(source.name, received, total)

    def write(new: Path) -> None:
        download(url, part, bound, tell, resume)
        name = urlsplit(url).path
        if is_packed(source, name):
            copy(source, name, part, new)
        else:
            part.replace(new)

    resume = bool(source.checksum or source.published)  # then mixed content cannot pass
    may_resume = resume and part.exists()
    while True:
        try:
            job.install(write)
        except AbsentError:
            part.unlink(missing_ok=True)
            return False
        except UnreachableError:
            if not (part.exists() and part.stat().st_size):
                part.unlink(missing_ok=True)
            raise
        except CorruptError:
            part.unlink(missing_ok=True)
            # The partial file of an earlier run may be corrupt: try once more from the start.
            if not may_resume:
                raise
            may_resume = False
        else:
            part.unlink(missing_ok=True)
            return True


def _origin(source: Source) -> str:
    return source.urls[0] if source.urls else source.page
