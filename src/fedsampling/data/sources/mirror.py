"""Mirrors: folders or URLs with copies of the official files, tried before the publishers."""

import os
from pathlib import Path, PurePosixPath

from fedsampling.data.sources.local_files import OPENERS
from fedsampling.data.sources.sources import SOURCES, Source

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
