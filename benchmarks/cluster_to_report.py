"""Run a plan of many jobs on a simulated cluster, from the first submission to the report.

``python benchmarks/cluster_to_report.py [--jobs 100] [--runs-per-job 1] [--queue N]``: Snakemake
submits to stand-ins for SLURM's clients (``fake_slurm.py``), at most N jobs at a time.  This
process is the cluster's node: it computes real but tiny runs, one job after another, so that the
controller, the files and the report dominate.  Three of the jobs and the drawing run as the
submitted shell commands, including the two starts of Snakemake in each job.
Works in a temporary folder.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from fake_slurm import COMBINATIONS, Submission, Usage, finish, plan_of, prepare, submissions, usage

DRAWS = 50  # rounds of a run: a few milliseconds
REAL_JOBS = 3  # simulations that run as the submitted commands
REPORT = Path("results/report/index.html")


@dataclass
class Events:
    """Jobs that the node has executed, with the Unix times of the measured events."""

    jobs: list[Submission] = field(default_factory=list)
    last_result: float = 0.0
    drawn: float = 0.0
    real: list[Usage] = field(default_factory=list)
    drawing: Usage = field(default_factory=lambda: Usage(0, 0))


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--runs-per-job", type=int, default=1)
    parser.add_argument("--queue", type=int, help="most jobs at a time (default: all)")
    chosen = parser.parse_args()
    blocks = -(-chosen.jobs // COMBINATIONS)
    seeds = blocks * chosen.runs_per_job
    config = plan_of({"seeds": seeds, "seed_block": chosen.runs_per_job, "draws": DRAWS})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = prepare(folder, config)
        os.chdir(folder)
        begin = time.time()
        queue = chosen.queue or blocks * COMBINATIONS + 1
        with Path("snakemake.out").open("wb") as output:
            process = subprocess.Popen(
                ["snakemake", "--workflow-profile", "profiles/slurm", "--jobs", str(queue)],
                env=environment,
                stdout=output,
                stderr=output,
            )
        try:
            events, usage, everything = serve(process, environment)
        finally:
            process.kill()
        print(f"{blocks * COMBINATIONS:,} jobs, {seeds * COMBINATIONS:,} runs", end="; ")
        print(f"at most {queue:,} in the queue; load {os.getloadavg()[0]:.1f}")
        show(events, usage, everything, begin, time.time())


def serve(
    process: "subprocess.Popen[bytes]", environment: dict[str, str]
) -> tuple[Events, Usage, Usage]:
    """Execute submitted jobs until the controller ends.

    Returns
    -------
    Events
    Usage
        Of the controller.
    Usage
        Of the controller and its child processes: submissions, queries, the report.
    """
    events, peak = Events(), Usage(0, 0)
    execute = node(environment, events)
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = status
            break
        now = usage(process.pid)
        peak = Usage(max(peak.cpu, now.cpu), max(peak.mb, now.mb))
        waiting = submissions(Path(), len(events.jobs))
        for job in waiting:
            execute(job)
        if not waiting:
            time.sleep(0.1)
    if status or not REPORT.is_file():
        sys.exit(Path("snakemake.out").read_text()[-3000:])
    return events, peak, Usage(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def node(environment: dict[str, str], events: Events) -> Callable[[Submission], None]:
    """Return a function that executes a job and reports its end to ``squeue``."""
    from fedsampling.base.progress import reporter
    from fedsampling.runs.execute import execute
    from fedsampling.runs.places import RESULTS
    from fedsampling.workflow.project import CONFIG, Project

    project = None

    def compute(job: Submission) -> None:
        nonlocal project
        project = project or Project.open(RESULTS / CONFIG)
        with reporter() as progress:
            execute([project.plan.job(job.name)], project.config, RESULTS, progress)
        benchmark = RESULTS / "benchmarks" / "simulate" / f"{job.name}.tsv"
        benchmark.parent.mkdir(parents=True, exist_ok=True)
        benchmark.write_text("s\n0\n")

    def run(job: Submission) -> None:
        events.jobs.append(job)
        if job.rule != "simulate":
            events.drawing = as_submitted(job, environment)
            events.drawn = time.time()
        elif len(events.real) < REAL_JOBS:
            events.real.append(as_submitted(job, environment))
        else:
            compute(job)
            events.last_result = time.time()
        finish(Path(), job)

    return run


def as_submitted(job: Submission, environment: dict[str, str]) -> Usage:
    """Run a job's shell command."""
    path = Path(f"job-{job.number}.out")
    with path.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", job.command],
            env=environment | {"SLURM_JOB_ID": str(job.number), "SLURM_CPUS_PER_TASK": "1"},
            stdout=output,
            stderr=output,
        )
    _, process.returncode, used = os.wait4(process.pid, 0)
    if process.returncode:
        sys.exit(path.read_text()[-3000:])
    return Usage(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def show(events: Events, usage: Usage, everything: Usage, begin: float, end: float) -> None:
    """Print the measurement."""
    simulations = [job for job in events.jobs if job.rule == "simulate"]
    drawing = next(job for job in events.jobs if job.rule != "simulate")
    first, last = simulations[0].when, simulations[-1].when
    waited = drawing.when - events.last_result
    report = REPORT.stat().st_mtime
    queries = len(Path("queries").read_text())
    stored = sum(path.is_file() for path in Path("results").rglob("*"))
    size = sum(path.stat().st_size for path in Path("results").rglob("*") if path.is_file())
    rows = {
        "sbatch calls; squeue calls": f"{len(events.jobs):,}; {queries}",
        "until the first submission": f"{first - begin:.0f} s",
        "submission": f"{last - first:.0f} s, {len(simulations) / (last - first):.0f} jobs/s",
        "last result until the drawing is submitted": f"{waited:.0f} s",
        "drawing, with two starts of Snakemake": f"{events.drawn - drawing.when:.0f} s, "
        f"{events.drawing.cpu:.0f} s of CPU, {events.drawing.mb:.0f} MB",
        "its end until the report": f"{report - events.drawn:.0f} s",
        "last result until the report": f"{report - events.last_result:.0f} s",
        "from the start to the end": f"{end - begin:.0f} s",
        "controller's CPU time": f"{usage.cpu:.0f} s, with all that it starts {everything.cpu:.0f}",
        "controller's peak memory": f"{usage.mb:.0f} MB",
        "a simulation as submitted": f"{median(job.cpu for job in events.real):.1f} s of CPU, "
        f"{median(job.mb for job in events.real):.0f} MB",
        "files of results": f"{stored:,}, {size / 1e6:.0f} MB",
    }
    for title, value in rows.items():
        print(f"  {title:44} {value}")


if __name__ == "__main__":
    main()
