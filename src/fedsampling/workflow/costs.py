"""Costs of a configuration before it runs: jobs, CPU time, downloads and disk space."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.progress import reporter
from fedsampling.base.quantities import format_bytes, format_duration
from fedsampling.experiments.config import Config
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster import forecast, resources
from fedsampling.runs.cluster.calibration import alike, downloads, measure, table_bytes
from fedsampling.runs.cluster.resources import Measured, key
from fedsampling.runs.places import finished_runs, path_of, published_runs
from fedsampling.runs.store import find
from fedsampling.workflow.project import Project

START_UP_SECONDS = 1.5  # interpreter and imports of a job
MAX_CALIBRATION_SECONDS = 35.0


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
    lines : tuple of ExperimentCost
    download : dict
        Size in bytes of each official file that is not in the cache; None if unknown.
    measured : float
        Duration of the calibration in seconds.
    speeds : dict
        Measured times, by :func:`fedsampling.runs.cluster.resources.key`.
    due : tuple of Job
        Jobs with an unfinished run.
    notes : tuple of str
        Experiments and jobs that could not be measured, each with the reason.
    """

    lines: tuple[ExperimentCost, ...]
    download: dict[str, int | None]
    measured: float
    speeds: dict[str, Measured]
    due: tuple[Job, ...]
    notes: tuple[str, ...]


def estimate(
    project: Project, calibrate: bool = True, seconds_limit: float = MAX_CALIBRATION_SECONDS
) -> Costs:
    """Estimate the costs of a configuration.

    Parameters
    ----------
    project : Project
    calibrate : bool
        Whether to measure jobs on this machine.
    seconds_limit : float
        Time limit of the measurements in seconds.
    """
    plan, config, results = project.plan, project.config, project.results
    target, shared = finished_runs(results, config)
    download = downloads(plan.datasets(*plan.jobs), project.data, config.mirror)
    todo = {
        job.name: sum(not _finished(run.hash, target, shared, job.code) for run in job.runs)
        for job in plan.jobs.values()
    }
    due = [plan.jobs[name] for name, runs in todo.items() if runs]
    clock = time.perf_counter()
    speeds, notes = _speeds(due, results, config, seconds_limit) if calibrate else ({}, [])
    spent = time.perf_counter() - clock
    lines = []
    for name in plan.experiments:
        paper, _, experiment = name.partition("/")
        jobs = [plan.jobs[job] for job in plan.jobs_of(paper, experiment)]
        unfinished = [job for job in jobs if todo[job.name]]
        measured = [job for job in unfinished if key(job) in speeds]
        seconds = sum(_seconds(speeds[key(job)], job, todo[job.name]) for job in measured)
        if unfinished:  # jobs that were not measured are assumed to take as long as the others
            seconds *= len(unfinished) / len(measured) if measured else float("nan")
        lines.append(
            ExperimentCost(
                name,
                len(jobs),
                sum(len(job.runs) for job in jobs),
                sum(len(job.runs) - todo[job.name] for job in jobs),
                seconds / 3600,
                any(job.runs[0].settings.get("until") for job in unfinished),
                sum(todo[job.name] * table_bytes(job) for job in unfinished),
            )
        )
    return Costs(tuple(lines), download, spent, speeds, tuple(due), tuple(notes))


def _speeds(
    due: Sequence[Job], results: Path, config: Config, seconds_limit: float
) -> tuple[dict[str, Measured], list[str]]:
    """Measure jobs, starting with a job of each experiment; also return the reasons of failures.

    Samplers that need little information come first: the selection of others may take minutes.
    """
    groups: dict[str, list[Job]] = {}
    for job in due:
        groups.setdefault(alike(job), []).append(job)
    order: dict[str, int] = {}  # position of the latest group within its experiment
    ranked: list[tuple[int, int, str, list[Job]]] = []
    for group in sorted(groups.values(), key=_observed):
        name = f"{group[0].paper}/{group[0].experiment}"
        order[name] = order.get(name, -1) + 1
        ranked.append((order[name], len(ranked), name, group))
    speeds: dict[str, Measured] = {}
    notes: dict[str, str] = {}
    reached: set[str] = set()
    ends = time.monotonic() + seconds_limit
    with reporter() as progress:
        for done, (_, _, name, group) in enumerate(sorted(ranked)):
            progress("measuring", done, len(ranked))
            if name in notes:
                continue
            if time.monotonic() > ends:
                break
            try:
                times = measure(group[0], results, config)
            except InputError as error:
                notes[key(group[0]) if name in reached else name] = error.lines[0]
                continue
            reached.add(name)
            for job in group:
                speeds[key(job)] = times
    if late := [name for name in order if name not in reached and name not in notes]:
        notes[", ".join(late)] = f"no time left after {seconds_limit:.0f} s"
    return speeds, [f"{name}: {reason}" for name, reason in notes.items()]


def _observed(group: Sequence[Job]) -> int:
    """Count the kinds of information that the jobs' sampler needs."""
    return len(getattr(getattr(group[0].simulation, "sampler", None), "needs", ()))


def _finished(run: str, target: Path, shared: list[Path], code: str) -> bool:
    """Whether a run is finished; unlike ``locate``, does not open shared runs."""
    is_shared = any(
        run in published_runs(folder) or path_of(folder, run).is_file() for folder in shared
    )
    return is_shared or bool(find([target], run, code))


def _seconds(speed: Measured, job: Job, todo: int) -> float:
    """Return the time in seconds of a job with `todo` unfinished runs."""
    return START_UP_SECONDS + speed.fixed + todo / len(job.runs) * speed.step * job.steps


def on_a_cluster(costs: Costs, project: Project, gpus: int, cpus: int) -> str:
    """Forecast a run on a cluster; save the measured times, which later jobs then request.

    Parameters
    ----------
    costs : Costs
    project : Project
    gpus, cpus : int
        Number of GPUs and CPU cores available to the user.
    """
    resources.save(costs.speeds, project.results)
    measured, cluster = resources.load(project.results), project.config.cluster
    prediction = forecast.forecast(costs.due, measured, cluster, sorted({1, gpus, 2 * gpus}), cpus)
    finished = sum(line.jobs for line in costs.lines) - len(costs.due)
    return forecast.show(prediction, finished, cpus)


def show(costs: Costs) -> str:
    """Format the costs as a table."""
    measured_hours = [line.hours for line in costs.lines if line.hours == line.hours]
    total = ExperimentCost(
        "total",
        sum(line.jobs for line in costs.lines),
        sum(line.runs for line in costs.lines),
        sum(line.finished for line in costs.lines),
        sum(measured_hours) if measured_hours else float("nan"),
        False,
        sum(line.disk for line in costs.lines),
    )
    rows: list[tuple[str, ...]] = [("experiment", "jobs", "runs", "finished", "CPU time", "disk")]
    for line in (*costs.lines, total):
        numbers = (line.jobs, line.runs, line.finished)
        time_ = "≤ " * line.at_most + format_duration(3600 * line.hours)
        rows.append((line.experiment, *map(str, numbers), time_, format_bytes(line.disk)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    text = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    text.insert(1, "  ".join("-" * width for width in widths))
    text.append("")
    text += [f"not measured  {note}" for note in costs.notes]
    if costs.download:
        text += [
            f"download  {name}: {'unknown size' if size is None else format_bytes(size)}"
            for name, size in costs.download.items()
        ]
    else:
        text.append("download: nothing")
    if not costs.due:
        return "\n".join([*text, "All runs are finished; nothing has to be computed."])
    text.append(
        f"CPU time is for one core of this machine, measured in {costs.measured:.0f} s; "
        "divide it by your number of cores. ≤: runs may end before their last round."
        if measured_hours
        else "CPU time was not measured."
    )
    return "\n".join(text)
