"""Validation of a configuration before anything runs: ``fedsampling check``."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.progress import align, format_bytes, format_duration, reporter
from fedsampling.experiments.papers import defining_modules
from fedsampling.experiments.specs import Job
from fedsampling.report.citation import paper_bibtex
from fedsampling.runs.cost_model import measure
from fedsampling.runs.places import run_stores, unfinished_runs
from fedsampling.runs.resources import Measured, excesses, measurement_key, save_measurements
from fedsampling.runs.store import find
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.project import Project


def check_all(project: Project) -> list[str]:
    """Check the configuration, every paper's file and every run; return a summary.

    For experiments with overrides, the clients are also loaded if their data are available. Each
    paper must have a citation and all functions that its figures and claims name.
    """
    plan, config = project.plan, project.config
    problems: list[str] = []
    if config.device == "cuda" and config.cluster.gpu == "none":
        from fedsampling.runs.execute import device  # pandas takes long to import

        with gathering(problems):
            device(config)  # skipped on clusters: another node may have the GPU
    for key, paper in plan.papers.items():
        with gathering(problems):
            paper_bibtex(paper.folder / "paper.bib", key)
        for files, names in (("figures", paper.artefacts), ("claims", paper.claims)):
            with gathering(problems):
                defining_modules(paper.folder, files, *names)
    changed = [
        job
        for job in plan.jobs.values()
        if config.overrides.get(job.paper, {}).get(job.experiment) and not job.block
    ]
    problems += _misfits(project, changed)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    runs = sum(len(job.runs) for job in plan.jobs.values())
    lines = [f"{project.file}: valid: {len(plan.jobs)} jobs, {runs} runs"]
    for key, changes in config.overrides.items():
        left_out = plan.papers[key].left_out
        lines += [
            f"overrides.{key}.{name}: left out: {reason}"
            for name, reason in left_out.items()
            if changes.get(name)
        ]
    return lines


def _misfits(project: Project, jobs: list[Job]) -> list[str]:
    """Load the clients of jobs that train a network, if available; return a line per error."""
    problems: list[str] = []
    for job in jobs:
        lines: list[str] = []
        with gathering(lines):
            _check_clients(job, project)
        problems += [f"overrides.{job.paper}.{job.experiment}.{line}" for line in lines]
    return problems


def _check_clients(job: Job, project: Project) -> None:
    """Raise an InputError if a network's settings do not fit its data, if these are available."""
    # These modules import pandas and torch, which takes seconds.
    from fedsampling.experiments.simulations.network import Network
    from fedsampling.experiments.simulations.simulation import Where
    from fedsampling.runs.cost_model import available_data, work_of

    where, data = Where(project.data, project.config.mirror), job.runs[0].data
    network = job.simulation
    if not isinstance(network, Network) or data != available_data(job, where.cache, where.mirror):
        return
    limit = 60.0 * project.config.cluster.max_runtime
    largest = work_of(network, data, where, len(job.runs), limit).largest
    if network.work.batch > largest:
        raise InputError(
            f"work.batch: {network.work.batch} exceeds the samples of every client; "
            f"must be at most {largest:.0f}"
        )


# Run ``fedsampling check-sampler`` in a separate process with a time limit.
#
# If the sampler loops forever, calls ``sys.exit`` or crashes, only that process ends.  The error is
# one line.


_CHECK = [sys.executable, "-P", "-X", "faulthandler", "-m", "fedsampling.cli", "check-sampler"]
_TRACE_SECONDS = 10.0  # time for an interrupted process to print its stack
_CALL = re.compile(r'^  File "(.+)", line (\d+) in (\w+)$', re.MULTILINE)


def check_in_subprocess(seconds: float, name: str, options: Sequence[str]) -> int:
    """Check a sampler, by name or file and settings such as ``m=4``; return the exit status."""
    command = [*_CHECK, "--timeout", "0", "--", name, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        place = _place(_interrupted(process), name)
        raise InputError(
            f"{name}: no result after {seconds:g} s{place}; look for an endless loop, "
            "put code that trains below if __name__ == '__main__', "
            f"or use --timeout {2 * seconds:g}"
        ) from None
    except BaseException:
        process.kill()
        raise
    if process.returncode < 0:
        cause = signal.Signals(-process.returncode).name
        raise InputError(f"{name}: the check ended with {cause}{_place(err, name)}; fix the file")
    if process.returncode not in (0, 2) or (process.returncode and not err):
        raise InputError(
            f"{name}: the check ended with status {process.returncode} and no result; "
            "a sampler must not end the process"
        )
    print(out, end="")
    print(err, end="", file=sys.stderr)
    return process.returncode


def _interrupted(process: "subprocess.Popen[str]") -> str:
    """End a process and return its stack trace, innermost call first."""
    process.send_signal(signal.SIGABRT)  # makes faulthandler print the stack in any state
    try:
        return process.communicate(timeout=_TRACE_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1]


def _place(report: str, name: str) -> str:
    """Return the innermost call within the user's file, from faulthandler's report."""
    for file, line, function in _CALL.findall(report):
        if file.endswith(name.rpartition("/")[2]):
            return f", in {function} ({name}:{line})"
    return ""


# Costs of a configuration before it runs, ``fedsampling plan``: jobs, time, downloads, disk.


START_UP_SECONDS = 1.5  # interpreter and imports of a job
MAX_SECONDS = 35.0  # for all estimates
ROWS_PER_ROUND, OTHER_ROWS, BYTES_PER_ROW = 10.0, 1000.0, 9.0  # of a run's table in the store
FILE_BYTES = 6000.0  # of a run's file without its rows: metadata and Parquet overhead


@dataclass(frozen=True)
class ExperimentCost:
    """Cost of one experiment, ``paper/experiment``.

    `hours` are those of the unfinished runs on one core, NaN if unknown; `at_most` tells whether
    runs may end before their last round; `disk` is in bytes.
    """

    experiment: str
    jobs: int
    runs: int
    finished: int
    hours: float
    at_most: bool
    disk: float


@dataclass(frozen=True)
class Costs:
    """Costs of all experiments; sizes of missing official files, None if unknown; notes."""

    experiments: tuple[ExperimentCost, ...]
    downloads: dict[str, int | None]
    notes: tuple[str, ...]


def estimate(project: Project, measures: bool = True) -> Costs:
    """Estimate the costs, and save the times and memory that cluster jobs will request.

    Without `measures`, times are unknown.
    """
    plan, config = project.plan, project.config
    target, shared = run_stores(project.results, config)
    open_runs = {
        job.name: sum(
            not find([target], run_hash, job.code) for run_hash in unfinished_runs(job, shared)
        )
        for job in plan.jobs.values()
    }
    due = [job for job in plan.jobs.values() if open_runs[job.name]]
    measured, notes = _measure(due, project) if measures else ({}, [])
    if measured:
        save_measurements(measured, project.results)
    notes += excesses(due, measured, config.cluster)
    by_experiment = {
        name: [plan.jobs[job] for job in plan.jobs_of(*name.split("/"))]
        for name in plan.experiments
    }
    return Costs(
        tuple(_cost(name, jobs, open_runs, measured) for name, jobs in by_experiment.items()),
        download_sizes(plan.datasets(*plan.jobs), project.data, config.mirror),
        tuple(notes),
    )


def cost_table(costs: Costs) -> str:
    """Format the costs as a table, with notes below."""
    hours = [cost.hours for cost in costs.experiments if cost.hours == cost.hours]
    total = ExperimentCost(
        "total",
        sum(cost.jobs for cost in costs.experiments),
        sum(cost.runs for cost in costs.experiments),
        sum(cost.finished for cost in costs.experiments),
        sum(hours) if hours else nan,
        False,
        sum(cost.disk for cost in costs.experiments),
    )
    rows: list[tuple[str, ...]] = [("experiment", "jobs", "runs", "finished", "CPU time", "disk")]
    for cost in (*costs.experiments, total):
        numbers = (cost.jobs, cost.runs, cost.finished)
        cpu_time = "≤ " * cost.at_most + format_duration(3600 * cost.hours)
        rows.append((cost.experiment, *map(str, numbers), cpu_time, format_bytes(cost.disk)))
    lines = [*align(rows, numbers_from=1), "", *costs.notes]
    lines += [
        f"download  {name}: {'unknown size' if size is None else format_bytes(size)}"
        for name, size in costs.downloads.items()
    ] or ["download: nothing"]
    if total.finished == total.runs:
        lines.append("All runs are finished; nothing has to be computed.")
    elif hours:
        lines.append(
            "CPU time is for one core of this machine and often off by a factor of two; divide it "
            "by your number of cores. ≤: runs may end before their last round."
        )
    else:
        lines.append("CPU time was not estimated.")
    return "\n".join(lines)


def _measure(jobs: Sequence[Job], project: Project) -> tuple[dict[str, Measured], list[str]]:
    """Estimate each job; also return the experiments that could not be, with the reason."""
    measured: dict[str, Measured] = {}
    notes: dict[str, str] = {}
    end = time.monotonic() + MAX_SECONDS
    with reporter() as progress:
        for index, job in enumerate(jobs):
            progress("measuring", index, len(jobs))
            key = measurement_key(job)
            if key in measured or job.experiment_id in notes:
                continue
            if time.monotonic() > end:
                notes[job.experiment_id] = f"no time left after {MAX_SECONDS:.0f} s"
                continue
            try:
                measured[key] = measure(job, project.results, project.config)
            except InputError as error:
                notes[job.experiment_id] = error.lines[0]
    return measured, [f"not estimated  {name}: {reason}" for name, reason in notes.items()]


def _cost(
    name: str, jobs: Iterable[Job], open_runs: dict[str, int], measured: dict[str, Measured]
) -> ExperimentCost:
    """Return the cost of an experiment; unknown jobs are assumed to take as long as the others."""
    listed = list(jobs)
    due = [job for job in listed if open_runs[job.name]]
    known = [(job, measured[key]) for job in due if (key := measurement_key(job)) in measured]
    seconds = sum(
        START_UP_SECONDS + open_runs[job.name] / len(job.runs) * cost.step * job.steps
        for job, cost in known
    )
    if due:
        seconds *= len(due) / len(known) if known else nan
    return ExperimentCost(
        name,
        len(listed),
        sum(len(job.runs) for job in listed),
        sum(len(job.runs) - open_runs[job.name] for job in listed),
        seconds / 3600,
        any(job.runs[0].settings.get("until") for job in due),
        sum(open_runs[job.name] * _table_bytes(job) for job in due),
    )


def _table_bytes(job: Job) -> float:
    """Estimate the size of one run of a job in the store."""
    settings = job.runs[0].settings
    rounds = settings.get("rounds", 0) / settings.get("every", 1)
    return FILE_BYTES + BYTES_PER_ROW * (ROWS_PER_ROUND * rounds or OTHER_ROWS)
