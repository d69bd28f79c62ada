"""Time and memory of a job before it runs: operations and bytes by its settings, a measured rate.

The operations of a network's training follow from its settings and the sizes of its clients.  They
are divided by the rate of a local step, which is measured on this machine in a fraction of a
second.  Jobs of other run kinds take minutes at most; a kind declares the seconds of a step.
"""

import time
from functools import lru_cache
from math import inf, prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedsampling.base import memory
from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.data.sources.local_files import place_of
from fedsampling.data.sources.sources import editions
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.experiments.specs import Job
from fedsampling.learning.model import Model
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.runs.execute import device
from fedsampling.runs.resources import Measured
from fedsampling.samplers.interface.in_settings import memory_bytes, obstacle, selection_seconds

MIN_TIMED_SECONDS = 0.03
MAX_TIMED_OPERATIONS = 1e9  # of a call that is timed, if it is of several slots
SMALL = 100  # clients
ROUND_SECONDS = 0.002  # of a run, in addition to its products: draws, costs, the server's step


class Batch(NamedTuple):
    """A batch of one slot's network."""

    model: Model
    sample: tuple[int, ...]
    classes: int | None
    size: int
    tokens: bool


class Work(NamedTuple):
    """The work of one run of a network."""

    operations: float  # of a round's products and convolutions, with the share of evaluations
    slots: float  # clients that train in a round
    largest: float  # training samples of the client with the most
    selection: float  # seconds
    bytes: float  # of models, batches, the steps of all slots at once, and the sampler
    batch: Batch


def measure(job: Job, results: Path, config: Config) -> Measured:
    """Estimate the time of a job's step and its memory; stand-ins replace missing official data."""
    settings, seeds = job.simulation, len(job.runs)
    if not isinstance(settings, Network):
        return Measured(settings.step_seconds * (seeds if job.counter else 1))
    where = Where(results / "data", config.mirror, device(config))
    data = available_data(job, where.cache, where.mirror)
    work = work_of(settings, data, where, seeds, 60.0 * config.cluster.max_runtime)
    rate = operations_per_second(work.batch, round(seeds * work.slots), where.device)
    seconds = seeds * (work.operations / rate + work.selection + ROUND_SECONDS)
    # Most runs that end by their clock end soon after their minimum number of rounds.
    rounds = (settings.until and settings.until.rounds) or settings.rounds
    return Measured(seconds * rounds / settings.rounds, where.device, work.bytes / 2**20)


def work_of(settings: Network, data: str, where: Where, seeds: int = 1, limit: float = inf) -> Work:
    """Count the work of a run, of which `seeds` train together.

    Raises InputError if the settings do not fit the data, or if the sampler needs too much memory,
    or more than `limit` seconds for a selection.
    """
    sizes, tests, sample, classes = _clients(settings, data, where)
    held = settings.holdout or 0.0
    tests, samples = (held * sizes.sum() if held else tests), (1 - held) * sizes
    n, work, sampler, every = len(sizes), settings.work, settings.sampler, settings.evaluation.every
    try:
        sampler.check_population(n)
    except ValueError as error:
        raise InputError(str(error)) from None
    batch = Batch(settings.model, sample, classes, work.batch, settings.inputs == "tokens")
    d, step_bytes, forward, step = batch_cost(batch)
    if line := obstacle(sampler, n, d, seeds, memory.available(), limit):
        raise InputError(f"sampler.{line}")
    slots = min(sampler.expected_clients(n, settings.rounds), float(n))
    steps = work.steps or (work.epochs or 1) * np.ceil(samples / work.batch).mean()
    dense = min(settings.evaluation.each_until, settings.rounds) / settings.rounds
    evaluations = 1 / every + dense * (1 - 1 / every)  # in each round
    evaluated = (tests + samples.sum() * settings.evaluation.training_loss) * evaluations
    if "losses" in sampler.needs:
        evaluated += samples.mean() * getattr(sampler, "d", n)
    operations = slots * steps * step + evaluated * forward / work.batch
    # Samplers declare the worst case, which is far from the usual one in small populations.
    selection = selection_seconds(sampler, n, d) - selection_seconds(sampler, min(n, SMALL), d)
    trained = 4 * d * (2 + 3 * slots) + slots * (step_bytes + 4 * work.batch * prod(sample))
    stored = memory_bytes(sampler, n, d, seeds) / seeds
    return Work(operations, slots, samples.max(), selection, trained + stored, batch)


@lru_cache
def batch_cost(batch: Batch) -> tuple[int, int, int, int]:
    """Return parameters, bytes of a step, and operations of a batch's outputs and of a step."""
    from fedsampling.learning.models.network import operations, step_bytes

    network = batch.model.build(batch.sample, batch.classes)
    count = operations(network, batch.sample, batch.size)
    bytes_ = step_bytes(network, batch.sample, batch.size)
    return network.dimension, bytes_, count.forward, count.step


@lru_cache
def operations_per_second(batch: Batch, slots: int, device: str) -> float:
    """Measure local steps of up to `slots` stacked slots; CPU time excludes other processes."""
    import torch

    from fedsampling.learning.models.network import precise
    from fedsampling.learning.training.step import sgd_step

    network, step = batch.model.build(batch.sample, batch.classes), batch_cost(batch)[-1]
    stack = int(np.clip(MAX_TIMED_OPERATIONS // max(step, 1), 1, max(slots, 1)))
    w = torch.from_numpy(network.initial(np.random.default_rng(0))).to(device)
    w = w.expand(stack, -1).clone()
    kind = torch.int64 if batch.tokens else torch.float32
    x = torch.zeros(stack, batch.size, *batch.sample, dtype=kind, device=device)
    targets = torch.float32 if batch.classes is None else torch.int64
    with torch.no_grad():
        shape = network.outputs(w[:1], x[:1]).shape[1:-1]
    y = torch.zeros(stack, *shape, dtype=targets, device=device)
    weight = w.new_full((stack, batch.size), 1 / batch.size)
    work = LocalWork(batch=batch.size, step=1, steps=1)
    arrays = w, w, w.new_empty(stack, 0), w.new_full((stack, 1), 1e-9), x, y, weight

    def take() -> None:
        with precise(device):
            sgd_step(network, work, *arrays, lambda h, _: h).sum().item()  # waits for a GPU, too

    take()  # libraries choose and try out
    steps, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < MIN_TIMED_SECONDS:
        take()
        steps += 1
    return step * stack * steps / spent


def available_data(job: Job, cache: Path, mirror: str | None) -> str:
    """Return the source of a job's data; ``embedded``, the stand-ins, if its files are missing."""
    for name in job.files:
        of_each = editions(name).values()
        if not any(all(place_of(file, cache, mirror) for file in files) for files in of_each):
            return "embedded"
    return job.runs[0].data


def _clients(
    settings: Network, data: str, where: Where
) -> tuple[Ints, int, tuple[int, ...], int | None]:
    """Return the clients' sizes, the number of tests, a sample's shape and the classes; cached."""
    key = settings.model_dump_json(include={"dataset", "problem_seed"}) + data
    if key not in _SEEN:
        problem = settings.dataset.load(data, settings.problem_seed, where.cache, where.mirror)
        shape = problem.x.shape[1:]
        _SEEN[key] = problem.n_samples, len(problem.x_test), shape, problem.classes
    return _SEEN[key]


_SEEN: dict[str, tuple[Ints, int, tuple[int, ...], int | None]] = {}
