"""How users' modules, losses and metrics are isolated, and their errors reported in a line."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from fedsampling.base import memory
from fedsampling.base.errors import InputError, described
from fedsampling.learning.models.dropout import Keep


class Guest(Protocol):
    """A user's module or loss, for all slots; :mod:`.own` keeps its effects to the call.

    Called with ``(w, x, keep, sizes)`` or ``(z, y, keep, sizes)``.  Only the first ``sizes[k]``
    samples of slot k are its own, the others are padding; None: all of them are.
    """

    separate: bool  # each slot is computed alone, on its own samples

    def __call__(
        self, first: Any, second: Tensor, keep: Keep, sizes: Sequence[int] | None, /
    ) -> Tensor:
        """Return the outputs [slots, batch, ..., classes], or the losses [slots, batch]."""

    def verify(self) -> None:
        """Raise InputError if it has changed since it was tried."""


@contextmanager
def blaming(place: str) -> Iterator[None]:
    """Report an error of users' code, which may raise anything, in one line."""
    try:
        yield
    except (InputError, torch.OutOfMemoryError):  # a GPU's memory may suffice for fewer slots
        raise
    except (Exception, SystemExit) as error:
        raise memory.exhausted(error) or InputError(f"{place}: {described(error)}") from error


ROWS = 4  # samples in the test of a module; of two, BatchNorm returns ±1 whatever they are


@contextmanager
def keyed(place: str, device: torch.device) -> Iterator[list[bool]]:
    """Key PyTorch's generator in the body, yield whether it was used; refuse other generators."""
    legacy, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    with seedable(device) as seed:
        seed(0)
        before = torch.default_generator.get_state()
        drew: list[bool] = []
        yield drew
        drew.append(not torch.equal(before, torch.default_generator.get_state()))
    after = np.random.get_state()  # noqa: NPY002
    same = all(np.array_equal(*pair) for pair in zip(legacy, after, strict=True))
    if not same or random.getstate() != python:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(python)
        raise InputError(
            f"{place}: draws from the global generator of NumPy or Python, which no seed of a run "
            "determines; use PyTorch's"
        )


@contextmanager
def seedable(device: torch.device) -> Iterator[Callable[[int], None]]:
    """Yield a function that seeds PyTorch's generators, and restore them at the end."""
    generators = [torch.default_generator]
    if device.type == "cuda":
        generators.append(torch.cuda.default_generators[device.index or 0])
    states = [generator.get_state() for generator in generators]

    def seed(value: int) -> None:
        for generator in generators:
            generator.manual_seed(value)

    try:
        yield seed
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def slot_seeds(keep: Keep, purpose: int, slots: int) -> list[int] | None:
    """Return the seed of each slot in a local step; None in an evaluation."""
    seeds: Callable[[int], Tensor] | None = getattr(keep, "seeds", None)
    return None if seeds is None else seeds(purpose).tolist()


def padded(rows: Tensor, n: int) -> Tensor:
    """Append zeros up to `n` rows."""
    if len(rows) == n:
        return rows
    return torch.cat([rows, rows.new_zeros(n - len(rows), *rows.shape[1:])])


def equal(first: Tensor, second: Tensor) -> bool:
    """Whether tensors are equal up to the rounding of a kernel that sums in another order."""
    if first.shape != second.shape:
        return False
    if not first.is_floating_point():
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=1e-6, atol=1e-7, equal_nan=True)


def mixes(before: Tensor, *samples: Tensor, apply: Callable[..., Tensor]) -> bool:
    """Whether a sample's results depend on the other samples of its batch, or on their number.

    `before` are the results of all samples.  Copies of a sample replace all others, as padding
    would: a permutation changes no mean, variance or count.
    """
    for k in range(len(before)):
        copies = apply(*(part[k : k + 1].expand_as(part).clone() for part in samples))
        if not torch.equal(copies[k], before[k]):
            return True
    # Kernels for other numbers of rows round differently.
    fewer = apply(*(part[: len(part) // 2] for part in samples))
    return not torch.allclose(fewer, before[: len(fewer)], rtol=1e-3, atol=1e-4, equal_nan=True)


def trial_samples(sample: tuple[int, ...], symbols: bool) -> Tensor:
    """Draw samples for trials: numbers in [0, 1), or the symbols 0 and 1."""
    numbers = np.random.default_rng(0).random((ROWS, *sample))
    drawn = torch.from_numpy(numbers.round() if symbols else numbers)
    return drawn.long() if symbols else drawn.float()
