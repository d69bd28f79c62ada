"""How much work a network's training run is, before it runs: operations, and seconds of them here.

Rounds of a paper's size may take a minute each, so that planning does not time them.  Operations
are counted on a trace of the network (:mod:`fedsampling.models.networks.cost`), and a few local
steps of two slots say how many of them this machine does in a second.
"""

import json
import time
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import torch

from fedsampling.datasets.dataset import Dataset
from fedsampling.models.model import Model
from fedsampling.models.networks.cost import Operations, operations, step_bytes
from fedsampling.models.networks.network import Network, everything
from fedsampling.simulations.network import Network as Settings
from fedsampling.simulations.simulation import Where
from fedsampling.training.network.local_work import LocalWork
from fedsampling.training.network.step import sgd_step

STEPS = 3  # local steps that are timed, after one that is not
SLOTS = 2


@dataclass(frozen=True)
class Effort:
    """One run of a network.

    Parameters
    ----------
    training, evaluation : float
        Floating-point operations in products and convolutions.
    bytes_per_slot : int
        Peak of a local step.
    input_bytes : int
        Of a slot's batch.
    parameters : int
        d of the network.
    slots : int
        Clients that train in a round.
    rate : float
        Operations in a second on this machine; NaN if not measured.
    """

    training: float
    evaluation: float
    bytes_per_slot: int
    input_bytes: int
    parameters: int
    slots: int
    rate: float

    @property
    def seconds(self) -> float:
        """Seconds of a run on this machine."""
        return (self.training + self.evaluation) / self.rate

    @property
    def seed_bytes(self) -> int:
        """Memory that a seed takes on its device: what a block of seeds is sized by.

        θ and its successor; of each slot the model it began with, the one it trains, its update,
        its batch, and the peak of a step; and the first two once more, where a captured graph keeps
        them.  All slots are counted as if they trained at once.
        """
        models = 4 * self.parameters * (2 + 5 * self.slots)
        return models + self.slots * (self.input_bytes + self.bytes_per_slot)


def effort(settings: Settings, data: str, where: Where, measure: bool = True) -> Effort:
    """Estimate a run.

    Parameters
    ----------
    settings : fedsampling.simulations.network.Network
    data : {"embedded", "official"}
        Of which the clients' sizes are taken.
    where : Where
    measure : bool
        Whether to time some local steps.
    """
    dataset, seed = settings.dataset.model_dump_json(), settings.problem_seed
    n, train, tests, sample, classes = _sizes(dataset, seed, data, where)
    work = settings.work
    network, batch, rate = _measured(
        settings.model, sample, classes, work.batch, where.device, measure
    )
    slots = min(_slots(settings.sampler, n), n)
    seen = work.steps * work.batch if work.steps else (work.epochs or 1) * train / n
    per_sample = batch.step / work.batch
    until = settings.until
    rounds = (
        until and until.rounds
    ) or settings.rounds  # most end by their clock, soon after these
    passes = rounds // settings.evaluation.every + 1
    return Effort(
        training=rounds * slots * seen * per_sample,
        evaluation=passes * (train + tests) * batch.forward / work.batch,
        bytes_per_slot=step_bytes(network, sample, work.batch),
        input_bytes=4 * work.batch * prod(sample),
        parameters=network.dimension,
        slots=slots,
        rate=rate,
    )


def _slots(sampler: Any, n: int) -> int:
    """Return how many clients a scheme expects to train in a round, or at most."""
    names = ("available", "m", "d")
    return int(next((getattr(sampler, name) for name in names if hasattr(sampler, name)), n))


@lru_cache
def _sizes(dataset: str, seed: int, data: str, where: Where) -> tuple[Any, ...]:
    """Load a dataset once for all runs that share it; `dataset` is its settings as JSON."""
    given = json.loads(dataset)
    record = Dataset.member(given["name"]).model_validate(given)
    problem = record.load(data, seed, where.cache, where.mirror)
    tests = len(problem.x_test)
    return problem.n_clients, len(problem.x), tests, problem.x.shape[1:], problem.classes


@lru_cache
def _measured(
    model: Model,
    sample: tuple[int, ...],
    classes: int | None,
    batch: int,
    device: str,
    measure: bool,
) -> tuple[Network, Operations, float]:
    """Build, count and time a network once for all runs that share it."""
    network = model.build(sample, classes)
    counted = operations(network, sample, batch)
    rate = _rate(network, sample, batch, counted, device) if measure else float("nan")
    return network, counted, rate


def _rate(
    network: Network, sample: tuple[int, ...], batch: int, counted: Operations, device: str
) -> float:
    """Time local steps of two slots on made-up samples.

    On a processor its own time is taken, so that what else runs there does not count.
    """
    clock = time.perf_counter if device == "cuda" else time.process_time
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(np.stack([network.initial(rng)] * SLOTS)).to(device)
    symbols = any(name.startswith("embedding") for name in network.shapes)
    x = torch.zeros(SLOTS, batch, *sample, dtype=torch.int64 if symbols else None, device=device)
    z = network.outputs(theta[:, :], x)
    y = torch.zeros(z.shape[:-1], dtype=torch.int64, device=device)
    if network.loss == "squared":
        y = y.float()
    weight = torch.full((SLOTS, batch), 1 / batch, device=device)
    step = torch.zeros(SLOTS, 1, device=device)
    work = LocalWork(batch=batch, step=1, steps=1)
    for number in range(STEPS + 1):
        if number == 1:
            _settled(device)
            begin = clock()
        sgd_step(network, work, theta, theta, step, x, y, weight, everything)
    _settled(device)
    return SLOTS * STEPS * counted.step / (clock() - begin)


def _settled(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
