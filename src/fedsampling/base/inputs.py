"""The inputs of a step: the files and environment variables that it read while it ran.

:func:`recording` notes every file that is opened with Python's ``open`` (imported modules, CSV and
NPZ files), every folder that users' code lists, and every environment variable that it reads.  Some
readers open files in other ways (Parquet, HDF5) or remember what they read: they call :func:`note`.
Only files below the working folder and :func:`watch`-ed folders count, and those that users' code
opens; libraries, this package, results and hidden files do not.

The inputs are a mapping from a key, such as ``file papers/mine/table.csv``, to a state.  The step
saves it with its result; the next call compares the states (:func:`changed`).
"""

import hashlib
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

from fedsampling.base.code import PACKAGE, code_digest, is_library, parsed

# Kinds of inputs: files; this package's files; names in a folder, and below it; environment
# variables; versions of libraries.
FILE, CODE, FOLDER, TREE, VARIABLE, LIBRARY = (
    "file", "code", "folder", "tree", "variable", "library",
)  # fmt: skip
PACKAGE_TREE = f"{CODE} ."
MAX_DIGESTED = 2**20  # bytes; a larger file with the same size, dates and inode is unchanged
SYSTEM = ("/proc/", "/sys/", "/dev/")
ENVIRONMENT = ("os", "_collections_abc", "frozen os", "frozen _collections_abc")  # its modules
_PACKAGE = f"{PACKAGE}{os.sep}"
_recordings: list["Recording"] = []
_watched: set[Path] = set()  # folders whose files count, besides the working folder
_ignored: set[Path] = set()  # folders of results
_of_package: set[str] = set()  # files of this package that were read, besides modules
_known: dict[str, str] = {}  # states that need not be computed again if their first part is equal
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
        """Return the states of the inputs; of a file that has changed since, one that none has."""
        states = {f"{VARIABLE} {name}": _of_text(text) for name, text in self.variables.items()}
        states |= {key: state(key) for key in (f"{FOLDER} {_shown(p)}" for p in self.folders)}
        for name, before in self.files.items():
            if (path := Path(name)).is_file() and name not in self.written:
                key = f"{FILE} {_shown(path)}"
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
    _watched.update(Path(os.path.abspath(folder)) for folder in folders)


def ignore(*folders: Path) -> None:
    """Let files below these folders, which steps write, not count."""
    absolute = (Path(os.path.abspath(folder)) for folder in folders)
    _ignored.update(folder for folder in absolute if not Path.cwd().is_relative_to(folder))


def loaded_code() -> dict[str, str]:
    """Return the states of this package's modules, and of users', that are loaded."""
    files = {getattr(module, "__file__", None) or "" for module in [*sys.modules.values()]}
    files -= {getattr(sys.modules["__main__"], "__file__", None) or ""}
    modules = {file for file in files if file.endswith(".py") and os.path.isabs(file)}
    return dict(sorted(filter(None, map(_loaded, modules | _of_package))))


@cache
def _loaded(file: str) -> tuple[str, str] | None:
    """Return key and state of a loaded file, as of the first time; None of a library's."""
    if file.startswith(_PACKAGE):
        key = f"{CODE} {Path(file).relative_to(PACKAGE).as_posix()}"
    elif not is_library(file) and _counts(os.path.abspath(file)):
        key = f"{FILE} {_shown(file)}"
    else:
        return None
    return key, state(key)


def loaded_libraries() -> dict[str, str]:
    """Return the versions of the libraries that are loaded, and of Python."""
    names = _distributions()
    loaded = {name.partition(".")[0] for name in [*sys.modules]}
    found = {library for name in loaded & names.keys() for library in names[name]}
    keys = [f"{LIBRARY} {name}" for name in sorted({*found, "python"} - {"fedsampling"})]
    return {key: state(key) for key in keys}


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def package_files() -> dict[str, str]:
    """Return the states of all files of this package."""
    files = [path.relative_to(PACKAGE).as_posix() for path in _below(PACKAGE)]
    return {key: state(key) for key in [PACKAGE_TREE, *(f"{CODE} {name}" for name in files)]}


def files_below(folder: Path) -> dict[str, str]:
    """Return the states of all files below a folder, and of their names."""
    keys = [f"{TREE} {_shown(folder.absolute())}"]
    keys += [f"{FILE} {_shown(path.absolute())}" for path in _below(folder)]
    return {key: state(key) for key in keys}


def states_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the states of some files."""
    return {key: state(key) for key in (f"{FILE} {_shown(path.absolute())}" for path in paths)}


def remember(states: Mapping[str, str]) -> None:
    """Keep states that another process computed, so that unchanged code is not parsed again."""
    _known.update({key: text for key, text in states.items() if key.startswith(f"{CODE} ")})


def changed(states: Mapping[str, str]) -> list[str]:
    """Return the keys of the inputs whose state is another one now."""
    return [key for key, before in states.items() if not _is_in_state(key, before)]


def state(key: str) -> str:
    """Return the present state of an input; empty if it does not exist.

    Two digests of a file, of which one suffices: of the bytes (of a large file: its dates), and of
    Python's code (of a large file: its bytes).
    """
    kind, _, name = key.partition(" ")
    if kind == VARIABLE:
        return _of_text(os.environ.get(name))
    if kind == FOLDER:
        with suppress(OSError):
            names = [n for n in sorted(os.listdir(name)) if not n.startswith((".", "__pycache__"))]
            return _of_text("\0".join(names))
        return ""
    if kind == TREE or key == PACKAGE_TREE:
        folder = Path(name) if kind == TREE else PACKAGE
        return _of_text("\0".join(path.relative_to(folder).as_posix() for path in _below(folder)))
    if kind == LIBRARY:
        return _version(name)
    quick, slow = _digests(kind, name, both=True)
    return f"{quick} {slow}".strip()


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order, without hidden ones and compiled code."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if not hidden and path.is_file():
            yield path


@cache
def _version(library: str) -> str:
    if library == "python":
        return sys.version.split()[0]
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(library)
    return ""


def _is_in_state(key: str, before: str) -> bool:
    """Whether an input has a state."""
    kind, _, name = key.partition(" ")
    if kind not in (FILE, CODE) or key == PACKAGE_TREE:
        return state(key) == before
    quick, _, slow = before.partition(" ")
    if _digests(kind, name, both=False)[0] == quick:
        return True
    return bool(slow) and _digests(kind, name, both=True)[1] == slow


def _digests(kind: str, name: str, both: bool) -> tuple[str, str]:
    path = PACKAGE / name if kind == CODE else Path(name)
    # Reading for a digest is no use of the file.
    recordings, _recordings[:] = [*_recordings], []
    used = {*_of_package}
    try:
        status = path.stat()
        if status.st_size > MAX_DIGESTED:
            quick = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            return quick, _sha256(path) if both else ""
        quick = _sha256(path)
        if not both or path.suffix != ".py":
            return quick, ""
        known, _, code = _known.get(f"{kind} {name}", "").partition(" ")
        if known != quick:
            code = (parsed(path)[0] if kind == CODE else code_digest(path))[:32]
        return quick, code
    except OSError:
        return "", ""
    finally:
        _recordings[:] = recordings
        _of_package.intersection_update(used)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


def _of_text(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:32]


def _dates(name: str) -> tuple[int, int] | None:
    with suppress(OSError):
        status = os.stat(name)
        return status.st_size, status.st_mtime_ns
    return None


def _shown(path: Path | str) -> str:
    """Return a path relative to the working folder, if it is below it: the folder may move."""
    with suppress(ValueError):
        return Path(path).relative_to(Path.cwd()).as_posix()
    return str(path)


def _counts(name: str) -> bool:
    """Whether a file counts wherever it is read: it is the user's, and no result."""
    path = Path(name)
    for folder in (Path.cwd(), *_watched):
        if path.is_relative_to(folder):
            parts = path.relative_to(folder).parts
            if not any(part.startswith(".") for part in parts):
                return not _is_ignored(name)
    return False


def _of_guest(name: str) -> bool:
    """Whether a file outside all known folders counts, because users' code opens it."""
    hidden = any(part.startswith(".") for part in Path(name).parts)
    if hidden or name.startswith(SYSTEM) or _is_ignored(name):
        return False
    return _is_guest(sys._getframe(2))


def _is_ignored(name: str) -> bool:
    """Whether a file or folder is a library's or a result."""
    return is_library(name) or any(map(Path(name).is_relative_to, _ignored))


def _is_guest(frame: FrameType | None, direct: bool = False) -> bool:
    """Whether users' code called, through libraries or, if `direct`, without them."""
    while frame is not None:
        is_guest = _of_caller(frame.f_code.co_filename, direct)
        if is_guest is not None:
            return is_guest
        frame = frame.f_back
    return False


@lru_cache(maxsize=4096)
def _of_caller(file: str, direct: bool) -> bool | None:
    """Whether a calling file is users' code; None if the caller before it decides."""
    if file == __file__:
        return None
    if file.startswith(_PACKAGE):
        return False
    if not file.startswith("<") and not is_library(file):
        return file.endswith(".py")
    is_deciding = direct and Path(file.strip("<>")).stem not in ENVIRONMENT
    return False if is_deciding else None


def observe() -> None:
    """Start to observe this process; Python cannot remove the hook."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)
        os.environ.__class__ = _Environment


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _opened(*arguments)
    elif not _recordings:
        return
    elif event in ("os.listdir", "os.scandir") and not isinstance(arguments[0], int):
        _listed(os.path.abspath(os.fsdecode(arguments[0] or ".")), sys._getframe(1))


def _listed(folder: str, caller: FrameType) -> None:
    is_import = caller.f_code.co_filename.startswith("<frozen importlib")
    if not is_import and _is_guest(caller) and not _is_ignored(folder):
        for record in _recordings:
            record.folders.add(folder)


def _opened(file: Any, mode: str | None, flags: int) -> None:
    if not isinstance(file, str | bytes | os.PathLike):
        return  # a file descriptor
    name = os.path.abspath(os.fsdecode(file))
    if name.startswith(_PACKAGE) and not name.endswith((".py", ".pyc")):
        _of_package.add(name)
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
    if any(name not in record.files for record in _recordings) and (
        _counts(name) or _of_guest(name)
    ):
        for record in _recordings:
            record.files.setdefault(name, _dates(name))


class _Environment(type(os.environ)):  # type: ignore[misc]
    """The environment, which records the variables that users' code reads."""

    def __getitem__(self, name: str) -> str:
        """Return a variable."""
        if _recordings and _is_guest(sys._getframe(1), direct=True):
            value = os.environ._data.get(os.environ.encodekey(name))  # type: ignore[attr-defined]
            for record in _recordings:
                record.variables.setdefault(name, None if value is None else os.fsdecode(value))
        return super().__getitem__(name)  # type: ignore[no-any-return]


def merged(*states: Mapping[str, str]) -> dict[str, str]:
    """Join the inputs of several parts of a step."""
    return dict(sorted(item for part in states for item in part.items()))


def without(states: Mapping[str, str], paths: Iterable[Path]) -> dict[str, str]:
    """Remove files that are covered in another way."""
    covered = {f"{FILE} {_shown(Path(os.path.abspath(path)))}" for path in paths}
    return {key: value for key, value in states.items() if key not in covered}
