"""Costs of a configuration before it runs, ``fedsampling plan``: jobs, time, downloads, disk."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from fedsampling.base.columns import align
from fedsampling.base.errors import InputError
from fedsampling.base.progress import reporter
from fedsampling.base.quantities import format_bytes, format_duration
from fedsampling.experiments.config import Config
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.forecast import forecast, forecast_lines
from fedsampling.runs.cluster.measuring import measure, timing_key
from fedsampling.runs.cluster.resources import (
    Measured,
    load_measurements,
    measurement_key,
    save_measurements,
)
from fedsampling.runs.places import run_stores, unfinished_runs
from fedsampling.runs.store import find
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.project import Project

START_UP_SECONDS = 1.5  # interpreter and imports of a job
MAX_MEASUREMENT_SECONDS = 35.0  # of all jobs
BYTES_PER_ROW = 9.0  # of a run's table in the store: round, metric and value, compressed
TYPICAL_CLIENTS = 200.0  # in runs whose output has a row per client
FILE_BYTES = 6000.0  # of a run's file without its rows: metadata and Parquet overhead


@dataclass(frozen=True)
class ExperimentCost:
    """Cost of one experiment.

    Parameters
    ----------
    experiment : str
        ``paper/experiment``.
    jobs, runs : int
    finished : int
        Runs that are already in this store or in a shared store.
    hours : float
        Time on one core for the unfinished runs; NaN if none of their jobs was measured.
    at_most : bool
        Whether runs may end before their last round.
    disk : float
        Size of the unfinished runs in bytes.
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
    """Costs of all experiments.

    Parameters
    ----------
    experiments : tuple of ExperimentCost
    downloads : dict
        Size in bytes of each official file that is not in the cache; None if unknown.
    measuring_seconds : float
        Duration of the measurements.
    measurements : dict
        By :func:`fedsampling.runs.cluster.resources.measurement_key`.
    unfinished : tuple of Job
        Jobs with an unfinished run.
    notes : tuple of str
        Experiments and jobs that could not be measured, each with the reason.
    """

    experiments: tuple[ExperimentCost, ...]
    downloads: dict[str, int | None]
    measuring_seconds: float
    measurements: dict[str, Measured]
    unfinished: tuple[Job, ...]
    notes: tuple[str, ...]


def estimate(
    project: Project, measures: bool = True, seconds_limit: float = MAX_MEASUREMENT_SECONDS
) -> Costs:
    """Estimate the costs of a configuration.

    Parameters
    ----------
    project : Project
    measures : bool
        Whether to measure jobs on this machine.
    seconds_limit : float
        Time limit of the measurements in seconds.
    """
    plan, config = project.plan, project.config
    target, shared = run_stores(project.results, config)
    open_runs = {job.name: _open_runs(job, target, shared) for job in plan.jobs.values()}
    unfinished = [plan.jobs[name] for name, runs in open_runs.items() if runs]
    begin = time.perf_counter()
    measurements: dict[str, Measured] = {}
    notes: list[str] = []
    if measures:
        measurements, notes = _measure(unfinished, project.results, config, seconds_limit)
    seconds = time.perf_counter() - begin
    by_experiment = {
        name: [plan.jobs[job] for job in plan.jobs_of(*name.split("/"))]
        for name in plan.experiments
    }
    return Costs(
        tuple(_cost(name, jobs, open_runs, measurements) for name, jobs in by_experiment.items()),
        download_sizes(plan.datasets(*plan.jobs), project.data, config.mirror),
        seconds,
        measurements,
        tuple(unfinished),
        tuple(notes),
    )


def cluster_forecast(costs: Costs, project: Project, gpus: int, cpus: int) -> str:
    """Forecast a run on a cluster; save the measured times, which later jobs then request.

    Parameters
    ----------
    costs : Costs
    project : Project
    gpus, cpus : int
        Number of GPUs and CPU cores available to the user.
    """
    save_measurements(costs.measurements, project.results)
    measurements, cluster = load_measurements(project.results), project.config.cluster
    prediction = forecast(
        costs.unfinished, measurements, cluster, sorted({1, gpus, 2 * gpus}), cpus
    )
    finished = sum(cost.jobs for cost in costs.experiments) - len(costs.unfinished)
    return forecast_lines(prediction, finished, cpus)


def cost_table(costs: Costs) -> str:
    """Format the costs as a table, with notes below."""
    hours = [cost.hours for cost in costs.experiments if cost.hours == cost.hours]
    total = ExperimentCost(
        "total",
        sum(cost.jobs for cost in costs.experiments),
        sum(cost.runs for cost in costs.experiments),
        sum(cost.finished for cost in costs.experiments),
        sum(hours) if hours else float("nan"),
        False,
        sum(cost.disk for cost in costs.experiments),
    )
    rows: list[tuple[str, ...]] = [("experiment", "jobs", "runs", "finished", "CPU time", "disk")]
    for cost in (*costs.experiments, total):
        numbers = (cost.jobs, cost.runs, cost.finished)
        cpu_time = "≤ " * cost.at_most + format_duration(3600 * cost.hours)
        rows.append((cost.experiment, *map(str, numbers), cpu_time, format_bytes(cost.disk)))
    lines = [*align(rows, numbers_from=1), ""]
    lines += [f"not measured  {note}" for note in costs.notes]
    lines += [
        f"download  {name}: {'unknown size' if size is None else format_bytes(size)}"
        for name, size in costs.downloads.items()
    ] or ["download: nothing"]
    if not costs.unfinished:
        lines.append("All runs are finished; nothing has to be computed.")
    elif hours:
        lines.append(
            f"CPU time is for one core of this machine, measured in {costs.measuring_seconds:.0f} "
            "s; divide it by your number of cores. ≤: runs may end before their last round."
        )
    else:
        lines.append("CPU time was not measured.")
    return "\n".join(lines)


def _cost(
    name: str, jobs: Sequence[Job], open_runs: dict[str, int], measurements: dict[str, Measured]
) -> ExperimentCost:
    """Return the cost of an experiment with these jobs."""
    unfinished = [job for job in jobs if open_runs[job.name]]
    measured = [job for job in unfinished if measurement_key(job) in measurements]
    seconds = sum(
        _seconds(measurements[measurement_key(job)], job, open_runs[job.name]) for job in measured
    )
    if unfinished:  # jobs that were not measured are assumed to take as long as the others
        seconds *= len(unfinished) / len(measured) if measured else float("nan")
    return ExperimentCost(
        name,
        len(jobs),
        sum(len(job.runs) for job in jobs),
        sum(len(job.runs) - open_runs[job.name] for job in jobs),
        seconds / 3600,
        any(job.runs[0].settings.get("until") for job in unfinished),
        sum(open_runs[job.name] * _table_bytes(job) for job in unfinished),
    )


def _measure(
    jobs: Sequence[Job], results: Path, config: Config, seconds_limit: float
) -> tuple[dict[str, Measured], list[str]]:
    """Measure one job of each group of similar jobs; also return the reasons of failures."""
    groups = list(_in_turns(jobs))
    measurements: dict[str, Measured] = {}
    notes: dict[str, str] = {}
    reached: set[str] = set()
    end = time.monotonic() + seconds_limit
    with reporter() as progress:
        for index, group in enumerate(groups):
            progress("measuring", index, len(groups))
            experiment = group[0].experiment_id
            if experiment in notes:
                continue
            if time.monotonic() > end:
                break
            try:
                times = measure(group[0], results, config)
            except InputError as error:
                failed = measurement_key(group[0]) if experiment in reached else experiment
                notes[failed] = error.lines[0]
                continue
            reached.add(experiment)
            measurements |= {measurement_key(job): times for job in group}
    experiments = dict.fromkeys(group[0].experiment_id for group in groups)
    if late := [name for name in experiments if name not in reached and name not in notes]:
        notes[", ".join(late)] = f"no time left after {seconds_limit:.0f} s"
    return measurements, [f"{name}: {reason}" for name, reason in notes.items()]


def _in_turns(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yield groups of jobs that take equally long: one of each experiment, then a second of each.

    Samplers that need little information come first: the selection of others may take minutes.
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(timing_key(job), []).append(job)
    by_experiment: dict[str, list[list[Job]]] = {}
    for group in sorted(groups.values(), key=_number_of_needs):
        by_experiment.setdefault(group[0].experiment_id, []).append(group)
    yield from filter(None, chain.from_iterable(zip_longest(*by_experiment.values())))


def _number_of_needs(group: Sequence[Job]) -> int:
    """Count the kinds of information that the jobs' sampler needs."""
    return len(getattr(getattr(group[0].simulation, "sampler", None), "needs", ()))


def _open_runs(job: Job, target: Path, shared: list[Path]) -> int:
    """Count the unfinished runs of a job; unlike ``locate``, does not open shared runs."""
    candidates = unfinished_runs(job, shared)
    return sum(not find([target], run_hash, job.code) for run_hash in candidates)


def _seconds(times: Measured, job: Job, open_runs: int) -> float:
    """Return the time in seconds of a job with some unfinished runs."""
    return START_UP_SECONDS + times.fixed + open_runs / len(job.runs) * times.step * job.steps


def _table_bytes(job: Job) -> float:
    """Estimate the size of one run of a job in the store."""
    settings: dict[str, Any] = job.runs[0].settings
    if settings["kind"] == "partition":
        rows = 11.0 * TYPICAL_CLIENTS
    elif settings["kind"] == "delays":
        rows = TYPICAL_CLIENTS * (settings["rounds"] + 10.0) if settings["detail"] else 10.0
    elif settings["kind"] == "network":
        rows = settings["rounds"] * (9.0 + 4.0 / settings["evaluation"]["every"])
    elif settings["kind"] in ("allocation", "dsgd", "quadratic"):
        rows = 10 * TYPICAL_CLIENTS
    elif "rounds" in settings:
        rows = 3 * (settings["rounds"] / settings.get("every", 1) + 20)
    else:
        rows = 6.0 * settings.get("clients", settings.get("units", 10))
    return FILE_BYTES + BYTES_PER_ROW * float(rows)
