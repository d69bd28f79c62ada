"""The states of a step's inputs: texts that differ if an input has changed.

An input has a key of its kind and its name, such as ``file papers/mine/table.csv``.
:mod:`.inputs` records which inputs a step reads.  The step saves their states with its result, and
the next call compares them (:func:`changed`).
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

from fedsampling.base.code import PACKAGE, code_digest, parsed

# Kinds of inputs, with which their keys begin.
FILE = "file"
CODE = "code"  # a file of this package
FOLDER = "folder"  # the names in a folder
TREE = "tree"  # the names of all files below a folder
VARIABLE = "variable"  # of the environment
LIBRARY = "library"  # its version
PACKAGE_TREE = f"{CODE} ."  # the names of all files of this package
MAX_DIGESTED_BYTES = 2**20  # a larger file with the same size, dates and inode is unchanged
_remembered: dict[str, str] = {}  # states of code; see `remember`
_digesting = False


def changed(states: Mapping[str, str]) -> list[str]:
    """Return the keys of the inputs whose state is another one now."""
    return [key for key, before in states.items() if not _is_in_state(key, before)]


def state(key: str) -> str:
    """Return the present state of an input; empty if it does not exist.

    A file has a quick and a slow digest, and is unchanged if either agrees.  Of a small file,
    the quick one covers the bytes, the slow one Python's code; of a large one, dates and bytes.
    """
    kind, _, name = key.partition(" ")
    if kind == VARIABLE:
        return state_of_text(os.environ.get(name))
    if kind == FOLDER:
        with suppress(OSError):
            names = [n for n in sorted(os.listdir(name)) if not n.startswith((".", "__pycache__"))]
            return state_of_text("\0".join(names))
        return ""
    if kind == TREE or key == PACKAGE_TREE:
        folder = Path(name) if kind == TREE else PACKAGE
        names = [path.relative_to(folder).as_posix() for path in _below(folder)]
        return state_of_text("\0".join(names))
    if kind == LIBRARY:
        return _version(name)
    quick, slow = _digests(kind, name, both=True)
    return f"{quick} {slow}".strip()


def state_of_text(text: str | None) -> str:
    """Return the state of an input with this content; empty for None."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:32]


def states_of(paths: Iterable[Path]) -> dict[str, str]:
    """Return the states of some files."""
    keys = [f"{FILE} {relative_name(path.absolute())}" for path in paths]
    return {key: state(key) for key in keys}


def files_below(folder: Path) -> dict[str, str]:
    """Return the states of all files below a folder, and of their names."""
    names_below = f"{TREE} {relative_name(folder.absolute())}"
    return {names_below: state(names_below), **states_of(_below(folder))}


def package_files() -> dict[str, str]:
    """Return the states of all files of this package, and of their names."""
    names = [path.relative_to(PACKAGE).as_posix() for path in _below(PACKAGE)]
    keys = [PACKAGE_TREE, *(f"{CODE} {name}" for name in names)]
    return {key: state(key) for key in keys}


def remember(states: Mapping[str, str]) -> None:
    """Keep states that another process computed, so that unchanged code is not parsed again."""
    _remembered.update({key: text for key, text in states.items() if key.startswith(f"{CODE} ")})


def is_digesting() -> bool:
    """Whether a file is read only to compute its state, which is no use of it."""
    return _digesting


def relative_name(path: Path | str) -> str:
    """Return a path relative to the working folder, if it is below it: the folder may move."""
    with suppress(ValueError):
        return Path(path).relative_to(Path.cwd()).as_posix()
    return str(path)


def _is_in_state(key: str, before: str) -> bool:
    """Whether an input has the state that it had before; computes no slow digest in vain."""
    kind, _, name = key.partition(" ")
    if kind not in (FILE, CODE) or key == PACKAGE_TREE:
        return state(key) == before
    quick, _, slow = before.partition(" ")
    if _digests(kind, name, both=False)[0] == quick:
        return True
    return bool(slow) and _digests(kind, name, both=True)[1] == slow


def _digests(kind: str, name: str, both: bool) -> tuple[str, str]:
    """Return the quick and, if `both`, the slow digest of a file; each may be empty."""
    path = PACKAGE / name if kind == CODE else Path(name)
    with suppress(OSError), _marked_as_digesting():
        status = path.stat()
        if status.st_size > MAX_DIGESTED_BYTES:
            quick = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            return quick, _sha256(path) if both else ""
        quick = _sha256(path)
        if not both or path.suffix != ".py":
            return quick, ""
        remembered_quick, _, code = _remembered.get(f"{kind} {name}", "").partition(" ")
        if remembered_quick != quick:
            code = (parsed(path)[0] if kind == CODE else code_digest(path))[:32]
        return quick, code
    return "", ""


@contextmanager
def _marked_as_digesting() -> Iterator[None]:
    global _digesting
    before, _digesting = _digesting, True
    try:
        yield
    finally:
        _digesting = before


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


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
