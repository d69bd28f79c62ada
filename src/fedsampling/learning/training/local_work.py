"""The batches, the step size and the dropout keys of each slot in a round.

They are determined before training by numbers keyed by seed, round, client and occurrence, so that
a client gets the same batches under every sampler and every stacking.
"""

from dataclasses import dataclass
from math import cos, pi
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import (
    NotNegative,
    Positive,
    PositiveFloat,
    Proportion,
    Strict,
    hashed_if_set,
)
from fedsampling.base.streams import Draws, uniforms
from fedsampling.samplers.protocol.slots import Slots

Key = tuple[Ints, Ints, Ints, Ints]  # seed, round, client, occurrence


class Schedule(Strict):
    """Factor on the learning rate as a function of the round.

    ``cosine`` decreases along half a period from 1 to `floor`; ``stairs`` is multiplied by `drop`
    every `every` rounds; ``constant`` is 1.  All of them start after a linear `warmup`.
    """

    name: Literal["cosine", "stairs", "constant"]
    warmup: Annotated[int, Field(ge=0)] = Field(0, description="rounds of linear increase")
    rounds: Positive | None = Field(
        None, description="rounds until a cosine reaches its floor; null: all rounds"
    )
    floor: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="last value of a cosine")
    every: Positive | None = Field(None, description="rounds between two drops of stairs")
    drop: Proportion = Field(0.1, description="factor at each drop of stairs")

    @model_validator(mode="after")
    def _check_stairs(self) -> "Schedule":
        if (self.name == "stairs") != (self.every is not None):
            raise ValueError("every: required if name is 'stairs', otherwise invalid")
        return self

    def factor(self, round: int) -> float:
        """Return the factor in a round, counted from 0."""
        if round < self.warmup:
            return (round + 1) / (self.warmup + 1)
        since = round - self.warmup
        if self.every is not None:
            return float(self.drop ** (since // self.every))
        if self.name == "constant":
            return 1.0
        assert self.rounds is not None  # see LocalWork.for_rounds
        along = min(since / max(self.rounds - self.warmup, 1), 1.0)
        return self.floor + (1 - self.floor) * (1 + cos(pi * along)) / 2


class LocalWork(Strict):
    """Local training of every selected client: a number of steps, or of epochs.

    With `prox`, μ/2 ‖θ_i − θ‖² is added to the local loss.  As in ``torch.optim.SGD``, the gradient
    is clipped, then weight decay is added, then momentum.  Momentum starts at zero in each round.
    """

    steps: Positive | None = Field(None, description="steps on fresh random batches")
    epochs: Positive | None = Field(None, description="passes over the client's data")
    batch: Positive = Field(description="samples of a batch, B")
    step: PositiveFloat = Field(description="local learning rate η_l")
    remainder: bool = Field(True, description="keep an epoch's last, smaller batch")
    decay: PositiveFloat = Field(1.0, description="factor on the learning rate from round to round")
    prox: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.0, description="μ of FedProx"
    )
    momentum: Annotated[float, Field(ge=0, lt=1)] = hashed_if_set(
        0.0, "momentum of the client's SGD"
    )
    weight_decay: NotNegative = hashed_if_set(0.0, "λ of L2 regularisation")
    clip: PositiveFloat | None = hashed_if_set(None, "largest norm of a gradient; null: no limit")
    schedule: Schedule | None = hashed_if_set(
        None, "factor on the learning rate, in addition to decay"
    )

    @model_validator(mode="after")
    def _check_length(self) -> "LocalWork":
        if (self.steps is None) == (self.epochs is None):
            problem = "both are given" if self.steps else "neither is given"
            raise ValueError(f"steps, epochs: {problem}; give one of the two")
        return self

    @property
    def plain(self) -> bool:
        """Whether a step is just the gradient of the loss."""
        return not (self.prox or self.momentum or self.weight_decay or self.clip)

    def for_rounds(self, rounds: int) -> "LocalWork":
        """Return a copy for training of `rounds` rounds, the default length of a cosine."""
        if self.schedule is None or self.schedule.rounds is not None:
            return self
        schedule = self.schedule.model_copy(update={"rounds": rounds})
        return self.model_copy(update={"schedule": schedule})

    def batches(self, n_samples: Ints, slots: Slots, rng: Draws) -> "Batches":
        """Draw the batches of a round's slots, whose clients have `n_samples`, shape (slots,)."""
        key = _key(slots, rng)
        if self.steps is not None:
            u = _uniforms(key, "batches", self.steps * self.batch)
            return fresh(n_samples, self.batch, u.reshape(len(slots), self.steps, self.batch))
        assert self.epochs is not None
        # One purpose per epoch, so that its numbers do not depend on the other slots.
        u = np.stack(
            [_uniforms(key, f"batches of epoch {e}", n_samples.max()) for e in range(self.epochs)],
            axis=1,
        )
        return epochs(n_samples, self.batch, self.epochs, self.remainder, u)

    def samples(self, n_samples: Ints) -> Ints:
        """Count the samples in a slot's batches, with repetitions, shape of `n_samples`."""
        if self.steps is not None:
            return self.steps * np.minimum(self.batch, n_samples)
        assert self.epochs is not None
        keeps_last = self.remainder | (n_samples < self.batch)
        return self.epochs * np.where(keeps_last, n_samples, n_samples // self.batch * self.batch)

    def learning_rates(self, slots: Slots, round: int, of_runs: Array | None = None) -> Array:
        """Return each slot's rate, shape (slots,); `of_runs` replaces `step`, run by run."""
        step = self.step if of_runs is None else of_runs[slots.run]
        factor = self.schedule.factor(round) if self.schedule else 1.0
        return step * self.decay**round * factor * slots.scale


def dropout_keys(slots: Slots, rng: Draws) -> Ints:
    """Return the key of each slot's dropout masks, shape (slots,)."""
    return (_uniforms(_key(slots, rng), "dropout", 1)[:, 0] * 2**53).astype(np.int64)


def occurrence(slots: Slots) -> Ints:
    """Return the position of each slot among the slots of its client and run: 0, 1, …."""
    pairs = slots.run * (slots.client.max(initial=0) + 1) + slots.client
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    first = np.searchsorted(ordered, ordered)
    number = np.empty(len(pairs), np.int64)
    number[order] = np.arange(len(pairs)) - first
    return number


def _key(slots: Slots, rng: Draws) -> Key:
    rounds = np.full(len(slots), rng.round)
    return rng.seeds[slots.run], rounds, slots.client, occurrence(slots)


def _uniforms(key: Key, purpose: str, n: int) -> Array:
    seed, round, client, number = key
    return uniforms(seed, purpose, round, client, number, n=int(n))


@dataclass(frozen=True)
class Batches:
    """Mini-batches of all slots."""

    # shape (steps, slots, B): position of each sample among its client's samples; zero for padding
    index: Ints
    size: Ints  # shape (steps, slots): size of each batch; zero if the slot has finished


def fresh(n_samples: Ints, B: int, u: Array) -> Batches:
    """Draw a new batch for each step, without replacement within the batch.

    `n_samples`, shape (slots,). `B`: a client with fewer samples takes all of them in every step.
    `u`, shape (slots, steps, B): uniform on [0, 1).

    Floyd's algorithm: for j = n − B, …, n − 1, add a random number from 0..j, or j itself if the
    set contains this number already; every subset of size B is equally likely.

    References: Bentley and Floyd: A sample of brilliance. CACM 30, 1987.
    """
    count = np.minimum(n_samples, B)
    first = (n_samples - count)[:, None]
    index = np.empty((B, *u.shape[:2]), np.int64)  # so that the comparisons run along memory
    for b, variate in enumerate(np.ascontiguousarray(np.moveaxis(u, 2, 0))):
        j = first + b
        drawn = (variate * (j + 1)).astype(np.int64)
        repeated = (index[:b] == drawn).any(0)
        index[b] = np.where(repeated, j, drawn)
    present = np.arange(B)[:, None, None] < count[:, None]
    size = np.broadcast_to(count[:, None], u.shape[:2])
    return Batches(np.where(present, index, 0).transpose(2, 1, 0), size.T)


def epochs(n_samples: Ints, B: int, E: int, remainder: bool, u: Array) -> Batches:
    """Pass over all of a client's samples E times, each time in a new random order.

    `remainder`: whether to keep the last, smaller batch of an epoch; a client with fewer than B
    samples keeps its only batch. `u`, shape (slots, E, at least max n), is uniform: sorting the
    first n numbers of an epoch gives the order of the samples.
    """
    keep_last = remainder | (n_samples < B)
    steps = np.where(keep_last, -(-n_samples // B), n_samples // B)
    longest = int(steps.max())
    index = np.zeros((len(n_samples), E * longest, B), np.int64)
    size = np.zeros((len(n_samples), E * longest), np.int64)
    for slot, (n, n_steps) in enumerate(zip(n_samples, steps, strict=True)):
        used = min(n, n_steps * B)
        order = np.zeros((E, n_steps * B), np.int64)
        order[:, :used] = np.argsort(u[slot, :, :n], axis=1)[:, :used]
        index[slot, : E * n_steps] = order.reshape(E * n_steps, B)
        size[slot, : E * n_steps] = np.tile(np.minimum(B, used - B * np.arange(n_steps)), E)
    return Batches(index.swapaxes(0, 1), size.T)
