"""Apply each mutation to a finished folder, and compare with a folder that was rebuilt."""

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

from tests.workflow.mutations import stepping, world
from tests.workflow.mutations.table import TABLE, of_results

from fedsampling.experiments import fingerprints

RESULTS = dict(of_results())  # after which the results are the same
# Files of what the paper, or only this call's selection, leaves out stay; no page shows them.
KEPT = ("artefacts/", "cards/", "explorer/", "summaries/")


def built(root):
    """Make the world, and all its results."""
    root.mkdir(parents=True)
    world.write(root)
    ran, error = stepping.update(root)
    assert not error, error
    return ran


def warm():
    """Parse this package once, before the processes are forked."""
    for path in fingerprints.PACKAGE.rglob("*.py"):
        fingerprints._read(path)


@contextlib.contextmanager
def same_environment():
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def outcome(name, base, scratch):
    """Return what differs after a mutation: stale results by name; and the steps that ran."""
    change = TABLE[name]
    shutil.rmtree(scratch, ignore_errors=True)
    incremental, rebuilt = scratch / "incremental", scratch / "rebuilt"
    shutil.copytree(base, incremental, copy_function=shutil.copy2)
    shutil.copytree(base, rebuilt, ignore=shutil.ignore_patterns("results", "logs", ".steps.json"))
    with same_environment():
        change(incremental)
        ran, error = stepping.update(incremental)
        if name in RESULTS:
            rebuilt, expected = base, ""
        else:
            change(rebuilt)
            # Claims count the runs of the paper's size that the store lacks.
            if name.startswith("overrides: "):
                shutil.copytree(base / "results" / "store", rebuilt / "results" / "store")
            expected = stepping.build(rebuilt)
    if error or expected:
        stale = [] if bool(error) == bool(expected) else [f"error: {error or 'none'} | {expected}"]
        return stale, ran
    found, expected = stepping.results(incremental), stepping.results(rebuilt)
    differing = stepping.differing(found, expected)
    return [file for file in differing if file in expected or not file.startswith(KEPT)], ran


def main(words):
    """Print a line for each mutation, and the number of stale ones."""
    folder = Path(words[0])
    shutil.rmtree(folder, ignore_errors=True)
    warm()
    built(folder / "base")
    stale = 0
    names = [name for name in TABLE if len(words) < 2 or any(word in name for word in words[1:])]
    for name in names:
        start = time.time()
        differing, ran = outcome(name, folder / "base", folder / "scratch")
        stale += bool(differing)
        state = f"STALE {differing[:3]}" if differing else "ok"
        runs = len([step for step in ran if step.startswith("run ")])
        others = [step.split()[0] for step in ran if not step.startswith("run ")]
        print(f"{name}: {state}; {runs} runs, {others}; {time.time() - start:.1f} s", flush=True)
    print(f"{len(names)} mutations, {stale} stale")


if __name__ == "__main__":
    main(sys.argv[1:])
