"""From a :class:`~fedsampling.data.sources.sources.Source` to its verified file in the cache.

A file is searched in the cache, then in the mirror, then at the publisher's URLs in order.
:func:`~fedsampling.data.sources.local_files.copy` and :class:`Resuming` deliver the unpacked file;
pooch verifies its checksum before it enters the cache.  If several processes need a file, one
fetches it and the others wait.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event, Lock
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.files import sha256, writing
from fedsampling.data.sources.download import (
    PIECE,
    AbsentError,
    CorruptError,
    Patience,
    UnreachableError,
    download,
)
from fedsampling.data.sources.local_files import (
    MAX_UNKNOWN_BYTES,
    UnreadableError,
    copy,
    is_packed,
    is_verified,
    verify,
)
from fedsampling.data.sources.local_files import unpacked as unpacked
from fedsampling.data.sources.mirror import folder, is_url, names_in_mirror, path_in_mirror
from fedsampling.data.sources.sources import Source, editions, no_files

Tell = Callable[[str, int, int], None]  # name, bytes received, bytes in total

_PATIENCE = Patience()


def fetch(
    source: Source,
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
) -> Path:
    """Return the path of a source's verified file, fetching the file if necessary.

    Parameters
    ----------
    cache : Path
        The file is stored as ``<cache>/<dataset>/<file>`` and verified at each use.
    mirror : str or None
        A folder or http(s) URL that is searched before the publisher for
        ``<mirror>/<dataset>/<file>`` and ``<mirror>/<file>``, plain or with .xz, .bz2 or .gz.
    tell : callable, optional
        Called with the source's name, the bytes received and the total (or an upper bound).
    patience : Patience
        When to give up on a server.

    Raises
    ------
    InputError
        If the mirror does not exist, its file differs from the published file, no valid file is
        available, or the cache cannot be written.
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
            job = _Job(source, target, tell or (lambda *_: None), patience)
            if not (mirror and _from_mirror(job, mirror)):
                _from_publisher(job, mirror)
    return target


def fetch_all(
    sources: Iterable[Source],
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
    threads: int = 4,
) -> dict[str, Path]:
    """Fetch several files in parallel; a failure does not stop the others.

    Returns
    -------
    dict of str to Path
        By the sources' names, in their order.

    Raises
    ------
    InputError
        With one line for each file that is not available.
    """
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
    with ThreadPoolExecutor(max(1, threads)) as pool:
        jobs = [
            pool.submit(fetch, each, cache, mirror, tell_in_turn, patience) for each in requested
        ]
        try:
            for source, job in zip(requested, jobs, strict=True):
                with gathering(lines):
                    paths[source.name] = job.result()
        except BaseException:  # mainly Ctrl-C: partial files remain, to be resumed
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    if lines:
        raise InputError(*dict.fromkeys(lines))  # a missing mirror is reported once
    return paths


def fetch_dataset(
    dataset: str,
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
) -> dict[str, Path]:
    """Fetch one edition of a dataset: preferably from the cache, then the mirror, then its URLs.

    Returns
    -------
    dict of str to Path
        Files of this edition, by the names of their sources.

    Raises
    ------
    InputError
        If the dataset has no official files, or no edition is available.  The error then has the
        lines of the edition tried first.
    """
    lines: list[str] = []
    for files in preferred(dataset, cache, mirror):
        with gathering([] if lines else lines):
            return fetch_all(files, cache, mirror, tell, patience)
    raise InputError(*lines)


def preferred(dataset: str, cache: Path, mirror: str | None) -> list[tuple[Source, ...]]:
    """List a dataset's editions in the order in which they are tried.

    Editions that are complete in the cache come first, then editions in the mirror's folder, then
    editions with URLs for all files.

    Raises
    ------
    InputError
        If the dataset has no files to fetch.
    """
    listed = list(editions(dataset).values())
    if not listed:
        raise InputError(no_files(dataset))

    def rank(files: tuple[Source, ...]) -> int:
        if all(is_verified(each, each.path_in(cache)) for each in files):
            return 0
        if mirror and all(path_in_mirror(each, mirror) for each in files):
            return 1
        # If the mirror is a URL, it may have files without any other address.
        return 2 if all(each.urls for each in files) or (mirror and is_url(mirror)) else 3

    return sorted(listed, key=rank)


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
    """Return a cached file that is slow to derive from verified files; create it once.

    Parameters
    ----------
    target : Path
        Its name contains a digest of its inputs (:func:`digests_of`), so it is never out of date.
    make : callable
        Writes `target` atomically.

    Raises
    ------
    InputError
        If the folder cannot be written; `make` may raise others.
    """
    if not target.is_file():
        with locked(target):
            if not target.is_file():
                make(target)
    return target


def digests_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of files by name, for a dataset's `inputs`."""
    return {path.name: sha256(path) for path in paths}


@dataclass(frozen=True)
class _Job:
    """One file to fetch, and its target."""

    source: Source
    target: Path
    tell: Tell
    patience: Patience

    def take(self, address: str, downloader: Callable[[str, str, Any], None]) -> None:
        """Fetch with pooch, verify the file, and move it to its target."""
        import pooch

        pooch.get_logger().setLevel("WARNING")
        new = self.target.with_name(f".{self.target.name}.new")
        new.unlink(missing_ok=True)
        try:
            with writing(self.target):
                pooch.retrieve(
                    address, self.source.checksum, new.name, new.parent, downloader=downloader
                )
            verify(self.source, new)
            new.chmod(0o644)
            new.replace(self.target)
        except ValueError as error:
            raise CorruptError(f"has another checksum than {self.source.checksum}") from error
        finally:
            new.unlink(missing_ok=True)


@dataclass(frozen=True)
class Resuming:
    """Downloader for pooch that resumes from the partial file of an earlier attempt."""

    job: _Job

    @property
    def part(self) -> Path:
        """The partial file."""
        return self.job.target.with_name(f"{self.job.target.name}.part")

    def __call__(self, url: str, output: str, _: Any) -> None:
        """Download the URL's file and decompress it.

        Raises
        ------
        AbsentError
            If the server does not have the file.
        """
        job = self.job
        bound = (job.source.size or MAX_UNKNOWN_BYTES) + PIECE  # even if packing gains nothing

        def tell(received: int, total: int) -> None:
            job.tell(job.source.name, received, total)

        download(url, self.part, bound, job.patience, tell)
        name = urlsplit(url).path
        if is_packed(job.source, name):
            copy(job.source, name, self.part, Path(output))
        else:
            os.replace(self.part, output)
        self.discard()

    def discard(self) -> None:
        """Delete the partial file and its note."""
        self.part.unlink(missing_ok=True)
        Path(f"{self.part}.json").unlink(missing_ok=True)


def _from_mirror(job: _Job, mirror: str) -> bool:
    """Fetch the file from the mirror; return False if the mirror does not have it."""
    source = job.source

    def copying(path: str, output: str, _: Any) -> None:
        copy(source, path, Path(path), Path(output))

    for name in names_in_mirror(source):
        location = f"{mirror.rstrip('/')}/{name}" if is_url(mirror) else str(folder(mirror) / name)
        try:
            if is_url(mirror):
                if _download(job, location):
                    return True
            elif os.path.exists(location):
                if not Path(location).is_file():  # opening a pipe would wait for its writer
                    raise UnreadableError("not a regular file")
                job.take(location, copying)
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
    downloader = Resuming(job)
    resumed = downloader.part.exists()
    while True:
        try:
            job.take(url, downloader)
            return True
        except AbsentError:
            downloader.discard()
            return False
        except UnreachableError:
            if not (downloader.part.exists() and downloader.part.stat().st_size):
                downloader.discard()
            raise
        except CorruptError:
            downloader.discard()
            # The partial file of an earlier run may be corrupt: try once more from the start.
            if not resumed:
                raise
            resumed = False


def _origin(source: Source) -> str:
    return source.urls[0] if source.urls else source.page
