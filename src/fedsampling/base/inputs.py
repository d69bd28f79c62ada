"""The inputs of a step: the files and environment variables that it read while it ran.

:func:`recording` notes every file that is opened with Python's ``open`` (imported modules, CSV and
NPZ files), every folder that users' code lists, and every environment variable that it reads.  Some
readers open files in other ways (Parquet, HDF5) or remember what they read: they call :func:`note`.
Only files below the working folder and :func:`watch`-ed folders count, and those that users' code
opens; libraries, this package, results and hidden files do not.

:mod:`.input_states` says whether an input has changed since.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib import metadata
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

from fedsampling.base.code import PACKAGE, is_library
from fedsampling.base.input_states import (
    CODE,
    FILE,
    FOLDER,
    LIBRARY,
    VARIABLE,
    is_digesting,
    relative_name,
    state,
    state_of_text,
)

SYSTEM_FOLDERS = ("/proc/", "/sys/", "/dev/")
# Python's modules that read the environment in the name of their caller.
ENVIRONMENT_MODULES = ("os", "_collections_abc", "frozen os", "frozen _collections_abc")
_PACKAGE = f"{PACKAGE}{os.sep}"
_recordings: list["Recording"] = []
_watched_folders: set[Path] = set()  # besides the working folder
_result_folders: set[Path] = set()
_package_files_read: set[str] = set()  # besides modules
_installed = False


class Recording:
    """What the process read since a moment: paths with their dates, folders, variables.

    `runs`: hashes of the runs that it looked for in the stores.
    """

    def __init__(self) -> None:
        self.files: dict[str, tuple[int, int] | None] = {}
        self.runs: set[str] = set()
        self.folders: set[str] = set()
        self.variables: dict[str, str | None] = {}
        self.written: set[str] = set()

    def states(self) -> dict[str, str]:
        """Return the states of the inputs.

        A file that has changed since it was read has a state that no file has.
        """
        states = {f"{VARIABLE} {name}": state_of_text(v) for name, v in self.variables.items()}
        for folder in self.folders:
            key = f"{FOLDER} {relative_name(folder)}"
            states[key] = state(key)
        for name, before in self.files.items():
            if (path := Path(name)).is_file() and name not in self.written:
                key = f"{FILE} {relative_name(path)}"
                states[key] = state(key) if before == _dates(name) else "changed while it was read"
        return dict(sorted(states.items()))


@contextmanager
def recording() -> Iterator[Recording]:
    """Record what this process reads; recordings may be nested."""
    observe()
    record = Recording()
    _recordings.append(record)
    try:
        yield record
    finally:
        _recordings.remove(record)


def note(path: Path) -> None:
    """Record a file that a reader opens without ``open``, or has opened before."""
    for record in _recordings:
        name = str(path.absolute())
        record.files.setdefault(name, _dates(name))


def note_runs(hashes: Iterable[str]) -> None:
    """Record that runs were looked for in the stores."""
    for record in _recordings:
        record.runs.update(hashes)


def watch(*folders: Path) -> None:
    """Let files below these folders count."""
    _watched_folders.update(Path(os.path.abspath(folder)) for folder in folders)


def ignore(*folders: Path) -> None:
    """Let files below these folders, which steps write, not count."""
    absolute = (Path(os.path.abspath(folder)) for folder in folders)
    _result_folders.update(folder for folder in absolute if not Path.cwd().is_relative_to(folder))


def merged(*states: Mapping[str, str]) -> dict[str, str]:
    """Join the inputs of several parts of a step."""
    return dict(sorted(item for part in states for item in part.items()))


def without(states: Mapping[str, str], paths: Iterable[Path]) -> dict[str, str]:
    """Remove files that are covered in another way."""
    covered = {f"{FILE} {relative_name(Path(os.path.abspath(path)))}" for path in paths}
    return {key: value for key, value in states.items() if key not in covered}


def loaded_code() -> dict[str, str]:
    """Return the states of this package's modules, and of users', that are loaded."""
    files = {getattr(module, "__file__", None) or "" for module in [*sys.modules.values()]}
    files -= {getattr(sys.modules["__main__"], "__file__", None) or ""}
    modules = {file for file in files if file.endswith(".py") and os.path.isabs(file)}
    return dict(sorted(filter(None, map(_state_of_loaded, modules | _package_files_read))))


@cache
def _state_of_loaded(file: str) -> tuple[str, str] | None:
    """Return key and state of a loaded file, as of the first time; None of a library's."""
    if file.startswith(_PACKAGE):
        key = f"{CODE} {Path(file).relative_to(PACKAGE).as_posix()}"
    elif not is_library(file) and _is_in_known_folder(os.path.abspath(file)):
        key = f"{FILE} {relative_name(file)}"
    else:
        return None
    return key, state(key)


def loaded_libraries() -> dict[str, str]:
    """Return the versions of the libraries that are loaded, and of Python."""
    libraries_of = _libraries_by_module()
    modules = {name.partition(".")[0] for name in [*sys.modules]}
    libraries = {name for module in modules & libraries_of.keys() for name in libraries_of[module]}
    keys = [f"{LIBRARY} {name}" for name in sorted({*libraries, "python"} - {"fedsampling"})]
    return {key: state(key) for key in keys}


@cache
def _libraries_by_module() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def observe() -> None:
    """Start to observe this process; Python cannot remove the hook."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)
        os.environ.__class__ = _Environment


class _Environment(type(os.environ)):  # type: ignore[misc]
    """The environment, which records the variables that users' code reads."""

    def __getitem__(self, name: str) -> str:
        """Return a variable."""
        if _recordings and _is_users_call(sys._getframe(1), is_direct=True):
            value = os.environ._data.get(os.environ.encodekey(name))  # type: ignore[attr-defined]
            for record in _recordings:
                record.variables.setdefault(name, None if value is None else os.fsdecode(value))
        return super().__getitem__(name)  # type: ignore[no-any-return]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        if not is_digesting():
            _record_file(*arguments)
    elif not _recordings:
        return
    elif event in ("os.listdir", "os.scandir") and not isinstance(arguments[0], int):
        _record_folder(os.path.abspath(os.fsdecode(arguments[0] or ".")), sys._getframe(1))


def _record_file(file: Any, mode: str | None, flags: int) -> None:
    if not isinstance(file, str | bytes | os.PathLike):
        return  # a file descriptor
    name = os.path.abspath(os.fsdecode(file))
    if name.startswith(_PACKAGE) and not name.endswith((".py", ".pyc")):
        _package_files_read.add(name)
    if not _recordings:
        return
    writes = flags & os.O_ACCMODE != os.O_RDONLY if mode is None else bool({*"wax+"} & {*mode})
    if writes:
        for record in _recordings:
            record.written.add(name)
        return
    if name.endswith(".pyc"):
        with suppress(ValueError):
            name = source_from_cache(name)
    if all(name in record.files for record in _recordings):
        return
    if _is_in_known_folder(name) or _is_opened_by_user(name):
        for record in _recordings:
            record.files.setdefault(name, _dates(name))


def _record_folder(folder: str, caller: FrameType) -> None:
    is_import = caller.f_code.co_filename.startswith("<frozen importlib")
    if not is_import and _is_users_call(caller) and not _is_ignored(folder):
        for record in _recordings:
            record.folders.add(folder)


def _is_in_known_folder(name: str) -> bool:
    """Whether a file counts wherever it is read: it is the user's, and no result."""
    path = Path(name)
    for folder in (Path.cwd(), *_watched_folders):
        if path.is_relative_to(folder):
            parts = path.relative_to(folder).parts
            if not any(part.startswith(".") for part in parts):
                return not _is_ignored(name)
    return False


def _is_opened_by_user(name: str) -> bool:
    """Whether a file outside all known folders counts, because users' code opens it."""
    hidden = any(part.startswith(".") for part in Path(name).parts)
    if hidden or name.startswith(SYSTEM_FOLDERS) or _is_ignored(name):
        return False
    return _is_users_call(sys._getframe(2))


def _is_ignored(name: str) -> bool:
    """Whether a file or folder is a library's or a result."""
    return is_library(name) or any(map(Path(name).is_relative_to, _result_folders))


def _is_users_call(frame: FrameType | None, is_direct: bool = False) -> bool:
    """Whether users' code called, through libraries or, if `is_direct`, without them."""
    while frame is not None:
        is_users = _is_users_file(frame.f_code.co_filename, is_direct)
        if is_users is not None:
            return is_users
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def _is_users_file(file: str, is_direct: bool) -> bool | None:
    """Whether a calling file is users' code; None if the caller before it decides."""
    if file == __file__:
        return None
    if file.startswith(_PACKAGE):
        return False
    if not file.startswith("<") and not is_library(file):
        return file.endswith(".py")
    is_deciding = is_direct and Path(file.strip("<>")).stem not in ENVIRONMENT_MODULES
    return False if is_deciding else None


def _dates(name: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.stat(name)
        return status.st_size, status.st_mtime_ns
    return None
