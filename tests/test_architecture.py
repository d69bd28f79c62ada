"""docs/architecture.md says what the tree is: its packages, and who imports whom."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter

from tests.shared import ROOT

PACKAGE = ROOT / "src" / "fedsampling"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)


@cache
def nodes_of(path):
    """Return all nodes of a module's syntax tree."""
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


def imports(path):
    """Yield the packages that a module imports from, at its head or inside of functions."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            package, _, rest = node.module.partition(".")
            if package == "fedsampling":
                yield from [rest.partition(".")[0]] if rest else (name.name for name in node.names)


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_the_table_lists_all_rooms():
    packages = {path.stem for path in PACKAGE.iterdir() if path.name[0] not in "_." and path.stem}
    assert set(PACKAGES) == packages - {"py"}


def test_each_room_imports_from_those_below_it_only():
    up = [
        f"{path.relative_to(PACKAGE)} imports {below}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for below in imports(path)
        if package_of(path) in PACKAGES
        and below in PACKAGES
        and PACKAGES.index(below) < PACKAGES.index(package_of(path))
    ]
    assert up == []


def test_no_modules_import_each_other_in_a_circle():
    """Neither at their heads, nor inside of functions, nor for types alone.

    The package's own ``__init__`` names the public functions of all modules, for types alone.
    """
    modules = {}
    for path in {*PACKAGE.rglob("*.py")} - {PACKAGE / "__init__.py"}:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = nodes_of(path)
    below = {
        name: {
            module
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
            for module in [f"{node.module}.{alias.name}", node.module]
            if module in modules
        }
        for name, nodes in modules.items()
    }
    assert len(list(TopologicalSorter(below).static_order())) == len(modules)


BENCHMARKS = """
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, "benchmarks")
names = {path.stem for path in Path("benchmarks").glob("*.py")}
for name in sorted(names):
    try:
        import_module(name)
    except ModuleNotFoundError as error:  # Flower, for example, has an environment of its own
        if error.name.partition(".")[0] in {"fedsampling", "papers", "tests", *names}:
            raise
for place in (place for places in import_module("parts").PARTS.values() for place in places):
    module, _, path = place.partition(":")
    value = import_module(f"fedsampling.{module}")
    for name in path.split("."):
        value = getattr(value, name)
"""


def test_benchmarks_import_names_that_exist():
    """No target runs the benchmarks, so a moved name would go unnoticed."""
    subprocess.run([sys.executable, "-c", BENCHMARKS], cwd=ROOT, check=True)


def test_each_mutated_module_has_tests_that_exist():
    """``make mutants`` needs packages of its own, so a moved test would go unnoticed."""
    tree = nodes_of(ROOT / "benchmarks" / "mutants.py")
    assigned = {ast.unparse(n.targets[0]): n.value for n in tree if isinstance(n, ast.Assign)}
    tests, patterns = (ast.literal_eval(assigned[name]) for name in ("TESTS", "MODULES"))
    paths = [path for pattern in patterns for path in PACKAGE.glob(pattern)]
    modules = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in paths}
    assert tests.keys() <= modules
    for module in modules:
        package, _, name = module.partition("/")
        for test in tests.get(module, f"{package}/test_{name.rpartition('/')[2]}").split():
            assert (ROOT / "tests" / f"{test}.py").is_file(), module


def test_files_that_the_page_names_exist():
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)\b", PAGE)
    assert len(named) > 5
    places = (PACKAGE, PACKAGE.parent, ROOT)
    assert [n for n in named if not any((place / n).is_file() for place in places)] == []
