"""Mirrors: folders with copies of the official files, tried before the publishers."""

import os
from pathlib import Path, PurePosixPath

from fedsampling.data.sources.local_files import OPENERS
from fedsampling.data.sources.sources import Source, editions

_NEVER_PACKED = (*OPENERS, ".webp", ".zip")  # already compressed


def folder(mirror: str) -> Path:
    """Return a mirror's folder, with ``~`` expanded."""
    return Path(os.path.expanduser(mirror))  # Path.expanduser fails for unknown users


def path_in_mirror(source: Source, mirror: str) -> Path | None:
    """Return the path of a file in a mirror's folder, plain or packed; None if absent."""
    paths = (folder(mirror) / name for name in names_in_mirror(source))
    return next((path for path in paths if path.is_file()), None)


def place_of(source: Source, cache: Path, mirror: str | None) -> str:
    """Return "cache", "mirror" or "", the place of a file, without reading it."""
    if source.path_in(cache).is_file():
        return "cache"
    return "mirror" if mirror and path_in_mirror(source, mirror) else ""


def is_on_hand(dataset: str, cache: Path, mirror: str | None) -> bool:
    """Whether all files of an edition of a dataset are in the cache or the mirror."""
    return any(
        all(place_of(source, cache, mirror) for source in sources)
        for sources in editions(dataset).values()
    )


def names_in_mirror(source: Source) -> list[str]:
    """Return the possible paths of the file in a mirror."""
    never = PurePosixPath(source.file).suffix in _NEVER_PACKED
    return [f"{source.name}{suffix}" for suffix in ("", *(() if never else OPENERS))]
