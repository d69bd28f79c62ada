"""The time, memory and GPU that a job requests from a cluster.

If ``fedsampling plan`` has estimated a job, it requests the estimated values times a margin;
otherwise, the default of its run kind.  Requests grow with each attempt, up to the limits in the
configuration.  Local runs ignore everything except the GPU.
"""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.files import read_bytes, write_json
from fedsampling.base.stopping import parse_left
from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job

# The resources that jobs request.
RESOURCES = ("runtime", "mem_mb", "gpu", "gpu_model", "gres", "slurm_partition")
MEASURED = "calibration.json"  # in the folder of results
MAX_ATTEMPTS = 3  # of a job in profiles/slurm
START_UP_MINUTES = 1.0  # of every job: two starts of Snakemake on a busy node, and imports


@dataclass(frozen=True)
class Need:
    """Expected needs of a job: minutes, memory, and whether it can use a GPU."""

    minutes: float
    mem_mb: float
    gpu: bool = False


# By run kind, for a block of seeds at paper scale.  Generous: a request that is too large only
# waits longer in the queue; SLURM kills a job that exceeds its request.
DEFAULTS: Mapping[str, Need] = {
    "federated": Need(30, 1500),
    "network": Need(240, 8000, gpu=True),
    "partition": Need(20, 4000),  # reads whole official datasets
    "weights": Need(20, 1500),
}
PAPER_KIND_DEFAULT = Need(60, 4000)  # for run kinds that a paper defines
# Other steps that are submitted as cluster jobs.
OTHER_STEPS: Mapping[str, Need] = {"card": Need(20, 4000), "draw": Need(30, 4000)}


@dataclass(frozen=True)
class Measured:
    """Estimate for the jobs of one case and sampler."""

    step: float  # seconds per step of all seeds
    device: str = "cpu"  # ``cpu`` or ``cuda``: where the rate was measured
    seed_mb: float = 0.0  # memory per seed in MB; 0 if unknown
    gpu_step: float = 0.0  # predicted seconds per step on a GPU, if `device` is none; 0 if unknown
    gpu_jobs: int = 1  # such jobs that a GPU can serve at once, as predicted


def need(job: Job, measured: Mapping[str, Measured], cluster: Cluster) -> Need:
    """Return the needs of a job: its estimated time, if on the same device, times the margin.

    Otherwise, defaults that include a margin.
    """
    default = DEFAULTS.get(job.runs[0].settings["kind"]) or replace(
        PAPER_KIND_DEFAULT, gpu=job.uses_gpu
    )
    cost = measured.get(measurement_key(job))
    if cost is None:
        return default
    fits = (cost.device != "cpu") == (default.gpu and cluster.gpu != "none")
    minutes = cluster.margin * cost.step * job.steps / 60 if fits else default.minutes
    return Need(minutes, default.mem_mb + cost.seed_mb * len(job.runs), default.gpu)


def jobs_per_gpu(job: Job, measured: Mapping[str, Measured], cluster: Cluster) -> int:
    """Return how many jobs such as this one share a GPU: as configured, or as predicted."""
    if cluster.jobs_per_gpu != "auto":
        return cluster.jobs_per_gpu
    cost = measured.get(measurement_key(job))
    return 1 if cost is None else cost.gpu_jobs


def measurement_key(job: Job) -> str:
    """Return the key of a job's measurement: experiment, case and sampler."""
    return f"{job.paper}/{job.experiment}/{job.case}/{job.sampler}"


def request(need: Need, cluster: Cluster, attempt: int = 1) -> dict[str, Any]:
    """Return Snakemake's resources for a need; `attempt`, from 1, multiplies time and memory."""
    minutes = math.ceil((START_UP_MINUTES + need.minutes) * attempt)
    mem_mb = math.ceil(need.mem_mb * attempt)
    gpu = cluster.gpu if need.gpu else "none"
    model = cluster.gpu_model
    gres = {"gres": f"gpu:{model}:1" if model else "gpu:1", "shard": "shard:1"}
    return {
        "runtime": min(minutes, cluster.max_runtime),
        "mem_mb": min(mem_mb, cluster.max_mem_mb),
        "gpu": 1 if gpu == "gpu" else None,
        "gpu_model": model if gpu == "gpu" else None,
        "gres": gres.get(gpu),
        "slurm_partition": cluster.cpu_partition if gpu == "none" else cluster.gpu_partition,
    }


def excesses(jobs: Iterable[Job], measured: Mapping[str, Measured], cluster: Cluster) -> list[str]:
    """Return a line for each request that SLURM would accept but never start."""
    limits = partition_limits()
    requested: dict[str, int] = {}
    needs = [need(job, measured, cluster) for job in jobs]
    for job_need in [*needs, *OTHER_STEPS.values()]:
        resources = request(job_need, cluster, MAX_ATTEMPTS)
        partition = resources["slurm_partition"] or ""
        requested[partition] = max(requested.get(partition, 0), resources["runtime"])
    lines = []
    for partition, minutes in requested.items():
        name, limit = limits.get(partition, (partition, math.inf))
        if minutes > limit:
            lines.append(
                f"cluster.max_runtime: jobs may request {minutes} minutes, but partition {name} "
                f"allows {limit:.0f} and would never start them; must be at most {limit:.0f}"
            )
        if limits and partition not in limits:
            known = ", ".join(sorted(filter(None, limits)))
            lines.append(f"cluster: unknown partition '{partition}'; known: {known}")
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


def load_measurements(results: Path) -> dict[str, Measured]:
    """Read the saved measurements; empty if the file is missing or corrupt."""
    try:
        content = json.loads(read_bytes(results / MEASURED))
        measured = {name: Measured(**cost) for name, cost in content.items()}
        numbers = [x for cost in measured.values() for x in (cost.step, cost.seed_mb)]
        return measured if all(math.isfinite(x) and x >= 0 for x in numbers) else {}
    except (FileNotFoundError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def save_measurements(measured: Mapping[str, Measured], results: Path) -> None:
    """Add measurements to the file that :func:`load_measurements` reads."""
    measurements = {**load_measurements(results), **measured}
    write_json(results / MEASURED, {name: asdict(cost) for name, cost in measurements.items()})


# Resources of the workflow's rules, and warnings about requests that the cluster cannot meet.


@dataclass(frozen=True)
class RuleResources:
    """Resource requests of all jobs."""

    jobs: Mapping[str, Job]  # by name
    batches: Mapping[str, Sequence[str]]  # names of the jobs that share a process
    cluster: Cluster
    results: Path  # folder that holds the estimates

    def of(self, step: str) -> dict[str, Callable[[Any, int], Any]]:
        """Return a rule's resources by name, each as a function of (wildcards, attempt).

        `step`: a job pattern, such as ``{paper}/{experiment}/…``, a batch, or one of OTHER_STEPS.
        """

        def resource(name: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: self._request(step, wildcards, attempt)[name]

        return {name: resource(name) for name in RESOURCES}

    def _request(self, step: str, wildcards: Any, attempt: int) -> dict[str, Any]:
        if step in OTHER_STEPS:
            return request(OTHER_STEPS[step], self.cluster, attempt)
        names = self.batches.get(step) or [step.format(**wildcards)]
        jobs = [self.jobs[name] for name in names]
        needs = [need(job, self._measured, self.cluster) for job in jobs]
        # Jobs that share a process are short: estimates add up, but a default is enough for all.
        estimated = [
            its_need.minutes
            for job, its_need in zip(jobs, needs, strict=True)
            if measurement_key(job) in self._measured
        ]
        shared = Need(
            max(sum(estimated), *(its_need.minutes for its_need in needs)),
            max(its_need.mem_mb for its_need in needs),
            any(its_need.gpu for its_need in needs),
        )
        return request(shared, self.cluster, attempt)

    def warn(self) -> None:
        """Print warnings about requests that this cluster would never start."""
        for line in excesses(self.jobs.values(), self._measured, self.cluster):
            print(f"fedsampling: {line}", file=sys.stderr, flush=True)

    @cached_property
    def _measured(self) -> Mapping[str, Measured]:
        return load_measurements(self.results)
