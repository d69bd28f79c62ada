"""Fingerprints of the code that a result depends on.

A fingerprint covers syntax trees without comments and docstrings, so documenting or formatting a
module does not invalidate results.  Imports are followed through the package and the papers'
folders by parsing; nothing is imported, so it is cheap to compute.  Members of a family (samplers,
datasets, models, …) are discovered, not imported.  The caller therefore passes in the members that
a job uses, and a new member leaves all other results valid.
"""

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fedsampling.base.code import PACKAGE, helpers, imported, with_helpers
from fedsampling.base.code import parsed as _read
from fedsampling.base.families import OWN_FILE

PAPERS = Path("papers")
# Modules that cannot change a result; packages end in a dot. Settings (experiments, records) enter
# the hash of the run as values. Storage, stopping, cluster requests and memory estimates do not
# change a run's tables. Downloaded files are compared with their publishers' checksums. Registries
# import all members of a family, so following them would make every result depend on every member.
NEUTRAL = tuple(
    f"{PACKAGE.name}.{name}"
    for name in (
        "base.code",
        "base.errors",
        "base.families",
        "base.files",
        "base.input_states",
        "base.inputs",
        "base.nested",
        "base.progress",
        "base.record_errors",
        "base.records",
        "base.stopping",
        "base.strict_numbers",
        "data.sources.",
        "experiments.config",
        "experiments.cross_matrix",
        "experiments.dataset_uses",
        "experiments.fingerprints",
        "experiments.paper_modules",
        "experiments.papers",
        "experiments.registration",
        "experiments.resolving",
        "experiments.selecting",
        "experiments.shorthand",
        "experiments.specs",
        "learning.models.settings",
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
        path = path_of(module, papers)
        known_as = path.name if module.startswith(OWN_FILE) else module  # in any folder
        content.update(f"{known_as}\0{_read(path)[0]}\0".encode())
    return content.hexdigest()[:16]


def sources(modules: Iterable[str], papers: Path = PAPERS) -> set[str]:
    """Return `modules` and their imports within this project, except those in ``NEUTRAL``."""
    visited: set[str] = set()
    pending = [module for module in modules if _is_module(module, papers)]
    while pending:
        module = pending.pop()
        if module not in visited:
            visited.add(module)
            pending += _imports(module, papers)
    return visited


def own_code(module: str) -> str:
    """Hash the code of a user's sampler file, with its helpers, to sixteen hexadecimal digits.

    Empty for others.
    """
    if not module.startswith(OWN_FILE):
        return ""
    path = path_of(module, PAPERS)
    return with_helpers(path, _read(path)[0][:16])


def of_package(*paths: Path) -> set[str]:
    """Return the modules of this package that users' files and their helpers import."""
    files = [file for path in paths for file in (path, *helpers(path).values())]
    return {name for file in files for name in imported(file) if _is_module(name, PAPERS)}


def _neutral(module: str) -> bool:
    return any(
        module == name or (name.endswith(".") and f"{module}.".startswith(name)) for name in NEUTRAL
    )


@cache
def _imports(module: str, papers: Path) -> set[str]:
    """Return a module's imports within this project, also in functions, without ``NEUTRAL``."""
    path = path_of(module, papers)
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
def _is_module(name: str, papers: Path) -> bool:
    ours = name.split(".")[0] in (PACKAGE.name, PAPERS.name) or name.startswith(OWN_FILE)
    return ours and path_of(name, papers).is_file()


def path_of(module: str, papers: Path) -> Path:
    """Return the file of a module of the package, of a paper or of a user."""
    if module.startswith(OWN_FILE):
        return Path(str(sys.modules[module].__file__))
    root, *parts = module.split(".")
    below = (papers if root == PAPERS.name else PACKAGE).joinpath(*parts)
    return below / "__init__.py" if below.is_dir() else below.with_suffix(".py")
