"""The time, memory and GPU that a job requests from a cluster.

If ``fedsampling plan`` has estimated a job (:mod:`.measurements`), it requests the estimated values
times a margin; otherwise, the default of its run kind.  Requests grow with each attempt, up to the
limits in the configuration.  Local runs ignore everything except the GPU.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedsampling.base.stopping import parse_left, slurm_output
from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job
from fedsampling.runs.measurements import Measured, measurement_key

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
OTHER_STEPS: Mapping[str, Need] = {
    "card": Need(20, 4000),
    "draw": Need(30, 4000),
    "compare": Need(119, 8000),  # of one sampler; docs/cluster.md
}


def need(job: Job, measured: Mapping[str, Measured], cluster: Cluster) -> Need:
    """Return the needs of a job: its estimated time, if on the same device, times the margin.

    Otherwise, defaults that include a margin.
    """
    default = DEFAULTS.get(job.runs[0].settings["kind"]) or replace(
        PAPER_KIND_DEFAULT, gpu=job.uses_gpu
    )
    cost = measured.get(measurement_key(job)) if measured else None  # a key takes time
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


def excesses(needs: Iterable[Need], cluster: Cluster) -> list[str]:
    """Return a line for each request that SLURM would accept but never start."""
    limits = partition_limits()
    requested: dict[str, int] = {}
    # A comparison is submitted only if it is a target.
    for of_step in [*needs, OTHER_STEPS["card"], OTHER_STEPS["draw"]]:
        resources = request(of_step, cluster, MAX_ATTEMPTS)
        partition = resources["slurm_partition"] or ""
        requested[partition] = max(requested.get(partition, 0), resources["runtime"])
    lines = []
    for partitions, minutes in requested.items():
        listed = partitions.split(",")
        known_limits = [limits[name] for name in listed if name in limits]
        # SLURM starts the job in any partition of a list.
        name, limit = max(known_limits, key=lambda entry: entry[1], default=("", math.inf))
        if minutes > limit:
            lines.append(
                f"cluster.max_runtime: jobs may request {minutes} minutes, but partition {name} "
                f"allows {limit:.0f} and would never start them; must be at most {limit:.0f}"
            )
        known = ", ".join(sorted(filter(None, limits)))
        lines += [
            f"cluster: unknown partition '{name}'; known: {known}"
            for name in listed
            if limits and name not in limits
        ]
    return lines


def partition_limits() -> dict[str, tuple[str, float]]:
    """Return {partition: (name, minutes)}, with '' for the default; empty without SLURM."""
    listing = slurm_output("sinfo", "--noheader", "--format=%P|%l") or ""
    limits: dict[str, tuple[str, float]] = {}
    for line in listing.split():
        name, _, limit = line.partition("|")
        seconds = parse_left(limit)
        entry = (name.rstrip("*"), math.inf if seconds is None else seconds / 60)
        limits[entry[0]] = entry
        if name.endswith("*"):
            limits[""] = entry
    return limits
