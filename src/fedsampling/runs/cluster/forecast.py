"""Forecast of a plan on a cluster, before anything is submitted.

The forecast lists the number of jobs, the device-hours, the longest chain of dependent jobs, and
the total time on given numbers of devices and CPU cores.  It starts the longest jobs first, each on
the first free device, which takes at most a third longer than the best order.  Waiting time in the
site's queue is unknown and not counted.
"""

import heapq
import math
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fedsampling.base.quantities import format_duration
from fedsampling.base.stopping import parse_left
from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.resources import OTHER_STEPS, Measured, measurement_key, need, request

# Measured with profiles/slurm (docs/cluster.md).
SUBMISSION_MINUTES = 0.25  # overhead of a job: two starts of Snakemake
NOTICE_MINUTES = 1.0  # until Snakemake, which polls, sees that a long job has ended
REQUEUE_MINUTES = 2.5  # until a requeued job runs again
DRAWING_MINUTES = 1.0  # local steps after the last summary
MAX_ATTEMPTS = 3  # of a job in profiles/slurm
MAX_DEVICE_SHARE = 0.9  # of a device's memory; the rest is fragmentation and library overhead


@dataclass(frozen=True)
class Task:
    """A job to be submitted.

    Parameters
    ----------
    minutes : float
        Time of its work, without a margin.
    pieces : int
        Number of parts into which the time limit divides the job.
    device : bool
        Whether it uses a GPU.
    measured : bool
        Whether its time was measured; otherwise it is a default.
    """

    minutes: float
    pieces: int
    device: bool
    measured: bool

    @property
    def occupied(self) -> float:
        """Minutes for which the job occupies its node, with overhead."""
        return self.minutes + self.pieces * SUBMISSION_MINUTES + (self.pieces - 1) * REQUEUE_MINUTES


@dataclass(frozen=True)
class Forecast:
    """Forecast of a plan on a cluster.

    Parameters
    ----------
    tasks : tuple of Task
    chain : float
        Minutes of the longest chain of dependent jobs.
    walls : mapping
        Total time in minutes, by number of devices.
    notes : tuple of str
        Settings to change before submission.
    """

    tasks: tuple[Task, ...]
    chain: float
    walls: Mapping[int, float]
    notes: tuple[str, ...]

    def hours(self, device: bool) -> float:
        """Return the total hours of the jobs with a device, or of the jobs without."""
        return sum(task.minutes for task in self.tasks if task.device == device) / 60


def forecast(
    jobs: Iterable[Job],
    measured: Mapping[str, Measured],
    cluster: Cluster,
    devices: Iterable[int],
    processors: int,
) -> Forecast:
    """Forecast the unfinished jobs.

    Parameters
    ----------
    jobs : iterable of Job
    measured : mapping
        See :func:`fedsampling.runs.cluster.resources.need`.
    cluster : Cluster
    devices : iterable of int
        Numbers of devices; the forecast has a total time for each.
    processors : int
        CPU cores for the jobs without a device.
    """
    due = list(jobs)
    notes = [*obstacles(due, measured, cluster), *fillings(due, measured, cluster)]
    tasks = tuple(task(job, measured, cluster) for job in due)
    # After the last run come its summary and the drawing.
    after = SUBMISSION_MINUTES + NOTICE_MINUTES + DRAWING_MINUTES if tasks else 0.0
    longest = max((task.occupied + NOTICE_MINUTES for task in tasks), default=0.0)
    on_cpu = spread([task.occupied for task in tasks if not task.device], processors)
    walls = {
        n: max(on_cpu, spread([task.occupied for task in tasks if task.device], n), longest) + after
        for n in devices
    }
    return Forecast(tasks, longest + after, walls, tuple(notes))


def task(job: Job, measured: Mapping[str, Measured], cluster: Cluster) -> Task:
    """Estimate the time of a job and the number of pieces that it runs in."""
    needs = need(job, measured, cluster)
    usable = max(cluster.max_runtime - cluster.grace / 60, 0.75 * cluster.max_runtime)
    device = bool(needs.device_mb) and cluster.gpu != "none"
    is_measured = needs.minutes != need(job, {}, cluster).minutes
    return Task(needs.minutes, math.ceil(needs.minutes / usable), device, is_measured)


def spread(minutes: Iterable[float], places: int) -> float:
    """Return when the last job ends; the longest jobs start first, each at the first free place."""
    free = [0.0] * max(places, 1)
    for length in sorted(minutes, reverse=True):
        heapq.heapreplace(free, free[0] + length)
    return max(free)


def obstacles(jobs: Iterable[Job], measured: Mapping[str, Measured], cluster: Cluster) -> list[str]:
    """Return a line for each request that exceeds the limits of this site's partitions.

    SLURM would accept such jobs but never start them.
    """
    limits = partition_limits()
    requested: dict[str, int] = {}
    needs = [need(job, measured, cluster, cluster.margin) for job in jobs]
    for job_need in [*needs, *OTHER_STEPS.values()]:
        request_ = request(job_need, cluster, MAX_ATTEMPTS)
        partition = request_["slurm_partition"] or ""
        requested[partition] = max(requested.get(partition, 0), request_["runtime"])
    lines = []
    for partition, minutes in requested.items():
        name, limit = limits.get(partition, (partition, math.inf))
        if minutes > limit:
            lines.append(
                f"cluster.max_runtime: jobs may request {minutes} minutes, but partition {name} "
                f"allows {limit:.0f} and would never start them; must be at most {limit:.0f}"
            )
        if limits and partition not in limits:
            lines.append(f"cluster: unknown partition '{partition}'; known: {_names(limits)}")
    return lines


def fillings(jobs: Iterable[Job], measured: Mapping[str, Measured], cluster: Cluster) -> list[str]:
    """Return a line for each experiment whose blocks of seeds underuse or exceed a device's memory.

    Empty if jobs use no device.  Blocks with all seeds of their experiment are never too small.
    """
    if cluster.gpu == "none":
        return []
    blocks: dict[str, int] = {}
    seeds: dict[str, dict[str, int]] = {}
    takes: dict[str, float] = {}
    for job in jobs:
        name = f"{job.paper}/{job.experiment}"
        seed_counts = seeds.setdefault(name, {})
        seed_counts[measurement_key(job)] = seed_counts.get(measurement_key(job), 0) + len(job.runs)
        blocks[name] = max(blocks.get(name, 0), len(job.runs))
        if measurement_key(job) in measured:
            takes[name] = max(takes.get(name, 0.0), measured[measurement_key(job)].seed_mb)
    lines = []
    for name, per_seed in takes.items():
        if not per_seed:
            continue
        block, fitting = blocks[name], math.floor(MAX_DEVICE_SHARE * cluster.device_mb / per_seed)
        largest = min(fitting, max(seeds[name].values()))
        if block > fitting or 2 * block <= largest:
            lines.append(
                f"{name}: seed_block: {block} seeds take {block * per_seed:.0f} of "
                f"{cluster.device_mb:.0f} MB of a GPU; use {max(largest, 1)}"
            )
    return lines


def partition_limits() -> dict[str, tuple[str, float]]:
    """Return {partition: (name, minutes)}, with '' for the default; empty without SLURM."""
    if shutil.which("sinfo") is None:
        return {}
    command = ["sinfo", "--noheader", "--format=%P|%l"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return {}
    limits: dict[str, tuple[str, float]] = {}
    for line in listing.stdout.split():
        name, _, limit = line.partition("|")
        seconds = parse_left(limit)
        entry = (name.rstrip("*"), math.inf if seconds is None else seconds / 60)
        limits[entry[0]] = entry
        if name.endswith("*"):
            limits[""] = entry
    return limits


def forecast_lines(prediction: Forecast, finished: int, processors: int) -> str:
    """Format a forecast as lines of text."""
    submitted = len(prediction.tasks)
    assumed = sum(not task.measured for task in prediction.tasks)
    pieces = sum(task.pieces - 1 for task in prediction.tasks)
    lines = [
        f"jobs to submit: {submitted} ({finished} are finished already)",
        f"GPU hours: {prediction.hours(True):.1f}; CPU hours: {prediction.hours(False):.1f}",
        f"longest chain: {format_duration(60 * prediction.chain)}",
    ]
    if any(task.device for task in prediction.tasks):
        lines += [
            f"wall time on {n} GPUs and {processors} CPU cores: {format_duration(60 * wall)}"
            for n, wall in prediction.walls.items()
        ]
    else:
        shortest = format_duration(60 * min(prediction.walls.values()))
        lines.append(f"wall time on {processors} CPU cores: {shortest}")
    if pieces:
        lines.append(f"jobs that stop at the time limit and resume: {pieces} times in total")
    if assumed:
        lines.append(f"jobs with assumed, not measured, times: {assumed} (docs/cluster.md)")
    return "\n".join([*lines, *prediction.notes])


def _names(limits: Mapping[str, tuple[str, float]]) -> str:
    return ", ".join(sorted(name for name in limits if name))
