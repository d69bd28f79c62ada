"""Time plans of many jobs, and a store of many runs.

``python benchmarks/large_plans.py [--jobs 100000] [--runs 1000000]`` prints CPU seconds and memory
of ``fedsampling status``: when it resolves a plan of that many jobs, when it reads that plan from
disk, and when it lists a store of that many files, compared with an empty store.  The files are
empty, because listing does not read them.  Works in a temporary folder.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from fedsampling.workflow.project import PLAN

ROOT = Path(__file__).parents[1]
CODE = "0" * 16  # fingerprint of the code that made the runs
PAPER, COMBINATIONS = "fraboni2022general", 28  # of case and sampler in its experiment `weights`


def main() -> None:
    """Print all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("papers", "published_runs"):
            shutil.copytree(ROOT / part, folder / part)
        plans(folder, chosen.jobs)
        stores(folder, chosen.runs)


def plans(folder: Path, jobs: int) -> None:
    """Resolve a plan, read it, and estimate its costs."""
    seeds = -(-jobs // COMBINATIONS)
    weights = {"seeds": seeds, "seed_block": 1}
    overrides = {"papers": [PAPER], "overrides": {PAPER: {"weights": weights}}}
    configure(folder, scale="paper", shipped=False, **overrides)
    print(f"{seeds * COMBINATIONS:,} jobs")
    report("  resolve the plan and write it", folder, "status")
    plan = folder / "results" / PLAN
    print(f"  {PLAN:32} {plan.stat().st_size / 1e6:8.0f} MB on disk")
    report("  read it", folder, "status")
    report("  forecast its costs", folder, "plan")


def stores(folder: Path, runs: int) -> None:
    """List a store, and search it for all runs of the papers."""
    configure(folder, scale="best")
    (folder / "results" / PLAN).unlink()
    print("scale best")
    report("  with an empty store", folder, "status")
    begin = time.perf_counter()
    store = folder / "results" / "store"
    for first in range(256):
        (store / f"{first:02x}").mkdir(parents=True)
    for number in range(runs):
        run = hashlib.sha256(str(number).encode()).hexdigest()[:20]
        (store / run[:2] / f"{run}-{CODE}.parquet").touch()
    print(f"  {runs:,} files made in {time.perf_counter() - begin:.0f} s")
    report("  with this store, first call", folder, "status")
    report("  with this store, second call", folder, "status")


def configure(folder: Path, **content: object) -> None:
    """Write the configuration."""
    (folder / "config.yaml").write_text(yaml.safe_dump(content))


def report(title: str, folder: Path, *command: str) -> None:
    """Run ``fedsampling``; print its CPU time, wall time and memory."""
    code = "from fedsampling.cli import main; main()"
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    clock = time.perf_counter() - begin
    cpu, memory = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6
    failed = " (failed)" if status else ""
    print(f"{title:34} {cpu:8.1f} s of CPU, {clock:.1f} s, {memory:.0f} MB{failed}", flush=True)


if __name__ == "__main__":
    main()
