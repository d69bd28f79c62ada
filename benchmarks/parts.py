"""Print where the CPU time of a command goes, over all processes of fedsampling that it starts.

``python benchmarks/parts.py [--config KEY=VALUE …] [--also PATH] -- COMMAND …`` copies the project
to a temporary folder and runs the command there, for example

    python benchmarks/parts.py -- snakemake --cores 1                     # make reproduce
    python benchmarks/parts.py --config scale=quick --config data=embedded \\
        -- fedsampling run fraboni2021clustered/mnist/base/md/block-0     # one job
    python benchmarks/parts.py --also my_sampler.py -- fedsampling compare my_sampler.py

A wrapper named ``fedsampling``, first on the PATH, clocks each process.  CPU time counts for the
innermost running function of ``PARTS``, or for imports.  With one thread, it equals wall time on
an idle machine.  Snakemake's own time is the remainder of the command's total.
"""

import argparse
import atexit
import builtins
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).parents[1]
COPIED = ("Snakefile", "workflow", "profiles", "papers", "envs", "published_runs", "CITATION.cff")
LOG = "FEDSAMPLING_PARTS"  # path of the file to which each process appends a line
# Functions by module. A call from a listed function counts for that function, unless listed itself.
PARTS = {
    "plan, digests": ("workflow.project:Project._cached", "workflow.project:Project._key"),
    "data": ("experiments.simulations.network:load_problem", "report.data_cards:build"),
    "training and other simulation": ("runs.execute:_compute",),
    "recomputed runs": ("workflow.recheck:recheck",),
    "evaluation": ("learning.training.evaluation:evaluate",),
    "reading runs and summaries": (
        *("runs.store:load", "runs.store:load_together", "evidence.summaries:load"),
    ),
    "writing": ("runs.store:save", "runs.store:write", "base.files:write_bytes"),
    "summaries": ("workflow.draw:summarise",),
    "drawing": ("workflow.draw:_render",),
    "views of the explorer": ("report.drawing.views:save",),
    "claims": ("workflow.draw:judge_claims",),
    "report": ("workflow.report:_build",),
}
ORDER = ("start", "imports", *PARTS, "rest")


class Clock:
    """Distributes a process's CPU time over parts; the innermost running part gets it."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter(start=process_time())
        self.running, self.since = ["rest"], process_time()

    def switch(self) -> None:
        """Charge the time since the last switch."""
        now = process_time()
        self.spent[self.running[-1]] += now - self.since
        self.since = now

    def clocked(self, work: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Wrap a function, so that its time is charged to a part."""

        @wraps(work)
        def run(*arguments: Any, **named: Any) -> Any:
            self.switch()
            self.running.append(part)
            try:
                return work(*arguments, **named)
            finally:
                self.switch()
                self.running.pop()

        return run


def child() -> None:
    """Run ``fedsampling`` with this process's arguments, and log its parts at the end."""
    clock = Clock()
    pending = {
        f"fedsampling.{place.partition(':')[0]}": []
        for of_part in PARTS.values()
        for place in of_part
    }
    for part, places in PARTS.items():
        for place in places:
            module, _, name = place.partition(":")
            pending[f"fedsampling.{module}"].append((name, part))

    def importing(work: Callable[..., Any]) -> Callable[..., Any]:
        run = clock.clocked(work, "imports")

        @wraps(work)
        def load(*arguments: Any, **named: Any) -> Any:
            result = run(*arguments, **named)
            for module in [name for name in pending if _complete(name)]:
                for name, part in pending.pop(module):
                    _wrap(sys.modules[module], name, clock, part)
            return result

        return load

    def log() -> None:
        clock.switch()
        with open(os.environ[LOG], "a") as file:
            file.write(json.dumps([sys.argv[1:], clock.spent]) + "\n")

    builtins.__import__ = importing(builtins.__import__)
    importlib.import_module = importing(importlib.import_module)
    atexit.register(log)
    from fedsampling.cli import main as command

    sys.argv[0] = "fedsampling"
    command()


def _complete(module: str) -> bool:
    """Whether a module has been imported to its end."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    return spec is not None and not getattr(spec, "_initializing", False)


def _wrap(module: Any, name: str, clock: Clock, part: str) -> None:
    owner, _, method = name.rpartition(".")
    if not owner:
        setattr(module, name, clock.clocked(getattr(module, name), part))
    else:  # a cached property
        prop = vars(getattr(module, owner))[method]
        prop.func = clock.clocked(prop.func, part)


def main() -> None:
    """Run the command in a copy of the project; print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--also", action="append", default=[], type=Path, help="copied as well")
    parser.add_argument("command", nargs="+")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (*(ROOT / each for each in COPIED), *chosen.also):
            copy = shutil.copytree if path.is_dir() else shutil.copy2
            copy(path, folder / path.name)
        lines = [line.replace("=", ": ", 1) for line in chosen.config]
        (folder / "config.yaml").write_text("\n".join(lines) or "{}")
        shim = folder / "bin" / "fedsampling"
        shim.parent.mkdir()
        shim.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).resolve()} "$@"\n')
        shim.chmod(0o755)
        log = folder / "parts"
        log.touch()
        path = os.pathsep.join(
            [str(shim.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        )
        environment = {**os.environ, "PATH": path, LOG: str(log), "PYTHONPATH": str(ROOT / "src")}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        status = subprocess.run(chosen.command, cwd=folder, env=environment, check=False).returncode
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        processes = [json.loads(line) for line in log.read_text().splitlines()]
    show(processes, used.ru_utime + used.ru_stime)
    sys.exit(status)


def show(processes: list[tuple[list[str], dict[str, float]]], total: float) -> None:
    """Print a table: a row for each part, a column for each command."""
    columns: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for arguments, spent in processes:
        column = " ".join(arguments[: 2 if arguments[:1] == ["draw"] else 1])
        columns.setdefault(column, Counter()).update(spent)
        counts[column] += 1
    everything = sum(columns.values(), Counter())
    print(f"\n{os.uname().machine}, load {os.getloadavg()[0]:.1f}; seconds of CPU time")
    for part in ORDER:
        each = ", ".join(
            f"{column} {spent[part]:.1f}" for column, spent in columns.items() if spent[part] > 0.05
        )
        print(f"{part:32} {everything[part]:8.2f}   {each}")
    print(f"{'Snakemake, git and others':32} {total - everything.total():8.2f}")
    print(f"{'together':32} {total:8.2f}")
    for column, spent in columns.items():
        print(f"{counts[column]:4} × {column:27} {spent.total():8.2f}")


if __name__ == "__main__":
    if LOG in os.environ:
        child()
    else:
        main()
