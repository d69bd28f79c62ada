"""Estimate of a network's training run before it runs: local steps, evaluations and time.

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
from fedsampling.samplers.order import memory_bytes, obstacle, selection_seconds
from fedsampling.samplers.scheme import Slots

MIN_TIMED_SECONDS = 0.02  # shortest time that is measured reliably
MAX_TIMED_STEPS = 32  # local steps in one measurement
LONG_ROUND_SECONDS = 0.1  # above this time of local steps, other costs of a round are negligible
MAX_SYNTHETIC_CLIENTS = 100


@dataclass(frozen=True)
class Pace:
    """Times on this machine, in seconds.

    Parameters
    ----------
    step : float
        A slot's local step.
    turn : float
        A round of all seeds with a single local step per slot, including the sampler's
        computations.
    sample : float
        The evaluation of a sample.
    """

    step: float
    turn: float
    sample: float


@dataclass(frozen=True)
class Effort:
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
    evaluated : float
        Number of evaluated samples, for figures and for the sampler.
    sampler_bytes : float
        CPU memory of the sampler per run.
    bytes_per_slot : int
        Peak memory of a local step.
    input_bytes : int
        Memory of a slot's batch.
    network : Network
    sample : tuple of int
        Shape of one sample.
    pace : Pace or None
        None if not measured.
    """

    rounds: int
    seeds: int
    slots: float
    steps: float
    evaluated: float
    sampler_bytes: float
    bytes_per_slot: int
    input_bytes: int
    network: Network
    sample: tuple[int, ...]
    pace: Pace | None

    @property
    def seconds(self) -> float:
        """Time of a run on this machine in seconds; NaN without measurement."""
        if self.pace is None:
            return float("nan")
        further = self.slots * max(self.steps - 1, 0.0) * self.pace.step
        training = self.rounds * (self.pace.turn / self.seeds + further)
        return training + self.evaluated * self.pace.sample

    @property
    def seed_bytes(self) -> int:
        """Device memory per seed in bytes, which limits the number of seeds in a block.

        The sum of θ and its successor; for each slot, the initial model, the trained model, the
        update, the batch and the peak of a step; and for each slot both models again, because a
        captured graph keeps copies.  All slots are assumed to train at once.
        """
        slots = round(self.slots)
        models = 4 * self.network.dimension * (2 + 5 * slots)
        return models + slots * (self.input_bytes + self.bytes_per_slot)


Layout = tuple[tuple[int, ...], tuple[int, ...], str, str, int | None]


def effort(
    settings: Settings,
    data: str,
    where: Where,
    seeds: int = 1,
    measure: bool = True,
    limit: float = np.inf,
) -> Effort:
    """Estimate a run.

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
    problem_settings = settings.model_dump_json(include={"dataset", "problem_seed", "holdout"})
    # Most runs that end by their clock end soon after their minimum number of rounds.
    rounds = (settings.until and settings.until.rounds) or settings.rounds
    sizes, tests, layout = _sizes(problem_settings, data, where)
    work, sampler, n = settings.work, settings.sampler, len(sizes)
    try:
        sampler.check_population(n)
    except ValueError as error:
        raise InputError(str(error)) from None
    slots = min(sampler.expected_clients(n, rounds), float(n))
    steps = float(work.steps or (work.epochs or 1) * np.mean(-(-np.array(sizes) // work.batch)))
    passes = rounds // settings.evaluation.every + 1
    once = tests + (sum(sizes) if settings.evaluation.training_loss else 0)
    per_selection = sum(sizes) * getattr(sampler, "d", n) / n if "losses" in sampler.needs else 0.0
    network, peak = _built(settings.model, layout[0], layout[-1], work.batch)
    d = network.dimension
    if line := obstacle(sampler, n, d, seeds, memory.available(), limit):
        raise InputError(f"sampler.{line}")
    pace = None
    if measure:
        alike = settings.model_dump(include=set(Training.model_fields), mode="json")
        alike |= {"rounds": 1, "until": None, "availability": None, "problem_seed": 0}
        alike["evaluation"] = {"every": 1000}
        alike["delays"] = None if settings.delays is None else {"name": "synthetic"}
        alike["work"] |= {"steps": 1, "epochs": None, "step": 1e-9, "decay": 1.0, "schedule": None}
        one_round = json.dumps(alike, sort_keys=True)
        plain = json.dumps({**alike, "sampler": {"name": "full"}, "delays": None}, sort_keys=True)
        stack = max(round(seeds * slots), 1)
        step, sample = _step(plain, layout, stack, where), _sample(plain, layout, where)
        turn = stack * step
        if turn < LONG_ROUND_SECONDS:
            clients = min(n, MAX_SYNTHETIC_CLIENTS)
            turn = _turn(one_round, layout, clients, seeds, where)
            turn += selection_seconds(sampler, n, d, seeds)
            turn -= selection_seconds(
                sampler, min(n, MAX_SYNTHETIC_CLIENTS), d, seeds
            )  # is measured
        else:
            turn += selection_seconds(sampler, n, d, seeds)
            if sampler.needs & {"gradients", "heterogeneity"}:
                turn += stack * settings.feature_batch * sample
        pace = Pace(step, turn, sample)
    return Effort(
        rounds=rounds,
        seeds=seeds,
        slots=slots,
        steps=steps,
        evaluated=passes * once + rounds * per_selection,
        sampler_bytes=memory_bytes(sampler, n, d, seeds) / seeds,
        bytes_per_slot=peak,
        input_bytes=4 * work.batch * prod(layout[0]),
        network=network,
        sample=layout[0],
        pace=pace,
    )


def most_samples(settings: Settings, data: str, where: Where) -> int:
    """Return the largest number of training samples of any client."""
    problem_settings = settings.model_dump_json(include={"dataset", "problem_seed", "holdout"})
    return max(_sizes(problem_settings, data, where)[0])


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
def _step(alike: str, layout: Layout, most: int, where: Where) -> float:
    """Measure the time of a slot's local step in seconds, in stacks of up to `most` slots."""
    settings = Training.model_validate_json(alike)
    problem = _synthetic(layout, 8, settings.work.batch)
    learner = build_learner(settings, problem, "embedded", where)
    theta, rng = learner.start(np.zeros(1, np.int64)), Draws(np.zeros(1, np.int64), 0)

    def seconds(stack: int, steps: int) -> float:
        learner.local = settings.work.model_copy(update={"steps": steps})
        slots = Slots.stack([np.arange(stack) % problem.n_clients])
        return _timed(lambda: learner.work(theta, slots, settings.sampler, rng), where)

    first, stack, more = seconds(1, 1), 1, 2
    if first > LONG_ROUND_SECONDS:
        return seconds(1, 1)
    while True:
        seconds(stack, 1)  # warm-up: capture, autotuning, allocation
        spent = seconds(stack, 1 + more) - seconds(stack, 1)
        if spent > MIN_TIMED_SECONDS or (stack == most and more > MAX_TIMED_STEPS):
            return max(spent, 0.0) / (more * stack)
        stack, more = min(most, 4 * stack), more if stack < most else 4 * more


@lru_cache
def _sample(alike: str, layout: Layout, where: Where) -> float:
    """Measure the time of a sample's evaluation in seconds."""
    settings = Training.model_validate_json(alike)
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
def _turn(alike: str, layout: Layout, clients: int, seeds: int, where: Where) -> float:
    """Measure the time of a round with one local step per slot, in seconds."""
    settings = Training.model_validate_json(alike)
    each = settings.work.batch
    if settings.sampler.needs & {"gradients", "heterogeneity"}:
        each = max(each, settings.feature_batch)
    problem = _synthetic(layout, clients, each)

    for rounds in (3, 12):
        marks: list[float] = []
        note = partial(_note, marks, where)
        played = settings.model_copy(update={"rounds": rounds})
        played.on(problem, "embedded", range(seeds), where, note)
        # The first round fills caches, and the last one ends in an evaluation.
        spent = marks[-2] - marks[1]
        if spent > MIN_TIMED_SECONDS:
            break
    return spent / (rounds - 2)


def _synthetic(layout: Layout, clients: int, each: int) -> FederatedDataset:
    """Generate clients with `each` synthetic samples, and a tenth as many test samples."""
    sample, target, kind, target_kind, classes = layout
    rows, tests, rng = clients * each, max(clients * each // 10, 1), np.random.default_rng(0)
    symbols = kind[1] not in "fu"
    drawn = rng.integers(0, 2 if symbols else 256, (rows + tests, *sample))
    x = (drawn if kind[1] != "f" else drawn / 256).astype(kind)
    y = rng.integers(0, classes or 2, (rows + tests, *target)).astype(target_kind)
    start, p = each * np.arange(clients + 1), np.full(clients, 1 / clients)
    return FederatedDataset(
        "synthetic", x[:rows], y[:rows], start, p, x[rows:], y[rows:], classes=classes
    )


def _note(marks: list[float], where: Where, done: int) -> None:
    marks.append(_clock(where))


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
