"""Costs of a configuration before it runs: jobs, time and downloads; ``fedsampling plan``."""

import time
from collections.abc import Sequence
from math import isnan, nan
from typing import NamedTuple

from fedsampling.base.errors import InputError
from fedsampling.base.progress import reporter
from fedsampling.base.text import align, format_bytes, format_duration
from fedsampling.data.sources.fetch import download_sizes
from fedsampling.experiments.specs import Job
from fedsampling.runs.measurements import Measured, measurement_key, save_measurements
from fedsampling.runs.places import finished_runs, run_stores
from fedsampling.runs.rule_resources import RuleResources
from fedsampling.runs.store import find
from fedsampling.workflow.job_costs import measure
from fedsampling.workflow.project import Project

START_UP_SECONDS = 1.5  # interpreter and imports of a job
MAX_SECONDS = 35.0  # for all estimates


class ExperimentCost(NamedTuple):
    """Cost of one experiment, or of all."""

    experiment: str
    jobs: int
    runs: int
    finished: int
    hours: float  # of the unfinished runs, on one core; NaN if unknown
    at_most: bool  # whether runs may end before their last round
    gpu_hours: float = 0.0  # predicted for the runs of networks on an H100


class Costs(NamedTuple):
    """Costs of all experiments."""

    experiments: list[ExperimentCost]
    downloads: dict[str, int | None]  # bytes of missing official files; None if unknown
    notes: list[str]
    on_gpu: bool = False  # whether networks were measured on this machine's GPU


def estimate(project: Project) -> Costs:
    """Estimate the costs, and save the times and memory that cluster jobs will request."""
    plan, config = project.plan, project.config
    target, shared = run_stores(project.results, config)
    reused = finished_runs(shared)
    open_runs = {
        job.name: sum(
            run.hash not in reused and not find([target], run.hash, job.code) for run in job.runs
        )
        for job in plan.jobs.values()
    }
    due = [job for job in plan.jobs.values() if open_runs[job.name]]
    measured, notes = _measure(due, project)
    if measured:
        save_measurements(measured, project.results)
    requests = RuleResources(plan.jobs, plan.batches, config.cluster, project.results)
    notes += requests.excesses([job.name for job in due])
    costs = [_cost(name, plan.jobs_of(name), open_runs, measured) for name in plan.experiments]
    downloads = download_sizes(plan.datasets(*plan.jobs), project.data, config.mirror)
    on_gpu = any(cost.device != "cpu" for cost in measured.values())
    return Costs(costs, downloads, notes, on_gpu)


_CORE = "one core of this machine", "cores"


def cost_table(costs: Costs) -> str:
    """Format the costs as a table, with notes below."""
    hours = [cost.hours for cost in costs.experiments if not isnan(cost.hours)]
    jobs, runs, finished = (
        sum(getattr(cost, column) for cost in costs.experiments)
        for column in ("jobs", "runs", "finished")
    )
    total = ExperimentCost("total", jobs, runs, finished, sum(hours) if hours else nan, False)
    time_of = "GPU time" if costs.on_gpu else "CPU time"
    rows: list[tuple[str, ...]] = [("experiment", "jobs", "runs", "finished", time_of)]
    for cost in (*costs.experiments, total):
        cpu_time = "≤ " * cost.at_most + format_duration(3600 * cost.hours)
        rows.append((*map(str, cost[:4]), cpu_time))
    lines = [*align(rows, numbers_from=1), "", *costs.notes]
    lines += [
        f"download  {name}: {'unknown size' if size is None else format_bytes(size)}"
        for name, size in costs.downloads.items()
    ] or ["download: nothing"]
    if total.finished == total.runs:
        lines.append("All runs are finished; nothing has to be computed.")
    elif hours:
        if gpu_hours := sum(cost.gpu_hours for cost in costs.experiments):
            lines.append(
                f"On an H100, runs of networks would take {format_duration(3600 * gpu_hours)} "
                "(predicted, not measured: docs/performance.md)."
            )
        where, number = ("this machine's GPU", "GPUs") if costs.on_gpu else _CORE
        lines.append(
            f"{time_of} is for {where} and often off by a factor of two; divide it "
            f"by your number of {number}. ≤: runs may end before their last round."
        )
    else:
        lines.append("CPU time was not estimated.")
    return "\n".join(lines)


def _measure(jobs: Sequence[Job], project: Project) -> tuple[dict[str, Measured], list[str]]:
    """Estimate each job; also return notes on the experiments that could not be estimated."""
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
    name: str, jobs: Sequence[Job], open_runs: dict[str, int], measured: dict[str, Measured]
) -> ExperimentCost:
    """Return the cost of an experiment; unknown jobs are assumed to take as long as the others."""
    due = [job for job in jobs if open_runs[job.name]]
    known = [(job, measured[key]) for job in due if (key := measurement_key(job)) in measured]
    seconds = sum(
        START_UP_SECONDS + open_runs[job.name] / len(job.runs) * cost.step * job.steps
        for job, cost in known
    )
    if due:
        seconds *= len(due) / len(known) if known else nan
    gpu_seconds = sum(
        open_runs[job.name] / len(job.runs) * cost.gpu_step * job.steps for job, cost in known
    )
    runs = sum(len(job.runs) for job in jobs)
    finished = runs - sum(open_runs[job.name] for job in due)
    at_most = any(job.runs[0].settings.get("until") for job in due)
    hours = seconds / 3600, at_most, gpu_seconds / 3600
    return ExperimentCost(name, len(jobs), runs, finished, *hours)
