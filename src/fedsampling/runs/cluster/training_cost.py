"""Cost of training a network, before it runs: local steps, evaluations, time and memory.

Rounds of a paper's size may take a minute each, so no round is run.  The numbers of steps and
samples follow from the settings and the clients' sizes.  The time per step and per sample is
measured on synthetic samples with the real learner, in stacks of up to the size of a round.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod

import numpy as np

from fedsampling.base import memory
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.network import Network as Settings
from fedsampling.experiments.simulations.network import Training, build_learner, load_problem
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.learning.models.model import Model
from fedsampling.learning.models.networks.cost import step_bytes
from fedsampling.learning.models.networks.network import Network
from fedsampling.learning.training.network import gpu
from fedsampling.learning.training.network.evaluation import evaluate
from fedsampling.samplers.interface.order import memory_bytes, obstacle, selection_seconds
from fedsampling.samplers.scheme import Slots

MIN_TIMED_SECONDS = 0.02  # shortest time that is measured reliably
MAX_TIMED_STEPS = 32  # local steps in one measurement
LONG_ROUND_SECONDS = 0.1  # above this time of local steps, other costs of a round are negligible
MAX_SYNTHETIC_CLIENTS = 100


@dataclass(frozen=True)
class Timings:
    """Times on this machine, in seconds.

    Parameters
    ----------
    step : float
        A slot's local step.
    short_round : float
        A round of all seeds with a single local step per slot, including the sampler's
        computations.
    sample : float
        The evaluation of a sample.
    """

    step: float
    short_round: float
    sample: float


@dataclass(frozen=True)
class TrainingCost:
    """Amount of work of one training run of a network.

    Parameters
    ----------
    rounds : int
    seeds : int
        Runs that are trained together.
    slots : float
        Expected number of clients that train in a round.
    steps : float
        Expected number of local steps of a client in a round.
    evaluated_samples : float
        Number of evaluated samples, for figures and for the sampler.
    sampler_bytes : float
        CPU memory of the sampler per run.
    step_bytes : int
        Peak memory of a slot's local step.
    batch_bytes : int
        Memory of a slot's batch.
    network : Network
    sample_shape : tuple of int
    timings : Timings or None
        None if not measured.
    """

    rounds: int
    seeds: int
    slots: float
    steps: float
    evaluated_samples: float
    sampler_bytes: float
    step_bytes: int
    batch_bytes: int
    network: Network
    sample_shape: tuple[int, ...]
    timings: Timings | None

    @property
    def seconds(self) -> float:
        """Time of a run on this machine in seconds; NaN without measurement."""
        if self.timings is None:
            return float("nan")
        other_steps = self.slots * max(self.steps - 1, 0.0) * self.timings.step
        training = self.rounds * (self.timings.short_round / self.seeds + other_steps)
        return training + self.evaluated_samples * self.timings.sample

    @property
    def seed_bytes(self) -> int:
        """Device memory per seed in bytes, which limits the number of seeds in a block.

        The sum of θ and its successor; for each slot, the initial model, the trained model, the
        update, the batch and the peak of a step; and for each slot both models again, because a
        captured graph keeps copies.  All slots are assumed to train at once.
        """
        slots = round(self.slots)
        models = 4 * self.network.dimension * (2 + 5 * slots)
        return models + slots * (self.batch_bytes + self.step_bytes)


# Shapes and types of samples and targets, and the number of classes.
Layout = tuple[tuple[int, ...], tuple[int, ...], str, str, int | None]


def training_cost(
    settings: Settings,
    data: str,
    where: Where,
    seeds: int = 1,
    measure: bool = True,
    limit: float = np.inf,
) -> TrainingCost:
    """Estimate the cost of a run.

    Parameters
    ----------
    settings : fedsampling.experiments.simulations.network.Network
    data : {"embedded", "official"}
        Source of the data, which determine the clients' sizes.
    where : Where
    seeds : int
        Runs that are trained together.
    measure : bool
        Whether to time some local steps.
    limit : float
        Time limit in seconds for one selection of clients.

    Raises
    ------
    InputError
        If the settings do not fit the data, or the sampler needs too much memory or time.
    """
    # Most runs that end by their clock end soon after their minimum number of rounds.
    rounds = (settings.until and settings.until.rounds) or settings.rounds
    sizes, tests, layout = _sizes(_data_settings(settings), data, where)
    work, sampler, n = settings.work, settings.sampler, len(sizes)
    try:
        sampler.check_population(n)
    except ValueError as error:
        raise InputError(str(error)) from None
    slots = min(sampler.expected_clients(n, rounds), float(n))
    steps = float(work.steps or (work.epochs or 1) * np.mean(-(-np.array(sizes) // work.batch)))
    every, dense = settings.evaluation.every, min(settings.evaluation.each_until, rounds)
    evaluations = rounds // every + 1 + dense - dense // every
    per_evaluation = tests + (sum(sizes) if settings.evaluation.training_loss else 0)
    per_selection = sum(sizes) * getattr(sampler, "d", n) / n if "losses" in sampler.needs else 0.0
    sample_shape, classes = layout[0], layout[-1]
    network, peak_bytes = _built(settings.model, sample_shape, classes, work.batch)
    if line := obstacle(sampler, n, network.dimension, seeds, memory.available(), limit):
        raise InputError(f"sampler.{line}")
    return TrainingCost(
        rounds=rounds,
        seeds=seeds,
        slots=slots,
        steps=steps,
        evaluated_samples=evaluations * per_evaluation + rounds * per_selection,
        sampler_bytes=memory_bytes(sampler, n, network.dimension, seeds) / seeds,
        step_bytes=peak_bytes,
        batch_bytes=4 * work.batch * prod(sample_shape),
        network=network,
        sample_shape=sample_shape,
        timings=_timings(settings, layout, n, slots, seeds, network.dimension, where)
        if measure
        else None,
    )


def most_samples(settings: Settings, data: str, where: Where) -> int:
    """Return the largest number of training samples of any client."""
    return max(_sizes(_data_settings(settings), data, where)[0])


def _timings(
    settings: Settings,
    layout: Layout,
    clients: int,
    slots: float,
    seeds: int,
    dimension: int,
    where: Where,
) -> Timings:
    """Measure the times of a run's parts; equal parts of several runs are measured once."""
    sampler = settings.sampler
    short = settings.model_dump(include=set(Training.model_fields), mode="json")
    short |= {"rounds": 1, "until": None, "availability": None, "problem_seed": 0}
    short["evaluation"] = {"every": 1000}
    short["delays"] = None if settings.delays is None else {"name": "synthetic"}
    short["work"] |= {"steps": 1, "epochs": None, "step": 1e-9, "decay": 1.0, "schedule": None}
    one_round = json.dumps(short, sort_keys=True)
    plain = json.dumps({**short, "sampler": {"name": "full"}, "delays": None}, sort_keys=True)
    stack = max(round(seeds * slots), 1)
    step, sample = _step_seconds(plain, layout, stack, where), _sample_seconds(plain, layout, where)
    selection = selection_seconds(sampler, clients, dimension, seeds)
    if stack * step < LONG_ROUND_SECONDS:
        synthetic = min(clients, MAX_SYNTHETIC_CLIENTS)
        # The measured round contains a selection among the synthetic clients.
        selection -= selection_seconds(sampler, synthetic, dimension, seeds)
        short_round = _round_seconds(one_round, layout, synthetic, seeds, where) + selection
    else:
        short_round = stack * step + selection
        if sampler.needs & {"gradients", "heterogeneity"}:
            short_round += stack * settings.feature_batch * sample
    return Timings(step, short_round, sample)


def _data_settings(settings: Settings) -> str:
    """Return the settings that determine the clients' samples, as JSON."""
    return settings.model_dump_json(include={"dataset", "problem_seed", "holdout"})


@lru_cache
def _sizes(settings: str, data: str, where: Where) -> tuple[tuple[int, ...], int, Layout]:
    """Return the clients' sizes, the number of test samples, and the layout; cached."""
    record = {"inputs": "raw", "model": {"name": "softmax"}, **json.loads(settings)}
    record |= {"work": {"steps": 1, "batch": 1, "step": 1}, "sampler": {"name": "full"}}
    record |= {"kind": "network", "rounds": 1, "evaluation": {"every": 1}}
    problem = load_problem(Settings.model_validate(record), data, where)
    kinds = problem.x.dtype.str, problem.y.dtype.str
    layout = problem.x.shape[1:], problem.y.shape[1:], *kinds, problem.classes
    return tuple(problem.n_samples.tolist()), len(problem.x_test), layout


@lru_cache
def _built(
    model: Model, sample: tuple[int, ...], classes: int | None, batch: int
) -> tuple[Network, int]:
    """Build a network and count the peak bytes of its step; cached."""
    network = model.build(sample, classes)
    return network, step_bytes(network, sample, batch)


@lru_cache
def _step_seconds(record: str, layout: Layout, max_stack: int, where: Where) -> float:
    """Measure the time of a slot's local step in seconds, in stacks of up to `max_stack` slots."""
    settings = Training.model_validate_json(record)
    problem = _synthetic(layout, 8, settings.work.batch)
    learner = build_learner(settings, problem, "embedded", where)
    theta, rng = learner.start(np.zeros(1, np.int64)), Draws(np.zeros(1, np.int64), 0)

    def seconds(stack: int, steps: int) -> float:
        learner.local = settings.work.model_copy(update={"steps": steps})
        slots = Slots.stack([np.arange(stack) % problem.n_clients])
        return _timed(lambda: learner.work(theta, slots, settings.sampler, rng), where)

    if seconds(1, 1) > LONG_ROUND_SECONDS:
        return seconds(1, 1)  # without the warm-up of the first call
    stack, added = 1, 2
    while True:
        seconds(stack, 1)  # warm-up: capture, autotuning, allocation
        spent = seconds(stack, 1 + added) - seconds(stack, 1)
        if spent > MIN_TIMED_SECONDS or (stack == max_stack and added > MAX_TIMED_STEPS):
            return max(spent, 0.0) / (added * stack)
        stack, added = min(max_stack, 4 * stack), added if stack < max_stack else 4 * added


@lru_cache
def _sample_seconds(record: str, layout: Layout, where: Where) -> float:
    """Measure the time of a sample's evaluation in seconds."""
    settings = Training.model_validate_json(record)
    for clients in (1, 8, 64):
        problem = _synthetic(layout, clients, 32)
        learner = build_learner(settings, problem, "embedded", where)
        theta = learner.start(np.zeros(1, np.int64))
        task = partial(evaluate, learner, theta)
        _timed(task, where)
        spent = _timed(task, where)
        if spent > MIN_TIMED_SECONDS:
            break
    return spent / (len(problem.x) + len(problem.x_test))


@lru_cache
def _round_seconds(record: str, layout: Layout, clients: int, seeds: int, where: Where) -> float:
    """Measure the time of a round with one local step per slot, in seconds."""
    settings = Training.model_validate_json(record)
    samples = settings.work.batch
    if settings.sampler.needs & {"gradients", "heterogeneity"}:
        samples = max(samples, settings.feature_batch)
    problem = _synthetic(layout, clients, samples)
    for rounds in (3, 12):
        times: list[float] = []  # at the end of each round
        run = settings.model_copy(update={"rounds": rounds})
        run.on(problem, "embedded", range(seeds), where, partial(_append_time, times, where))
        # The first round fills caches, and the last one ends in an evaluation.
        spent = times[-2] - times[1]
        if spent > MIN_TIMED_SECONDS:
            break
    return spent / (rounds - 2)


def _synthetic(layout: Layout, clients: int, samples: int) -> FederatedDataset:
    """Generate clients with some synthetic samples each, and a tenth as many test samples."""
    sample, target, kind, target_kind, classes = layout
    rows, tests, rng = clients * samples, max(clients * samples // 10, 1), np.random.default_rng(0)
    symbols = kind[1] not in "fu"
    drawn = rng.integers(0, 2 if symbols else 256, (rows + tests, *sample))
    x = (drawn if kind[1] != "f" else drawn / 256).astype(kind)
    y = rng.integers(0, classes or 2, (rows + tests, *target)).astype(target_kind)
    start, p = samples * np.arange(clients + 1), np.full(clients, 1 / clients)
    return FederatedDataset(
        "synthetic", x[:rows], y[:rows], start, p, x[rows:], y[rows:], classes=classes
    )


def _append_time(times: list[float], where: Where, rounds: int) -> None:
    times.append(_clock(where))


def _timed(task: Callable[[], object], where: Where) -> float:
    begin = _clock(where)
    task()
    return _clock(where) - begin


def _clock(where: Where) -> float:
    """Return a time in seconds; on a CPU this process's time, which excludes other processes."""
    if where.device != "cuda":
        return time.process_time()
    gpu.device(where.device).settle()
    return time.perf_counter()
