"""Mutation testing: changes one expression at a time and counts the changes that a test notices.

`make mutants SIZE=100` draws that many of Cosmic Ray's mutants of the modules below, each with the
same chance, and runs the module's own tests on each.  It prints every survivor as a diff, and the
share that was killed with Wilson's 95 % interval.

Cosmic Ray itself starts pytest afresh for every mutant, which takes longer than the tests.  Here
each mutant is tested in a fork of one process that has already imported the libraries.
"""

import argparse
import ast
import difflib
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from cosmic_ray.commands import init
from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from scipy.stats import binomtest

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/fedsampling")
MODULES = (
    "samplers/[!_]*.py",
    "samplers/*/[!_]*.py",
    "theory/[!_]*.py",
    "evidence/statistics.py",
    "evidence/rules.py",
)
# The tests of a module are in tests/<package>/test_<module>.py, except for these.
TESTS = {
    "samplers/protocol/slots": "samplers/test_scheme samplers/test_basic",
    "samplers/basic": "samplers/test_basic samplers/test_scheme",
    "samplers/checks/faults": "samplers/test_check",
    "samplers/checks/populations": "samplers/test_check",
    "samplers/checks/rounds": "samplers/test_check",
    "samplers/checks/validation": "learning/training/test_validation",
    "samplers/clustered": "samplers/test_clustered papers/fraboni2021clustered/test_theory",
    "samplers/delayhet": "samplers/test_latency",
    "samplers/importance": "samplers/test_importance samplers/test_isfedavg",
    "samplers/latency": "samplers/test_latency theory/test_heterogeneity",
    "samplers/minimum_norm": "samplers/test_latency",
    "samplers/protocol/base": "samplers/test_scheme samplers/test_basic",
    "samplers/protocol/draws": "samplers/test_scheme samplers/test_basic",
    "samplers/protocol/grids": "samplers/test_scheme experiments/test_specs",
    "samplers/protocol/in_settings": "samplers/test_scheme experiments/test_specs",
    "samplers/protocol/guest": "samplers/guests/test_hostile_samplers samplers/guests/test_packing",
    "samplers/protocol/prepared": "samplers/test_scheme samplers/guests/test_hostile_samplers",
    "samplers/similarity": "samplers/test_clustered",
    "samplers/simplex": "samplers/test_latency samplers/test_runtime",
    "samplers/users/described": "samplers/test_one_run learning/training/test_validation",
    "samplers/users/run_view": "samplers/test_one_run",
    "samplers/users/files": "samplers/test_scheme experiments/test_own_schemes",
    "theory/heterogeneity": "theory/test_heterogeneity samplers/test_latency",
    "theory/improvement": "theory/test_improvement",
    "theory/weights": "theory/test_weights papers/fraboni2022general/test_theory",
}
LIBRARIES = ("hypothesis", "pandas", "pydantic", "scipy.optimize", "scipy.stats", "torch", "yaml")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="mutants that are drawn")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("only", nargs="*", help="modules, as theory/weights; all if none is named")
    arguments = parser.parse_args()
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        enter_copy(Path(folder))
        paths = [path for pattern in MODULES for path in sorted(Path().glob(f"{SOURCE}/{pattern}"))]
        mutants = all_mutants(
            [p for p in paths if not arguments.only or module(p) in arguments.only]
        )
        size = min(arguments.size, len(mutants))
        print(f"{size} of {len(mutants)} mutants, seed {arguments.seed}", flush=True)
        seconds = {}
        killed = Counter()
        for mutant in random.Random(arguments.seed).sample(mutants, size):
            if mutant.module_path not in seconds:
                seconds[mutant.module_path] = time_of_tests(mutant.module_path)
            killed[is_killed(mutant, 10 + 5 * seconds[mutant.module_path])] += 1
            print(f"killed {killed[True]} of {killed.total()}", flush=True)
    interval = binomtest(killed[True], size).proportion_ci(method="wilson")
    print(
        f"killed {killed[True]} of {size}: {killed[True] / size:.0%} "
        f"(95 % interval {interval.low:.0%} to {interval.high:.0%})"
    )


def enter_copy(folder):
    """Work in a tree whose sources can be changed, and whose other files are links to this one."""
    for path in ROOT.iterdir():
        if path.name not in ("src", ".git"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "src", folder / "src")
    os.chdir(folder)
    sys.path.insert(0, str(folder / "src"))
    sys.dont_write_bytecode = True  # of two changes in one second, Python might see the first only


def module(path):
    return path.relative_to(SOURCE).with_suffix("").as_posix()


def all_mutants(paths):
    """List the mutants of some modules but for those of type hints, which change no result."""
    with use_db(":memory:") as database:
        init(paths, database, {})
        mutants = [mutation for item in database.work_items for mutation in item.mutations]
    hints = {path: list(type_hints(path)) for path in paths}
    return sorted(
        (m for m in mutants if not any(a <= m.start_pos < b for a, b in hints[m.module_path])),
        key=lambda m: (m.module_path, m.operator_name, m.occurrence),
    )


def type_hints(path):
    """Yield where each type hint begins and ends."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for hint in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if hint is not None:
                yield (hint.lineno, hint.col_offset), (hint.end_lineno, hint.end_col_offset)


def time_of_tests(path):
    """Run a module's tests on the module as it is; return the seconds they take a processor."""
    passed, seconds = run_tests(path, limit=600)
    if not passed:
        raise SystemExit(f"{module(path)}: its tests fail without a mutation; fix them first")
    return seconds


def is_killed(mutant, limit):
    """Test one mutant; print it if it survives."""
    operator = get_operator(mutant.operator_name)(**mutant.operator_args)
    with use_mutation(mutant.module_path, operator, mutant.occurrence) as (before, after):
        passed, _ = run_tests(mutant.module_path, limit)
    if not passed:
        return True
    lines = (text.splitlines() for text in (before, after))
    print(*difflib.unified_diff(*lines, module(mutant.module_path), "", "", "", 2, ""), sep="\n")
    return False


def run_tests(path, limit):
    """Run a module's tests in a process of their own; say whether they passed, and the seconds.

    Seconds are the processor's, so that a busy machine kills no mutant; after `limit` of them the
    process is ended.
    """
    package = module(path).partition("/")[0]
    tests = TESTS.get(module(path), f"{package}/test_{path.stem}").split()
    child = os.fork()
    if not child:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        signal.setitimer(signal.ITIMER_PROF, limit)
        code = 2
        try:
            code = pytest.main(["-qx", "-p", "no:cacheprovider", *(f"tests/{t}.py" for t in tests)])
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    return status == 0, used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
