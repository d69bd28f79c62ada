"""A stacked network: one function for many independent copies of the same architecture.

Every parameter has a leading axis of *slots* (the local training of one client in one run), so that
all clients of a round and all seeds of a job are one batched computation.  A copy's parameters are
one row of a flat matrix ``theta`` [slots, d], on which the server's arithmetic, norms, similarities
and gradient steps operate.

Each architecture in this package is a mapping from names to :class:`.initial.Parameter` and
functions of these, which :func:`network` turns into a :class:`Network`.  All arrays have PyTorch's
layout.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsampling.base.arrays import Array
from fedsampling.learning.models.devices import at_once
from fedsampling.learning.models.dropout import Keep, everything
from fedsampling.learning.models.guests import Guest, blaming
from fedsampling.learning.models.initial import Parameters

Parts = Mapping[str, Tensor]


@dataclass(frozen=True)
class Network:
    """An architecture, as functions of its parameters."""

    name: str
    # shape of each parameter in one copy, in the order of the flat vector
    shapes: Mapping[str, tuple[int, ...]]
    # ``draw(rng) -> {name: float array}``: the initial parameters of one copy
    draw: Callable[[np.random.Generator], Mapping[str, Array]]
    # ``body(w, x, keep) -> h``: from inputs x [slots, batch, ...] to the last layer's inputs
    # [slots, batch, ..., features], with parameters ``w[name]`` [slots, *shape].  ``keep(h, rate)``
    # is dropout in training, and the identity in evaluation
    body: Callable[[Parts, Tensor, Keep], Tensor]
    # ``head(w, h) -> z``: the last layer, to [slots, batch, ..., classes]
    head: Callable[[Parts, Tensor], Tensor]
    # of z and the targets: cross entropy, or half the squared error of one output
    loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    # names of the dense layers, from inputs to outputs, if the network consists only of these with
    # rectifiers in between, and the loss is cross entropy; otherwise empty
    layers: tuple[str, ...] = ()
    criterion: Guest | None = None  # replaces `loss`
    module: Guest | None = None  # replaces `body` and `head`
    # shape of each buffer of `module` that training changes.  Buffers follow the parameters in a
    # copy's vector
    buffers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # whether the last parameter, if it is a bias, is the output layer's
    ends_in_bias: bool = True

    @property
    def dimension(self) -> int:
        """Number of parameters d of one copy."""
        return sum(map(prod, self.shapes.values()))

    @property
    def size(self) -> int:
        """Length of one copy's vector: its parameters and buffers."""
        return self.dimension + sum(map(prod, self.buffers.values()))

    @property
    def separate(self) -> bool:
        """Whether a user's module or loss needs each slot's samples without padding."""
        return any(guest is not None and guest.separate for guest in (self.module, self.criterion))

    def blaming(self) -> AbstractContextManager[None]:
        """Report an error in a user's module or loss, also of its gradient, in one line."""
        if self.module is None and self.criterion is None:
            return nullcontext()
        return blaming("loss" if self.module is None else f"model: {self.name}")

    @property
    def takes_symbols(self) -> bool:
        """Whether inputs are symbols, which an embedding takes, in place of numbers."""
        return any(name.startswith("embedding") for name in self.shapes)

    def verify(self) -> None:
        """Raise InputError if a user's module or loss has changed during training."""
        for guest in (self.module, self.criterion):
            if guest is not None:
                guest.verify()

    @property
    def biases(self) -> int:
        """Length of the output layer's bias, the last part of the flat vector; 0 without one."""
        name, shape = [*self.shapes.items()][-1]
        is_bias = name.rpartition(".")[2] == "bias" and len(shape) == 1 and self.ends_in_bias
        return shape[0] if is_bias else 0

    def initial(self, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw one copy's parameters and buffers, shape (size,)."""
        drawn = self.draw(rng)
        names = (*self.shapes, *self.buffers)
        return np.concatenate([drawn[name].ravel() for name in names]).astype(np.float32)

    def parts(self, theta: Tensor) -> Parts:
        """Return views of the flat vectors, shape (slots, size), by name, shape (slots, *shape)."""
        shapes = {**self.shapes, **self.buffers}
        pieces = torch.split(theta, [prod(shape) for shape in shapes.values()], dim=1)
        return {
            name: piece.view(len(theta), *shape)
            for (name, shape), piece in zip(shapes.items(), pieces, strict=True)
        }

    def outputs(
        self, theta: Tensor, x: Tensor, keep: Keep = everything, sizes: Sequence[int] | None = None
    ) -> Tensor:
        """Apply every copy to its own batch: [slots, batch, ..., classes]."""
        return self.apply(self.parts(theta), x, keep, sizes)

    def aligned(self, w: Parts) -> Parts:
        """Return the parameters, on a GPU aligned in memory; buffers as they are."""
        if not any(at_once(part.device) for part in w.values()):
            return w
        return {name: part if name in self.buffers else aligned(part) for name, part in w.items()}

    def apply(self, w: Parts, x: Tensor, keep: Keep, sizes: Sequence[int] | None) -> Tensor:
        """Apply every copy, as :meth:`outputs`, to its parameters by name."""
        w = self.aligned(w)
        if self.module is not None:
            return self.module(w, x, keep, sizes)
        return self.head(w, self.body(w, x, keep))


def aligned(part: Tensor) -> Tensor:
    """Return a parameter [slots, ...] whose slots begin at multiples of 16 bytes.

    A GPU multiplies faster with it, and some of cuDNN's kernels need it; the parameters in flat
    vectors rarely have it.
    """
    if part.data_ptr() % 16 == 0 and part.stride(0) * part.itemsize % 16 == 0:
        return part
    size = prod(part.shape[1:])
    return functional.pad(part.flatten(1), (0, -size % 4))[:, :size].view(part.shape)


def network(
    name: str,
    parameters: Parameters,
    body: Callable[[Parts, Tensor, Keep], Tensor],
    head: Callable[[Parts, Tensor], Tensor],
    loss: Literal["cross_entropy", "squared"] = "cross_entropy",
    layers: tuple[str, ...] = (),
) -> Network:
    """Create a network from its parameters and functions."""
    shapes = {key: parameter.shape for key, parameter in parameters.items()}

    def draw(rng: np.random.Generator) -> dict[str, Array]:
        return {key: parameter.law(rng, parameter.shape) for key, parameter in parameters.items()}

    return Network(name, shapes, draw, body, head, loss, layers)
