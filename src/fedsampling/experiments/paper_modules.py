"""The Python files in a paper's folder.

The functions in ``figures*.py`` draw artefacts, and those in ``claims*.py`` judge claims; each is
named by the id of its artefact or claim.  ``simulations*.py`` define run kinds that no other
paper uses.
"""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fedsampling.base.code import check_allowed, tree
from fedsampling.base.errors import InputError, check_known


def defining_modules(folder: Path, files: str, *names: str) -> list[str]:
    """Return the modules of a paper that define artefacts or claims, without importing them."""
    modules: dict[str, str] = {}
    for path in sorted(folder.glob(f"{files}*.py")):
        modules |= dict.fromkeys(_names(path), f"papers.{folder.name}.{path.stem}")
    check_known(names, modules, f"{folder}: no {files}*.py has a function '{{}}'")
    return sorted({modules[name] for name in names})


def function_of(folder: Path, files: str, name: str) -> Callable[..., Any]:
    """Return a function of a paper, from one of its files whose names begin with `files`."""
    (module,) = defining_modules(folder, files, name)
    make_package(folder)
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def make_package(folder: Path) -> None:
    """Make a paper's folder, anywhere on disk, importable as ``papers.<key>``."""
    check_allowed(folder)
    name = f"papers.{folder.name}"
    papers = _package("papers", folder.parent)
    if not any(folder.samefile(path) for path in _package(name, folder).__path__):
        raise InputError(f"papers: two folders are called '{folder.name}'; rename one")
    setattr(papers, folder.name, sys.modules[name])


@cache
def _names(path: Path) -> tuple[str, ...]:
    """Return the names that a module defines at its top level."""
    names: list[str] = []
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            parts = (part for target in node.targets for part in ast.walk(target))
            names += [part.id for part in parts if isinstance(part, ast.Name)]
    return tuple(names)


def _package(name: str, folder: Path) -> ModuleType:
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder.absolute())]
    return sys.modules[name]
