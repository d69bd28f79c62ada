"""Estimated time and memory of jobs, saved in the results folder."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedsampling.base.files import read_bytes, write_json
from fedsampling.experiments.specs import Job

MEASURED = "calibration.json"  # in the folder of results


@dataclass(frozen=True)
class Measured:
    """Estimate for the jobs of one case and sampler."""

    step: float  # seconds per step of all seeds
    device: str = "cpu"  # ``cpu`` or ``cuda``: where the rate was measured
    seed_mb: float = 0.0  # memory per seed in MB; 0 if unknown
    gpu_step: float = 0.0  # predicted seconds per step on a GPU, if `device` is none; 0 if unknown
    gpu_jobs: int = 1  # such jobs that a GPU can serve at once, as predicted


def measurement_key(job: Job) -> str:
    """Return the key of a job's measurement: experiment, case and sampler, with their settings.

    Each scale has other settings, and so has a changed ``paper.yaml``.
    """
    return f"{job.paper}/{job.experiment}/{job.case}/{job.sampler}/{job.settings_digest}"


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
