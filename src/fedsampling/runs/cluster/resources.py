"""The time, memory and device that a job requests from a cluster.

If ``fedsampling plan --slurm`` has measured a job, it requests the measured values times a margin;
otherwise, the default of its run kind.  Requests grow with each attempt, up to the limits in the
configuration.  Local runs ignore everything except the device.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedsampling.base.files import read_bytes, write_json
from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job

# The resources that jobs request.
RESOURCES = ("runtime", "mem_mb", "gpu", "gpu_model", "gres", "slurm_partition")
MEASURED = "calibration.json"  # in the folder of results
START_UP_MINUTES = 1.0  # of every job: two starts of Snakemake on a busy node, and imports


@dataclass(frozen=True)
class Need:
    """Expected resource needs of a job.

    Parameters
    ----------
    minutes, mem_mb : float
    device_mb : float
        Memory on the device in MB; 0 for a job without a device.
    """

    minutes: float
    mem_mb: float
    device_mb: float = 0.0


# By run kind, for a block of seeds at paper scale.  Generous: a request that is too large only
# waits longer in the queue; SLURM kills a job that exceeds its request.
DEFAULTS: Mapping[str, Need] = {
    "federated": Need(30, 1500),
    "network": Need(240, 8000, 16000),
    "partition": Need(20, 4000),  # reads whole official datasets
    "weights": Need(20, 1500),
}
PAPER_KIND_DEFAULT = Need(60, 4000)  # for run kinds that a paper defines
PAPER_KIND_DEVICE_MB = 4000.0  # for such kinds that can use a GPU
# Other steps that are submitted as cluster jobs.
OTHER_STEPS: Mapping[str, Need] = {
    "card": Need(20, 4000),
    "draw": Need(30, 4000),
}


@dataclass(frozen=True)
class Measured:
    """Measured times and memory of the jobs of one case and sampler.

    Parameters
    ----------
    fixed : float
        Start-up time in seconds.
    step : float
        Seconds per step of all seeds.
    device : str
        ``cpu``, or the kind of device that it was measured on.
    seed_mb : float
        Memory per seed in MB on the training device; 0 if unknown.
    sampler_mb : float
        Memory of the sampler per seed in MB, on the CPU; 0 if unknown.
    """

    fixed: float
    step: float
    device: str = "cpu"
    seed_mb: float = 0.0
    sampler_mb: float = 0.0


def need(job: Job, measured: Mapping[str, Measured], cluster: Cluster, margin: float = 1.0) -> Need:
    """Estimate the needs of a job.

    Parameters
    ----------
    job : Job
    measured : mapping
        By :func:`measurement_key`; times are ignored if the job will run on another kind of device.
    cluster : Cluster
        Its ``gpu`` decides whether jobs that can use a GPU request it.
    margin : float
        Factor for measured times; the defaults already include a margin.
    """
    default = DEFAULTS.get(job.runs[0].settings["kind"]) or replace(
        PAPER_KIND_DEFAULT, device_mb=PAPER_KIND_DEVICE_MB if job.uses_gpu else 0.0
    )
    times = measured.get(measurement_key(job))
    if times is None:
        return default
    on_device = bool(default.device_mb) and cluster.gpu != "none"
    fits = (times.device != "cpu") == on_device
    minutes = margin * (times.fixed + times.step * job.steps) / 60 if fits else default.minutes
    block_mb = times.seed_mb * len(job.runs)
    mem_mb = default.mem_mb + times.sampler_mb * len(job.runs) + (0 if on_device else block_mb)
    return Need(minutes, mem_mb, (block_mb or default.device_mb) if default.device_mb else 0.0)


def largest(needs: Iterable[Need]) -> Need:
    """Return the needs of a process that runs several small jobs one after the other.

    Parameters
    ----------
    needs : iterable of Need
        At least one.

    Returns
    -------
    Need
        The maximum of each field.  Minutes are not summed: each job takes seconds but requests
        minutes.
    """
    jobs = list(needs)
    return Need(
        max(job.minutes for job in jobs),
        max(job.mem_mb for job in jobs),
        max(job.device_mb for job in jobs),
    )


def measurement_key(job: Job) -> str:
    """Return the key of a job's measurement: experiment, case and sampler."""
    return f"{job.paper}/{job.experiment}/{job.case}/{job.sampler}"


def request(need: Need, cluster: Cluster, attempt: int = 1) -> dict[str, Any]:
    """Return Snakemake's resources for a need; resources that are None are not requested.

    Parameters
    ----------
    need : Need
    cluster : Cluster
    attempt : int
        From 1; multiplies time and memory.
    """
    minutes = math.ceil((START_UP_MINUTES + need.minutes) * attempt)
    mem_mb = math.ceil(need.mem_mb * attempt)
    gpu = cluster.gpu if need.device_mb else "none"
    model = cluster.gpu_model
    return {
        "runtime": min(minutes, cluster.max_runtime),
        "mem_mb": min(mem_mb, cluster.max_mem_mb),
        "gpu": 1 if gpu == "gpu" else None,
        "gpu_model": model if gpu == "gpu" else None,
        "gres": (f"gpu:{model}:1" if model else "gpu:1") if gpu == "gres" else None,
        "slurm_partition": cluster.cpu_partition if gpu == "none" else cluster.gpu_partition,
    }


def load_measurements(results: Path) -> dict[str, Measured]:
    """Read the saved measurements; empty if the file is missing or corrupt."""
    try:
        content = json.loads(read_bytes(results / MEASURED))
        measured = {name: Measured(**times) for name, times in content.items()}
        numbers = [
            x for times in measured.values() for x in (times.fixed, times.step, times.seed_mb)
        ]
        return measured if all(math.isfinite(x) and x >= 0 for x in numbers) else {}
    except (FileNotFoundError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def save_measurements(measured: Mapping[str, Measured], results: Path) -> None:
    """Add measurements to the file that :func:`load_measurements` reads."""
    measurements = {**load_measurements(results), **measured}
    write_json(results / MEASURED, {name: asdict(times) for name, times in measurements.items()})
