"""Fetch official files: from the cache, else from a mirror, else from the publisher.

A dataset has editions, an edition has files, and :func:`fetch` fetches one file.  Every
file is verified before it enters the cache, and again at each use.  If several processes need a
file, one fetches it and the others wait.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event, Lock
from urllib.parse import urlsplit

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.files import replacing
from fedsampling.data.sources.download import (
    PIECE_BYTES,
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

Tell = Callable[[str, int, int], None]  # name, bytes received, bytes in total

_PATIENCE = Patience()


def fetch_dataset(
    dataset: str,
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
) -> dict[str, Path]:
    """Fetch one edition of a dataset: preferably from the cache, then the mirror, then its URLs."""
    lines: list[str] = []
    for files in ordered_editions(dataset, cache, mirror):
        with gathering([] if lines else lines):
            return fetch_all(files, cache, mirror, tell, patience)
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


def fetch_all(
    sources: Iterable[Source],
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
    threads: int = 4,
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
    with ThreadPoolExecutor(max(1, threads)) as pool:
        jobs = [
            pool.submit(fetch, file, cache, mirror, tell_in_turn, patience) for file in requested
        ]
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


def fetch(
    source: Source,
    cache: Path,
    mirror: str | None,
    tell: Tell | None = None,
    patience: Patience = _PATIENCE,
) -> Path:
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
            job = _Job(source, target, tell or (lambda *_: None), patience)
            if not (mirror and _from_mirror(job, mirror)):
                _from_publisher(job, mirror)
    return target


@dataclass(frozen=True)
class _Job:
    """One file to fetch, and its place in the cache."""

    source: Source
    target: Path
    tell: Tell
    patience: Patience

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
        download(url, part, bound, job.patience, tell, resume)
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
