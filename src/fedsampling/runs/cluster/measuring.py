"""Measurement of a job's time on this machine, before it runs.

A short version of the job runs with more and more steps until its time can be measured.  The
difference between two lengths gives the time per step; the remainder is start-up.  A round of a
network may take a minute, so :mod:`.training_cost` counts its steps instead.
"""

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from fedsampling.base.errors import InputError
from fedsampling.data.sources.mirror import place_of
from fedsampling.data.sources.sources import editions
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.resources import Measured
from fedsampling.runs.execute import device

if TYPE_CHECKING:
    from fedsampling.runs.cluster.training_cost import TrainingCost

MAX_MEASURE_SECONDS = 4.0  # CPU time for measuring one job
MIN_TIMED_SECONDS = 0.05  # difference between two lengths of a piece
MAX_PIECE_STEPS = 2 * 4**6  # of the shorter piece


def measure(job: Job, results: Path, config: Config) -> Measured:
    """Measure a job on this machine; stand-ins replace official data that are not available.

    Returns
    -------
    Measured
        Start-up time, and time per step of all its seeds.

    Raises
    ------
    InputError
        If a stand-in is too small for the settings, such as the number of clients; or if the
        measurement takes longer than ``MAX_MEASURE_SECONDS``.
    """
    with capped(MAX_MEASURE_SECONDS):
        return _measured(job, results, config)


@contextmanager
def capped(seconds: float) -> Iterator[None]:
    """Raise InputError if the body takes more CPU time than `seconds`; main thread only."""

    def end(number: int, frame: FrameType | None) -> None:
        while frame is not None:  # interrupting an import leaves the module broken
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                signal.setitimer(signal.ITIMER_PROF, 0.2)
                return
            frame = frame.f_back
        raise InputError(f"a step takes more than {seconds:.0f} s; not timed")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def timing_key(job: Job) -> str:
    """Return a key that jobs share if their steps take equally long.

    Such jobs differ only in real numbers, the number of rounds and the problem's seed.
    """

    def without_numbers(value: Any) -> Any:
        if isinstance(value, dict):
            keys = value.keys() - {"rounds", "problem_seed"}
            return {key: without_numbers(value[key]) for key in keys}
        if isinstance(value, list):
            return [without_numbers(element) for element in value]
        return None if isinstance(value, float) else value

    parts = [without_numbers(job.runs[0].settings), job.runs[0].data, len(job.runs)]
    return json.dumps(parts, sort_keys=True)


def measured_cost(job: Job, network: Network, results: Path, config: Config) -> "TrainingCost":
    """Measure the cost of a run of a job that trains a network."""
    from fedsampling.runs.cluster.training_cost import training_cost  # torch is slow to import

    where = Where(results / "data", config.mirror, device(config))
    data = available_data(job, where.cache, where.mirror)
    return training_cost(
        network, data, where, len(job.runs), limit=60.0 * config.cluster.max_runtime
    )


def available_data(job: Job, cache: Path, mirror: str | None) -> str:
    """Return the source of a job's data; ``embedded``, the stand-ins, if its files are missing."""
    for name in job.files:
        of_each = editions(name).values()
        if not any(all(place_of(file, cache, mirror) for file in files) for files in of_each):
            return "embedded"
    return job.runs[0].data


def _measured(job: Job, results: Path, config: Config) -> Measured:
    if isinstance(job.simulation, Network):
        cost = measured_cost(job, job.simulation, results, config)
        per_step = len(job.runs) * cost.seconds / job.steps
        megabytes = cost.seed_bytes / 2**20, cost.sampler_bytes / 2**20
        return Measured(0.0, per_step, device(config), *megabytes)
    length = 2  # some statistics need at least two steps
    seconds = _seconds(job, length, results, config.mirror)
    is_slow = seconds > 10 * MIN_TIMED_SECONDS
    if not is_slow:  # repeat it, so that imports and first reads do not count
        seconds = _seconds(job, length, results, config.mirror)
    while True:
        added = length if is_slow else 3 * length
        spent = _seconds(job, length + added, results, config.mirror) - seconds
        if is_slow or spent > MIN_TIMED_SECONDS or length >= MAX_PIECE_STEPS:
            per_step = max(spent, 1e-9) / added
            return Measured(max(seconds - per_step * length, 0.0), per_step)
        length, seconds = length + added, seconds + spent


def _seconds(job: Job, length: int, results: Path, mirror: str | None) -> float:
    """Run `length` steps of a job and return their CPU time, which excludes other processes."""
    seeds, settings = [run.seed for run in job.runs], dict(job.runs[0].settings)
    if job.counter:
        settings[job.counter] = length
    else:
        seeds = length * seeds[:1]
    if "every" in settings:
        settings["every"] = min(settings["every"], length)
    simulation = job.kind.model_validate(settings)
    where = Where(results / "data", mirror)
    begin = time.process_time()
    simulation.simulate(available_data(job, where.cache, mirror), seeds, where)
    return time.process_time() - begin
