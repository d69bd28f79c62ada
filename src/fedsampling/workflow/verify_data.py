"""Verification of data files: ``fedsampling data verify``.

Files in the cache and in a mirror's folder are compared with their checksums.  Verification
downloads nothing and does not write to the cache or the mirror.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fedsampling.base.errors import InputError
from fedsampling.data.sources.local_files import DifferingError, copy, is_packed, verify
from fedsampling.data.sources.mirrors import path_in_mirror
from fedsampling.data.sources.sources import VERIFIED, Source, editions, no_files, official_datasets


def verify_each(names: Sequence[str], cache: Path, mirror: str | None) -> Iterator[str]:
    """Verify datasets (all if `names` is empty), and yield the checks as lines."""
    faults: list[str] = []
    for name in names or official_datasets():
        lines, errors = verify_dataset(name, cache, mirror)
        yield from lines
        faults += errors
        if names and len(lines) == 1:
            faults.append(f"{name}: no local files; run 'fedsampling data fetch {name}'")
    if faults:
        raise InputError(*faults)


def verify_dataset(dataset: str, cache: Path, mirror: str | None) -> tuple[list[str], list[str]]:
    """Verify every file of a dataset that is in the cache or in the mirror, if this is a folder.

    Returns the checks and the errors, as lines.
    """
    if dataset not in official_datasets():
        raise InputError(no_files(dataset))
    files: list[str] = []
    faults: list[str] = []
    for sources in editions(dataset).values():
        for source in sources:
            places = {"cache": source.path_in(cache)}
            if mirror and (in_mirror := path_in_mirror(source, mirror)):
                places["mirror"] = in_mirror
            local = {place: path for place, path in places.items() if path.is_file()}
            for place, path in local.items():
                state = _checked(source)
                if fault := _fault(source, path):
                    state = "not the published file"
                    faults.append(f"{place}: {source.name}: it {fault}")
                files.append(f"  {place}: {source.file}: {state}")
    count = f"{len(files)} local files" if files else "no local files"
    return [f"{dataset}: {count}", *files], faults


def _checked(source: Source) -> str:
    """Name the kind and the source of the checksums with which a valid file is compared."""
    kinds = [text.partition(":")[0] for text in (source.checksum, source.published) if text]
    if not kinds:
        return f"not verified: {VERIFIED['content']}"
    return f"OK: {' and '.join(kinds)} {VERIFIED[source.verified]}"


def _fault(source: Source, path: Path) -> str:
    """Return the error in a file, plain or packed; empty if it is the published one."""
    try:
        if is_packed(source, path.name):
            with TemporaryDirectory() as scratch:
                plain = Path(scratch) / source.file
                copy(source, path, plain)
                verify(source, plain)
        else:
            verify(source, path)
    except DifferingError as error:
        return str(error)
    return ""
