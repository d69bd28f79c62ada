"""The code of Python files: digests without comments, and the files that a user's file imports.

Files are parsed, not imported.  A digest covers the syntax tree without comments, docstrings,
layout, messages of errors and descriptions of settings, so rewording or formatting a file does not
invalidate results.
"""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path

from fedsampling.base.errors import InputError

PACKAGE = Path(__file__).parents[1]
LIBRARIES = {"site-packages", "dist-packages"}
RUN_IT = "run this in the project's own folder, with --config config.yaml"
UNREADABLE = (InputError, MemoryError, RecursionError)  # what a file that is not Python raises
FIELDS = {"Field", "hashed_if_set"}  # functions that describe a setting
IMPORTERS = {"import_module", "__import__"}  # functions that import a module by its name


_allowed = True


def allow(is_allowed: bool) -> None:
    """Set whether this process loads users' files; results may come from somebody else."""
    global _allowed
    _allowed = is_allowed


def check_allowed(path: Path) -> None:
    """Refuse to load a user's file unless that is allowed."""
    if not _allowed:
        raise InputError(f"{path}: its code is not run by a command that only reads; {RUN_IT}")


@cache
def parsed(path: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the digest of a file's code and its imports, as pairs of module and name or ""."""
    module = tree(path)
    imports = []
    for node in _statements(module):
        if isinstance(node, ast.Import):
            imports += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            imports += [(start, alias.name) for alias in node.names]
    return _digest(module), tuple(imports)


def code_digest(path: Path) -> str:
    """Return the SHA-256 of a file's code; of its bytes, if it is not Python."""
    status = path.stat()
    return _code_digest(path, status.st_mtime_ns, status.st_size)


def with_helpers(path: Path, own: str) -> str:
    """Return `own`, the digest of a user's file, or one that also covers its helper modules."""
    if not (files := helpers(path)):
        return own
    codes = [f"{name}\0{code_digest(file)}" for name, file in sorted(files.items())]
    return hashlib.sha256("\0".join([own, *codes]).encode()).hexdigest()[: len(own)]


def helpers(path: Path) -> dict[str, Path]:
    """Return the files that a user's file imports, directly or not, by the modules' names.

    Modules of libraries and of this package do not count.  Imports by a name that is computed are
    found only while they happen (:mod:`fedsampling.base.inputs`).
    """
    files: dict[str, Path] = {}
    pending = [("", path, path.absolute().parent)]
    while pending:
        module, file, folder = pending.pop()
        for name in imported(file, module):
            for part in accumulate(name.split("."), "{}.{}".format):  # packages run first
                if part not in files and (origin := _users_file(part, folder)):
                    root = origin.parents[part.count(".") + (origin.name == "__init__.py")]
                    files[part] = origin
                    pending.append((part, origin, root))
    return {name: file for name, file in files.items() if file != path.absolute()}


def imported(path: Path, module: str = "") -> frozenset[str]:
    """Return the names that a file may import as modules; `module` is its own name.

    Literal names in calls of ``import_module`` count.
    """
    status = path.stat()
    return _imported(path, module, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _code_digest(path: Path, changed: int, size: int) -> str:
    try:
        return _digest(tree(path))
    except UNREADABLE:
        return hashlib.sha256(path.read_bytes()).hexdigest()


@lru_cache(maxsize=1024)
def _imported(path: Path, module: str, changed: int, size: int) -> frozenset[str]:
    names: set[str] = set()
    try:
        nodes = ast.walk(tree(path))
    except UNREADABLE:
        return frozenset()  # its import will raise an error
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = len(parts) - node.level + (path.name == "__init__.py")
                start = ".".join([*parts[: max(kept, 0)], *filter(None, [start])])
            names |= {start, *(f"{start}.{alias.name}".lstrip(".") for alias in node.names)}
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.args[0], "value", None)
            if _name(node.func) in IMPORTERS and isinstance(name, str):
                names.add(name.lstrip("."))
    return frozenset(names - {""})


@lru_cache(maxsize=4096)
def is_library(name: str) -> bool:
    """Whether a file belongs to Python, to an installed library or to this package."""
    path = Path(name)
    return bool(LIBRARIES & {*path.parts}) or any(map(path.is_relative_to, _installed()))


@cache
def _installed() -> tuple[Path, ...]:
    places = sysconfig.get_paths()
    standard = (Path(places[name]) for name in ("stdlib", "platstdlib", "scripts"))
    return PACKAGE, *standard


def _users_file(module: str, folder: Path) -> Path | None:
    """Return the user's file of a module, in `folder`, on Python's path, or as it was imported."""
    parts = module.split(".")
    for place in _search(folder):
        below = place.joinpath(*parts)
        for file in (below / "__init__.py", below.with_name(f"{below.name}.py")):
            if file.is_file():
                return None if is_library(str(file)) else file.absolute()
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    return file.absolute() if file.suffix == ".py" and not is_library(str(file)) else None


def _search(folder: Path) -> Sequence[Path]:
    places = [folder, *(Path(place or ".").absolute() for place in sys.path)]
    return [place for place in dict.fromkeys(places) if not is_library(str(place))]


def tree(path: Path) -> ast.Module:
    """Parse a file; raise InputError if it is not Python."""
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path}: is not Python ({error}); fix it") from None


def _digest(module: ast.Module) -> str:
    for node in ast.walk(module):
        for text in _prose(node):
            text.value = ""
    return hashlib.sha256(repr(_code(module)).encode()).hexdigest()


def _prose(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of an error that is raised, or of a setting's description."""
    parts: list[ast.AST] = []
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        if _name(node.exc.func).endswith("Error"):
            parts = [*node.exc.args]
    elif isinstance(node, ast.Call) and _name(node.func) in FIELDS:
        described = [keyword.value for keyword in node.keywords if keyword.arg == "description"]
        parts = [*described, *node.args[1:]]
    for part in parts:
        for below in ast.walk(part):
            if isinstance(below, ast.Constant) and isinstance(below.value, str):
                yield below


def _name(node: ast.AST) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, but no expressions: these cannot contain imports."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        below = getattr(node, part, ())
        for statement in below if isinstance(below, list) and not _for_types(node) else ():
            yield statement
            yield from _statements(statement)


def _code(node: object) -> object:
    """Return a syntax tree as tuples, without docstrings, typing-only code and empty fields."""
    if isinstance(node, list):
        return tuple(_code(child) for child in node if not (_is_text(child) or _for_types(child)))
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    fields = ((name, getattr(node, name, None)) for name in node._fields)
    used = [(name, _code(value)) for name, value in fields if value is not None and value != []]
    return type(node).__name__, *used


def _is_text(node: object) -> bool:
    """Whether a statement is only a string: a docstring, or a comment written as one."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _for_types(node: object) -> bool:
    """Whether a statement is ``if TYPE_CHECKING:``, which never runs."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        and not node.orelse
    )
