"""Measurement of a job's time on this machine, and estimate of its output, before it runs.

A short version of each kind of job runs with more and more steps until its time can be measured.
The difference between two lengths gives the time per step; the remainder is start-up.  A round of a
network may take a minute, so :mod:`fedsampling.runs.cluster.effort` counts its steps instead.
"""

import json
import signal
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from fedsampling.base.errors import InputError
from fedsampling.data.sources.fetch import ordered_editions
from fedsampling.data.sources.mirror import place_of
from fedsampling.data.sources.sources import editions
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.resources import Measured
from fedsampling.runs.execute import device

if TYPE_CHECKING:
    from fedsampling.runs.cluster.effort import Effort

MAX_MEASURE_SECONDS = 4.0  # CPU time for measuring one job
MIN_TIMED_SECONDS = 0.05  # difference between two lengths of a piece
MAX_PIECE_STEPS = 2 * 4**6  # of the shorter piece
BYTES_PER_ROW = 9.0  # of a run's table in the store: round, metric and value, compressed
TYPICAL_CLIENTS = 200.0  # in runs whose output has a row per client
FILE_BYTES = 6000.0  # of a run's file without its rows: metadata and Parquet overhead


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


def alike(job: Job) -> str:
    """Return a key that jobs share if their steps take equally long.

    Such jobs differ only in real numbers, the number of rounds and the problem's seed.
    """

    def sizes(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sizes(value[key]) for key in value.keys() - {"rounds", "problem_seed"}}
        if isinstance(value, list):
            return [sizes(each) for each in value]
        return None if isinstance(value, float) else value

    parts = [sizes(job.runs[0].settings), job.runs[0].data, len(job.runs)]
    return json.dumps(parts, sort_keys=True)


def _measured(job: Job, results: Path, config: Config) -> Measured:
    if isinstance(job.simulation, Network):
        effort = counted(job, job.simulation, results, config)
        per_step = len(job.runs) * effort.seconds / job.steps
        megabytes = effort.seed_bytes / 2**20, effort.sampler_bytes / 2**20
        return Measured(0.0, per_step, device(config), *megabytes)
    length = 2  # some statistics need at least two steps
    short = _piece(job, length, results, config.mirror)
    slow = short > 10 * MIN_TIMED_SECONDS
    if not slow:  # repeat it, so that imports and first reads do not count
        short = _piece(job, length, results, config.mirror)
    while True:
        further = length if slow else 3 * length
        spent = _piece(job, length + further, results, config.mirror) - short
        if slow or spent > MIN_TIMED_SECONDS or length >= MAX_PIECE_STEPS:
            per_step = max(spent, 1e-9) / further
            return Measured(max(short - per_step * length, 0.0), per_step)
        length, short = length + further, short + spent


def rehearse(job: Job, results: Path, config: Config) -> None:
    """Load the clients of a network and build it if its data are available, to check the settings.

    Raises
    ------
    InputError
        If the settings do not fit the data.
    """
    where = Where(results / "data", config.mirror)
    if not isinstance(job.simulation, Network):
        return
    if _data(job, where.cache, where.mirror) == job.runs[0].data:
        from fedsampling.runs.cluster.effort import effort, most_samples

        limit = 60.0 * config.cluster.max_runtime
        effort(job.simulation, job.runs[0].data, where, len(job.runs), False, limit)
        batch = job.simulation.work.batch
        if batch > (most := most_samples(job.simulation, job.runs[0].data, where)):
            raise InputError(
                f"work.batch: {batch} exceeds the samples of every client; must be at most {most}"
            )


def downloads(
    datasets: Iterable[str], cache: Path, mirror: str | None, unread: Collection[str] = ()
) -> dict[str, int | None]:
    """Return the size in bytes of each missing official file not in `unread`; None if unknown."""
    return {
        source.name: source.size
        for dataset in sorted(set(datasets))
        for source in ordered_editions(dataset, cache, mirror)[0]
        if source.name not in unread and not source.path_in(cache).is_file()
    }


def table_bytes(job: Job) -> float:
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


def counted(job: Job, network: Network, results: Path, config: Config) -> "Effort":
    """Estimate a run of a job that trains a network, from its numbers of steps and evaluations."""
    from fedsampling.runs.cluster.effort import effort  # torch takes seconds to import

    where = Where(results / "data", config.mirror, device(config))
    limit = 60.0 * config.cluster.max_runtime
    data = _data(job, where.cache, where.mirror)
    return effort(network, data, where, len(job.runs), limit=limit)


def _piece(job: Job, length: int, results: Path, mirror: str | None) -> float:
    seeds, settings = [run.seed for run in job.runs], dict(job.runs[0].settings)
    if job.counter:
        settings[job.counter] = length
    else:
        seeds = length * seeds[:1]
    if "every" in settings:
        settings["every"] = min(settings["every"], length)
    simulation = job.kind.model_validate(settings)
    clock = time.process_time()  # excludes other processes
    where = Where(results / "data", mirror)
    simulation.simulate(_data(job, where.cache, mirror), seeds, where)
    return time.process_time() - clock


def _data(job: Job, cache: Path, mirror: str | None) -> str:
    """Return the source of the data to measure a job: stand-ins if files are missing."""
    for name in job.files:
        of_each = editions(name).values()
        if not any(all(place_of(each, cache, mirror) for each in files) for files in of_each):
            return "embedded"
    return job.runs[0].data
