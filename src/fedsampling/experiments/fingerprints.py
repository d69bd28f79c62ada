"""A hash of the code that a step depends on; if it changes, the step is out of date.

The hash covers syntax trees without comments and docstrings, so documenting or formatting a module
does not invalidate results.  Imports are followed through the package and the papers' folders by
parsing; nothing is imported, so the hash is cheap to compute.

Members of a family (samplers, datasets, models, …) are discovered, not imported.  The caller
therefore passes in the members that a job uses, and a new member leaves all other results valid.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.families import OWN_FILE

PACKAGE = Path(__file__).parents[1]
PAPERS = Path("papers")
# Modules that cannot change a result; packages end in a dot. Settings (experiments, records) enter
# the hash of the run as values. Storage, stopping, cluster requests and memory estimates do not
# change a run's tables. Downloaded files are compared with their publishers' checksums. Registries
# import all members of a family, so following them would make every result depend on every member.
NEUTRAL = tuple(
    f"{PACKAGE.name}.{name}"
    for name in (
        "base.errors",
        "base.families",
        "base.files",
        "base.progress",
        "base.records",
        "base.stopping",
        "data.sources.",
        "experiments.config",
        "experiments.fingerprints",
        "experiments.papers",
        "experiments.resolving",
        "experiments.specs",
        "learning.model",
        "learning.training.checkpoint",
        "runs.",
        "workflow.",
    )
)


@cache
def fingerprint(*modules: str, papers: Path = PAPERS) -> str:
    """Hash the code of `modules` and of everything that they import, to sixteen hexadecimal digits.

    The hash does not depend on dates, git or the version of Python. A module may be in a paper's
    folder, ``papers.<key>.figures``, or in a user's file.
    """
    content = hashlib.sha256()
    for module in sorted(sources(modules, papers)):
        path = _path(module, papers)
        known_as = path.name if module.startswith(OWN_FILE) else module  # in any folder
        content.update(f"{known_as}\0{_read(path)[0]}\0".encode())
    return content.hexdigest()[:16]


def sources(modules: Iterable[str], papers: Path = PAPERS) -> set[str]:
    """Return `modules` and all that they import of this project, but not those in ``NEUTRAL``."""
    visited: set[str] = set()
    pending = [module for module in modules if _is_module(module, papers)]
    while pending:
        module = pending.pop()
        if module not in visited:
            visited.add(module)
            pending += _imports(module, papers)
    return visited


def own_code(module: str) -> str:
    """Hash the code of a user's sampler file, to sixteen hexadecimal digits; "" for others."""
    return _read(_path(module, PAPERS))[0][:16] if module.startswith(OWN_FILE) else ""


def _neutral(module: str) -> bool:
    return any(
        module == name or (name.endswith(".") and f"{module}.".startswith(name)) for name in NEUTRAL
    )


@cache
def _imports(module: str, papers: Path) -> set[str]:
    """Return what a module imports of this project, in functions as well, without ``NEUTRAL``."""
    path = _path(module, papers)
    names = set()
    for start, name in _read(path)[1]:
        if level := len(start) - len(start.lstrip(".")):
            parts = module.split(".")
            above = parts[: len(parts) - level + (path.name == "__init__.py")]
            start = ".".join([*above, *filter(None, [start.lstrip(".")])])
        inner = f"{start}.{name}"
        names.add(inner if name and _is_module(inner, papers) else start)
    return {name for name in names if _is_module(name, papers) and not _neutral(name)}


@cache
def _read(path: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the digest of a file's code, and its imports as pairs (module, name or "")."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{path}: is not Python ({error}); fix it") from None
    imports = []
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            imports += [(start, alias.name) for alias in node.names]
    return hashlib.sha256(repr(_code(tree)).encode()).hexdigest(), tuple(imports)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Walk over statements only; expressions, most of a tree, contain no imports."""
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


@cache
def _is_module(name: str, papers: Path) -> bool:
    ours = name.split(".")[0] in (PACKAGE.name, PAPERS.name) or name.startswith(OWN_FILE)
    return ours and _path(name, papers).is_file()


def _path(module: str, papers: Path) -> Path:
    if module.startswith(OWN_FILE):
        return Path(str(sys.modules[module].__file__))
    root, *parts = module.split(".")
    below = (papers if root == PAPERS.name else PACKAGE).joinpath(*parts)
    return below / "__init__.py" if below.is_dir() else below.with_suffix(".py")
