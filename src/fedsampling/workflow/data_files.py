"""Verification of data files: ``fedsampling data verify``.

Files in the cache and in a mirror's folder are compared with their checksums.  Verification
downloads nothing and does not write to the cache or the mirror.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256, write_json, write_text
from fedsampling.data.sources.fetch import Tell, fetch_dataset
from fedsampling.data.sources.local_files import (
    CorruptError,
    copy,
    is_packed,
    path_in_mirror,
    verify,
)
from fedsampling.data.sources.sources import (
    VERIFIED,
    Source,
    editions,
    no_files,
    official_datasets,
)
from fedsampling.runs.places import CARDS
from fedsampling.workflow.project import Project


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
    except CorruptError as error:
        return str(error)
    return ""


# Fetch and describe data files: ``fedsampling data fetch`` and ``data card``.


def fetch_each(
    names: Sequence[str], cache: Path, mirror: str | None, tell: Tell | None = None
) -> Iterator[Path]:
    """Fetch each dataset, record the hashes in ``<name>.json``, and yield its files' paths."""
    if unknown := [no_files(name) for name in names if name not in official_datasets()]:
        raise InputError(*unknown)
    for name in names:
        paths = fetch_dataset(name, cache, mirror, tell).values()
        write_json(cache / f"{name}.json", {path.name: sha256(path) for path in paths})
        yield from paths


def describe_each(
    names: Sequence[str], project: Project, as_json: bool, ship: bool
) -> Iterator[str]:
    """Yield each dataset's card as text, or its file in the results or in the published runs."""
    for name in names:
        with project.made(f"cards/{name}").making() if as_json else nullcontext():
            text = _described(name, project, as_json, ship)
        yield text


def _described(name: str, project: Project, as_json: bool, ship: bool) -> str:
    from fedsampling.report import data_cards

    config, plan = project.config, project.plan
    folder = CARDS if ship else project.folder / "cards"
    shipped = None if ship else plan.published_card(name)
    if as_json and shipped:
        write_text(folder / shipped.name, shipped.read_text(encoding="utf-8"))
        return str(folder / shipped.name)
    uses = plan.uses.get(name, ())
    card = data_cards.build(name, config.data, project.data, config.mirror, uses)
    if ship and card.data != "official":
        why = "needs the official files, which are not available; use data: official and mirror"
        raise InputError(f"{name}: {why}")
    return str(data_cards.write(card, folder)) if as_json or ship else data_cards.text(card)
