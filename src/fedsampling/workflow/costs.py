"""Costs of a configuration before it runs, ``fedsampling plan``: jobs, time, downloads, disk."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

from fedsampling.base.errors import InputError
from fedsampling.base.plain_text import align, format_bytes, format_duration
from fedsampling.base.progress import reporter
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.cost_model import measure
from fedsampling.runs.cluster.resources import (
    Measured,
    excesses,
    measurement_key,
    save_measurements,
)
from fedsampling.runs.places import run_stores, unfinished_runs
from fedsampling.runs.store import find
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.project import Project

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
