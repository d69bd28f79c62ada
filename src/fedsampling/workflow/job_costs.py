"""Time and memory of a job, by its settings.

A job's time is the operations of its rounds, divided by the rate of a local step, which is measured
on this machine in a fraction of a second.  Jobs of other run kinds take minutes at most; a kind
declares the seconds of a step.
"""

import time
from functools import lru_cache
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedsampling.base import memory
from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.data.sources.mirrors import is_on_hand
from fedsampling.experiments.config import Config
from fedsampling.experiments.networks.settings import check_pairs, pair_bytes
from fedsampling.experiments.simulations.network import NetworkSimulation
from fedsampling.experiments.simulations.simulation import RunContext
from fedsampling.experiments.specs import Job
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.runs.environment import device
from fedsampling.runs.measurements import Measured

if TYPE_CHECKING:
    from fedsampling.learning.training.launches import Launches

MIN_TIMED_SECONDS = 0.03
MAX_TIMED_OPERATIONS = 1e9  # of a call that is timed on a CPU, if it is of several slots
TIMED_SLOTS = (10, 100, 1000)  # numbers of slots that are timed on a GPU
ROUND_SECONDS = 0.002  # of a run, in addition to its products: draws, costs, the server's step


class SlotBatch(NamedTuple):
    """A batch of one slot's network."""

    model: Model
    sample: tuple[int, ...]
    classes: int | None
    size: int


class Work(NamedTuple):
    """The work of one run of a network."""

    operations: float  # of a round's products and convolutions, with the share of evaluations
    slots: float  # clients that train in a round
    largest: float  # training samples of the client with the most
    bytes: float  # of models, batches, the steps of all slots at once, and the sampler
    batch: SlotBatch


def measure(job: Job, results: Path, config: Config) -> Measured:
    """Estimate the time of a job's step and its memory; stand-ins replace missing official data."""
    settings, seeds = job.simulation, len(job.runs)
    if not isinstance(settings, NetworkSimulation):
        return Measured(settings.step_seconds * (seeds if job.counter else 1))
    context = RunContext(results / "data", config.mirror, device(config))
    data = available_data(job, context.cache, context.mirror)
    work = work_of(settings, data, context, max_bytes_of_job(config))
    rate = operations_per_second(work.batch, round(seeds * work.slots), context.device)
    seconds = seeds * (work.operations / rate + ROUND_SECONDS)
    # Most runs that end by their clock end soon after their minimum number of rounds.
    rounds = (settings.until and settings.until.rounds) or settings.rounds
    share, mb = rounds / settings.rounds, work.bytes / 2**20
    gpu_seconds, gpu_jobs = predicted_on_a_gpu(work, seeds)
    if context.device != "cpu":
        gpu_seconds = 0.0  # it is measured
    return Measured(share * seconds, context.device, mb, share * gpu_seconds, gpu_jobs)


def max_bytes_of_job(config: Config) -> float:
    """Return the memory of this machine, or of the largest job on a cluster."""
    return max(memory.available(), config.cluster.max_mem_mb * 2**20)


def work_of(
    settings: NetworkSimulation, data: str, context: RunContext, max_bytes: float = inf
) -> Work:
    """Count the work of a run.

    Raises InputError if settings and data do not fit, or if the sampler's matrices of all pairs of
    clients exceed `max_bytes`.
    """
    sizes, tests, sample, classes = _clients(settings, data, context)
    held = settings.holdout or 0.0
    tests, samples = (held * sizes.sum() if held else tests), (1 - held) * sizes
    n, work, sampler, every = len(sizes), settings.work, settings.sampler, settings.evaluation.every
    try:
        sampler.check_population(n)
    except ValueError as error:
        raise InputError(str(error)) from None
    batch = SlotBatch(settings.model, sample, classes, work.batch)
    d, step_bytes, forward, step = batch_cost(batch)
    slots = min(sampler.expected_clients(n, settings.rounds), float(n))
    steps = work.steps or (work.epochs or 1) * np.ceil(samples / work.batch).mean()
    dense = min(settings.evaluation.each_until, settings.rounds) / settings.rounds
    evaluations = 1 / every + dense * (1 - 1 / every)  # in each round
    evaluated = (tests + samples.sum() * settings.evaluation.training_loss) * evaluations
    if "losses" in sampler.needs:
        evaluated += samples.mean() * getattr(sampler, "d", n)
    operations = slots * steps * step + evaluated * forward / work.batch
    trained = 4 * d * (2 + 3 * slots) + slots * (step_bytes + 4 * work.batch * prod(sample))
    check_pairs(sampler, n, max_bytes)
    stored = pair_bytes(sampler, n)
    if sampler.needs & {"gradients", "updates"}:  # of all clients, and a copy in double precision
        stored += 12.0 * n * d
    return Work(operations, slots, samples.max(), trained + stored, batch)


@lru_cache
def batch_cost(batch: SlotBatch) -> tuple[int, int, int, int]:
    """Return parameters, bytes of a step, and operations of a batch's outputs and of a step."""
    from fedsampling.learning.models.operations import operations, step_bytes

    network = batch.model.build(batch.sample, batch.classes)
    with memory.in_a_line():
        count = operations(network, batch.sample, batch.size)
        bytes_ = step_bytes(network, batch.sample, batch.size)
    return network.dimension, bytes_, count.forward, count.step


@lru_cache
def operations_per_second(batch: SlotBatch, slots: int, device: str) -> float:
    """Measure the operations per second of local steps, with up to `slots` stacked slots.

    Seconds are of the CPU, or of a GPU.
    """
    from fedsampling.learning.models.devices import precise, stack_bytes
    from fedsampling.learning.training.launches import slot_bytes, trial_step

    network, step = batch.model.build(batch.sample, batch.classes), batch_cost(batch)[-1]
    if device == "cpu":
        stack, clock = MAX_TIMED_OPERATIONS // max(step, 1), time.process_time
        stack = int(np.clip(stack, 1, max(slots, 1)))
    else:
        work = LocalWork(batch=batch.size, step=1, steps=1)
        fit = stack_bytes(device) / slot_bytes(network, batch.sample, work, device)
        stack = max(n for n in (1, *TIMED_SLOTS) if n == 1 or n <= min(slots, fit))
        clock = time.perf_counter
    step_of_all = trial_step(network, batch.sample, batch.size, stack, device)

    def take() -> None:
        with precise(device):
            step_of_all().sum().item()  # waits for a GPU, too

    take()  # libraries choose and try out
    steps, begin = 0, clock()
    while (spent := clock() - begin) < MIN_TIMED_SECONDS:
        take()
        steps += 1
    return step * stack * steps / spent


def predicted_on_a_gpu(work: Work, seeds: int) -> tuple[float, int]:
    """Predict the seconds of a round on an H100, and how many such jobs it can serve at once."""
    from fedsampling.learning.models.devices import GPU_SHARE
    from fedsampling.learning.training.launches import H100

    one = launches(work.batch)
    if not one.flop:
        return 0.0, 1
    fit = GPU_SHARE * H100.memory / max(one.peak_bytes, 1)
    step = one.times(max(min(seeds * work.slots, fit), 1))
    return seeds * work.operations * step.seconds() / step.flop, step.jobs_at_once()


@lru_cache
def launches(batch: SlotBatch) -> "Launches":
    """Count what a step of one slot asks of a GPU."""
    from fedsampling.learning.training.launches import of_step

    network = batch.model.build(batch.sample, batch.classes)
    with memory.in_a_line():
        return of_step(network, batch.sample, batch.size, 1)


def available_data(job: Job, cache: Path, mirror: str | None) -> str:
    """Return the source of a job's data; ``embedded``, the stand-ins, if its files are missing."""
    is_complete = all(is_on_hand(name, cache, mirror) for name in job.files)
    return job.runs[0].data if is_complete else "embedded"


def _clients(
    settings: NetworkSimulation, data: str, context: RunContext
) -> tuple[Ints, int, tuple[int, ...], int | None]:
    """Return the clients' sizes, the number of tests, a sample's shape and the classes; cached."""
    key = settings.model_dump_json(include={"dataset", "problem_seed"}) + data
    if key not in _SEEN:
        problem = settings.dataset.load(data, settings.problem_seed, context.cache, context.mirror)
        shape = problem.x.shape[1:]
        _SEEN[key] = problem.n_samples, len(problem.x_test), shape, problem.classes
    return _SEEN[key]


_SEEN: dict[str, tuple[Ints, int, tuple[int, ...], int | None]] = {}
