"""The Python files in a paper's folder.

The functions in ``figures*.py`` draw artefacts, and those in ``claims*.py`` judge claims; each is
named by the id of its artefact or claim.  ``simulations*.py`` define run kinds that no other paper
uses.
"""

import ast
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fedsampling.base.errors import InputError, nearest

if TYPE_CHECKING:
    from fedsampling.experiments.simulations.simulation import Simulation


def load_kinds(folder: Path) -> tuple[type["Simulation"], ...]:
    """Import and return the run kinds that a paper's ``simulations*.py`` define."""
    from fedsampling.base.families import load_members
    from fedsampling.experiments.simulations.simulation import Simulation

    kinds: list[type[Simulation]] = []
    for path in sorted(folder.glob("simulations*.py")):
        make_package(folder)
        module = f"papers.{folder.name}.{path.stem}"
        kinds += load_members(Simulation, module, path, partial(import_module, module))
    return tuple(kinds)


def defining_modules(folder: Path, files: str, *names: str) -> list[str]:
    """Return the modules of a paper that define some functions, without importing them.

    `folder`: the paper's folder. `files`: prefix of the modules' names. `*names`: ids of artefacts
    or claims. Returns such as ``papers.rizk2022importance.figures``.
    """
    return sorted({_module(folder, files, name) for name in names})


def load_function(folder: Path, files: str, name: str) -> Callable[..., Any]:
    """Return the function of an artefact or claim; see :func:`defining_modules`."""
    module = _module(folder, files, name)
    make_package(folder)
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _module(folder: Path, files: str, name: str) -> str:
    modules: dict[str, str] = {}
    for path in sorted(folder.glob(f"{files}*.py")):
        modules |= dict.fromkeys(_names(path), f"papers.{folder.name}.{path.stem}")
    if name not in modules:
        raise InputError(
            f"{folder}: no {files}*.py has a function '{name}'; {nearest(name, modules)}"
        )
    return modules[name]


@cache
def _names(path: Path) -> tuple[str, ...]:
    """Return the names that a module defines at its top level."""
    names: list[str] = []
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path}: is not Python ({error}); fix it") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            parts = (part for target in node.targets for part in ast.walk(target))
            names += [part.id for part in parts if isinstance(part, ast.Name)]
    return tuple(names)


def make_package(folder: Path) -> None:
    """Make a paper's folder, anywhere on disk, importable as ``papers.<key>``."""
    name = f"papers.{folder.name}"
    papers = _package("papers", folder.parent)
    if not any(folder.samefile(path) for path in _package(name, folder).__path__):
        raise InputError(f"papers: two folders are called '{folder.name}'; rename one")
    setattr(papers, folder.name, sys.modules[name])


def _package(name: str, folder: Path) -> ModuleType:
    if name not in sys.modules:
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder.absolute())]
    return sys.modules[name]
