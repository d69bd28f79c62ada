"""Locations of finished runs.

The Snakefile imports this module, so it must stay light.

A store has one file per run and version of its code, so that versions never overwrite each other.
The published runs have one file per experiment, and an index of the runs in each file.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fedsampling.base.errors import CorruptError
from fedsampling.base.files import read_record, reading

if TYPE_CHECKING:
    from fedsampling.experiments.config import Config
    from fedsampling.experiments.specs import Job

PAPERS, RESULTS = Path("papers"), Path("results")
PUBLISHED = Path("published_runs")  # finished runs that the repository includes
CARDS = PUBLISHED / "cards"  # cards of the official data behind these runs
INDEX = "index.json"
EXPERIMENT_FILE = r"(?!\.+/)[\w.-]+/(?!\.+$)[\w.-]+"  # a file of published runs, without its suffix


def path_of(store: Path, run_hash: str, code: str) -> Path:
    """Return the path of a run's file in a store; `code` is the fingerprint of its code."""
    return path_of_name(store, file_name(run_hash, code))


def path_of_name(store: Path, name: str) -> Path:
    """Return the path of a file in a store."""
    return store / name[:2] / name


def file_name(run_hash: str, code: str) -> str:
    """Return the name of a run's file in a store."""
    return f"{run_hash}-{code}.parquet"


def run_of_name(name: str) -> str:
    """Return the hash of the run in a file of a store."""
    return name.partition(".")[0].partition("-")[0]


def paths_of_versions(store: Path, run_hash: str) -> list[Path]:
    """Return the files of a run in a store, of any version of the code, the newest first."""
    folder = store / run_hash[:2]
    try:
        with reading(folder):
            paths = [folder / name for name in _files_of(folder) if name.startswith(run_hash)]
            return sorted(paths, key=lambda path: (-path.stat().st_mtime_ns, path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def published_runs(folder: Path) -> Mapping[str, Path]:
    """Return the file of each published run in a folder, by hash; wheels have no index."""
    path = folder / INDEX
    try:
        with reading(path):
            changed = path.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return _unindexed(folder.absolute()) if folder.name == PUBLISHED.name else {}
    return _index(path.absolute(), changed)


def run_stores(results: Path, config: "Config") -> tuple[Path, list[Path]]:
    """Return the store of this configuration, and the folders whose finished runs are reused.

    Reused runs may come from other versions of the code.  At scale best, which computes nothing,
    the store itself is among the reused folders.
    """
    target = Path(os.path.expanduser(config.store)) if config.store else results / "store"
    shared = [Path(folder) for folder in config.reuse]
    shared += [PUBLISHED] if config.shipped else []
    return target, shared if config.computes else [target, *shared]


def plan_inputs(results: Path, config: "Config") -> Iterator[tuple[str, bytes]]:
    """Yield the state of finished runs that a plan depends on, in named parts."""
    _, stores = run_stores(results, config)
    for folder in stores:
        if (path := folder / INDEX).is_file():
            yield str(path), path.read_bytes()
            for file in sorted(folder.glob("*/*.parquet")):
                status = file.stat()
                yield str(file), f"{status.st_size} {status.st_mtime_ns}".encode()
        if not config.computes:
            yield str(folder), "\n".join(sorted(_dated_names(folder))).encode()
    if not config.computes:
        yield from ((str(path), path.read_bytes()) for path in sorted(CARDS.glob("*.json")))


def published_files(jobs: Iterable["Job"], config: "Config") -> list[Path]:
    """Return the sorted files of published runs that hold runs of these jobs."""
    _, folders = run_stores(Path(), config)
    hashes = {run.hash for job in jobs for run in job.runs}
    published = (published_runs(folder) for folder in folders)
    return sorted({files[run] for files in published for run in hashes & files.keys()})


def stored_files(jobs: Iterable["Job"], results: Path, config: "Config") -> list[Path]:
    """Return the sorted files of a configuration's own stores that hold runs of these jobs."""
    target, folders = run_stores(results, config)
    hashes = {run.hash for job in jobs for run in job.runs}
    paths = []
    for store in {target, *folders}:
        names = stored_names(store)
        of_jobs = (name for run in hashes & names.keys() for name in names[run])
        paths += [path_of_name(store, name) for name in of_jobs]
    return sorted(paths)


def stored_names(store: Path) -> dict[str, list[str]]:
    """Return the names of the files in a store, by the hash of their run."""
    names: dict[str, list[str]] = {}
    for name in file_names(store):
        names.setdefault(run_of_name(name), []).append(name)
    return names


def finished_runs(stores: Collection[Path]) -> set[str]:
    """Return the hashes of all runs of which a folder has a file; no file is opened."""
    hashes: set[str] = set()
    for store in stores:
        hashes.update(published_runs(store))
        hashes.update(map(run_of_name, file_names(store)))
    return hashes


def files_by_run(store: Path) -> dict[str, list[Path]]:
    """Return the files of all runs in a store by hash, each as :func:`paths_of_versions`."""
    hashes = {*map(run_of_name, file_names(store))}
    return {run_hash: paths_of_versions(store, run_hash) for run_hash in hashes}


def is_published(job: "Job") -> bool:
    """Whether all runs of a job are published."""
    published = published_runs(PUBLISHED)
    return all(run.hash in published for run in job.runs)


def file_names(store: Path) -> set[str]:
    """Return the file names of the runs in a store."""
    with reading(store):
        entries = os.scandir(store) if store.is_dir() else ()
        folders = [entry.path for entry in entries if not _is_broken(entry) and entry.is_dir()]
        return {name for path in folders for name in _files_of(path)}


def _dated_names(store: Path) -> Iterator[str]:
    """Yield name, size and date of each run's file in a store."""
    with reading(store):
        for folder in sorted(store.iterdir()) if store.is_dir() else ():
            for name in _files_of(folder) if folder.is_dir() else ():
                status = os.stat(folder / name)
                yield f"{name} {status.st_size} {status.st_mtime_ns}"


def _files_of(folder: Path | str) -> list[str]:
    """Return the names of the runs' files in a folder of a store."""
    with os.scandir(folder) as entries:
        runs = [entry for entry in entries if entry.name.endswith(".parquet")]
        return [entry.name for entry in runs if not _is_broken(entry)]


def _is_broken(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a link that leads nowhere, or to itself."""
    return entry.is_symlink() and not os.path.exists(entry.path)


@cache
def _unindexed(folder: Path) -> Mapping[str, Path]:
    """Return the file of each published run in a wheel, which has no index."""
    from pyarrow import parquet

    return {
        run: path
        for path in sorted(folder.glob("*/*.parquet"))
        for run in parquet.read_table(path, columns=["hash"])["hash"].to_pylist()
    }


@cache
def _index(path: Path, changed: int) -> Mapping[str, Path]:
    try:
        by_experiment: dict[str, list[str]] = read_record(path)
        if not all(re.fullmatch(EXPERIMENT_FILE, name) for name in by_experiment):
            raise CorruptError("leads out of its folder")
        files = {name: path.parent / f"{name}.parquet" for name in by_experiment}
        return {run: files[name] for name, runs in by_experiment.items() for run in runs}
    except (CorruptError, TypeError):
        raise CorruptError(
            f"{path.parent.name}/{INDEX}: corrupt; restore it from the repository"
        ) from None
