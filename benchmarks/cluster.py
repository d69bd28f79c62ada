"""Measure Snakemake as the controller of a large plan, without a cluster.

``python benchmarks/cluster.py [--jobs 5000]``: stand-ins for SLURM's clients (``fake_slurm.py``)
accept every job and later report it as completed, so that only the controller's own work is
measured: building the graph, submitting, memory, and the time until it submits again after it was
killed.  Works in a temporary folder, runs no simulation, and prints a table.  docs/cluster.md has
the results.
"""

import argparse
import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fake_slurm import COMBINATIONS, PAPER, Submission, finish, plan_of, prepare, submissions, usage


def start(folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the controller on all jobs; it dies with this process."""
    with (folder / "snakemake.out").open("ab") as output:
        process = subprocess.Popen(
            [
                *("snakemake", "--workflow-profile", "profiles/slurm", "--jobs", "100000"),
                *("--until", "simulate", "--", PAPER),
            ],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
        )
    atexit.register(process.kill)
    return process


class Node:
    """Ends each job `seconds` after its submission, with empty results."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.jobs: list[Submission] = []
        self.ended = 0

    def tend(self) -> None:
        """Accept new jobs, and end the jobs whose time is over."""
        self.jobs += submissions(self.folder, len(self.jobs))
        for job in self.jobs[self.ended :]:
            if time.time() - job.when < self.seconds:
                break
            for file in (f"runs/{job.name}.json", f"benchmarks/simulate/{job.name}.tsv"):
                path = self.folder / "results" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("{}")
            finish(self.folder, job)
            self.ended += 1

    def until(self, process: "subprocess.Popen[bytes]", count: int) -> float:
        """Serve until `count` jobs are submitted or the controller ends; return its memory."""
        peak = 0.0
        while process.poll() is None and len(self.jobs) < count:
            peak = max(peak, usage(process.pid).mb)
            self.tend()
            time.sleep(0.2)
        return peak


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60, help="of each job")
    arguments = parser.parse_args()
    total = -(-arguments.jobs // COMBINATIONS) * COMBINATIONS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = prepare(folder, plan_of({"seeds": total // COMBINATIONS, "seed_block": 1}))
        node = Node(folder, arguments.seconds)
        begin = time.time()
        first = start(folder, environment)
        peak = node.until(first, total // 2)
        half = [job.when for job in node.jobs]
        print(f"jobs: {total}, of {arguments.seconds:.0f} s each; load {os.getloadavg()[0]:.1f}")
        print(f"until the first submission: {half[0] - begin:.1f} s")
        print(f"submission of the first half: {len(half) / (half[-1] - half[0]):.1f} jobs/s")
        print(f"controller's peak memory: {peak:.0f} MB")
        first.send_signal(signal.SIGKILL)
        first.wait()
        killed = time.time()
        node.tend()
        before = len(node.jobs)
        second = start(folder, environment)
        peak = node.until(second, 10**9)
        second_start = node.jobs[before].when
        print(f"until its successor submits: {second_start - killed:.1f} s")
        if second.wait():
            sys.exit((folder / "snakemake.out").read_text()[-3000:])
        print(f"its peak memory: {peak:.0f} MB")
        print(f"submitted twice: {len(node.jobs) - total} jobs that the first had in the queue")
        times = [job.when for job in node.jobs[before:]]
        print(f"its submission: {len(times) / (times[-1] - times[0]):.1f} jobs/s")
        print(f"all in all: {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
