"""A stacked network: one function for many independent copies of the same architecture.

Every parameter has a leading axis of *slots* (the local training of one client in one run), so that
all clients of a round and all seeds of a job are one batched computation.  A copy's parameters are
one row of a flat matrix ``theta`` [slots, d], on which the server's arithmetic, norms, similarities
and gradient steps operate.

Each architecture in this package is a mapping from names to :class:`Parameter` and functions of
these, which :func:`network` turns into a :class:`Network`.  Parameters are initialised as in
PyTorch (``torch_*``) or as in Keras and TensorFlow (``keras_*``), depending on the paper's code.
All arrays have PyTorch's layout.

References
----------
Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
He et al., Delving deep into rectifiers, 2015.
"""

import ctypes
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsampling.base import memory
from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, described

Parts = Mapping[str, Tensor]
Keep = Callable[[Tensor, float], Tensor]
Law = Callable[[np.random.Generator, tuple[int, ...]], Array]


def everything(h: Tensor, rate: float) -> Tensor:
    """Drop nothing: the `keep` of an evaluation."""
    return h


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

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Report an error in a user's module or loss, also of its gradient, in one line."""
        try:
            yield
        except Exception as error:
            if self.module is None and self.criterion is None:
                raise
            raise blamed("loss" if self.module is None else f"model: {self.name}", error) from error

    def verify(self) -> None:
        """Raise InputError if a user's module or loss has changed during training."""
        for guest in (self.module, self.criterion):
            if guest is not None:
                guest.verify()

    @property
    def biases(self) -> int:
        """Length of the output layer's bias, the last part of the flat vector; 0 without one."""
        name, shape = [*self.shapes.items()][-1]
        return shape[0] if name.rpartition(".")[2] == "bias" and len(shape) == 1 else 0

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

    def apply(self, w: Parts, x: Tensor, keep: Keep, sizes: Sequence[int] | None) -> Tensor:
        """Apply every copy, as :meth:`outputs`, to its parameters by name."""
        if x.is_cuda:
            w = {name: w[name] if name in self.buffers else aligned(w[name]) for name in w}
        if self.module is not None:
            return self.module(w, x, keep, sizes)
        return self.head(w, self.body(w, x, keep))


def aligned(part: Tensor) -> Tensor:
    """Return a parameter [slots, ...] whose slots begin at multiples of 16 bytes.

    Some of cuDNN's kernels need this, and the parameters in flat vectors rarely have it.
    """
    if part.data_ptr() % 16 == 0 and part.stride(0) * part.itemsize % 16 == 0:
        return part
    size = prod(part.shape[1:])
    return functional.pad(part.flatten(1), (0, -size % 4))[:, :size].view(part.shape)


def blamed(place: str, error: BaseException) -> InputError:
    """Return the line for an error of users' code."""
    try:
        with memory.in_a_line():
            raise error
    except InputError as line:
        return line
    except BaseException:
        return InputError(f"{place}: {described(error)}")


@contextmanager
def blaming(place: str) -> Iterator[None]:
    """Report an error of users' code, which may raise anything, in one line."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        raise blamed(place, error) from error


@dataclass(frozen=True)
class Parameter:
    """One array of a copy: its shape, and ``law(rng, shape)``, its initial distribution."""

    shape: tuple[int, ...]
    law: Law


Parameters = Mapping[str, Parameter]


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


def torch_layer(name: str, *shape: int) -> dict[str, Parameter]:
    """Weight and bias of a dense or convolutional layer, both from U(±1/√fan-in).

    `*shape`: outputs, inputs, then the kernel's height and width if it has one.
    """
    law = uniform(1 / sqrt(prod(shape[1:])))
    return {f"{name}.weight": Parameter(shape, law), f"{name}.bias": Parameter(shape[:1], law)}


def keras_layer(name: str, *shape: int) -> dict[str, Parameter]:
    """Weight of a dense or convolutional layer, Glorot's uniform distribution; zero bias."""
    outputs, inputs, *kernel = shape
    law = glorot(inputs * prod(kernel), outputs * prod(kernel))
    return {f"{name}.weight": Parameter(shape, law), f"{name}.bias": Parameter((outputs,), zero)}


def uniform(bound: float) -> Law:
    """Return the uniform distribution on ±`bound`."""
    return lambda rng, shape: rng.uniform(-bound, bound, shape)


def glorot(fan_in: int, fan_out: int) -> Law:
    """Return Glorot's uniform distribution, on ±√(6/(fan-in + fan-out))."""
    return uniform(sqrt(6 / (fan_in + fan_out)))


def normal(deviation: float) -> Law:
    """Return the normal distribution with mean zero."""
    return lambda rng, shape: rng.normal(0, deviation, shape)


def he(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw a kernel from He's normal distribution by fan-out, as torchvision's ResNets do."""
    return normal(sqrt(2 / (shape[0] * prod(shape[2:]))))(rng, shape)


def orthogonal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw a tall matrix with orthonormal columns from the uniform (Haar) distribution."""
    q, r = np.linalg.qr(rng.normal(size=shape))
    return np.asarray(q * np.sign(np.diag(r)))


def zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return zeros."""
    return np.zeros(shape)


def one(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return factors of 1."""
    return np.ones(shape)


# Cost of training a network before it runs, in operations and bytes; and reuse of freed memory.
#
# These functions consider one local step of one slot; planning and benchmarks multiply by slots,
# batches and rounds.


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
_NEVER = 2**31 - 1


@dataclass(frozen=True)
class Operations:
    """Floating-point operations of one slot's batch, in products and convolutions only.

    An addition and a multiplication count as two; `step` includes the gradient.
    """

    forward: int
    step: int


def operations(network: Network, sample: tuple[int, ...], batch: int) -> Operations:
    """Count the operations of a batch, where possible on a device without data."""
    from torch.utils.flop_counter import FlopCounterMode  # the import takes a second

    theta, x = blank(network, sample, batch, "meta" if network.module is None else "cpu")
    with torch.no_grad(), FlopCounterMode(display=False) as outputs:
        network.outputs(theta, x)
    with FlopCounterMode(display=False) as step:
        z = network.outputs(theta, x)
        torch.autograd.grad(z, theta, torch.empty_like(z))
    return Operations(outputs.get_total_flops(), step.get_total_flops())


def step_bytes(network: Network, sample: tuple[int, ...], batch: int) -> int:
    """Estimate the peak memory of one slot's step, without its model and batch.

    Arrays for the backward pass are kept until the outputs are computed; they are counted in a
    forward pass on the CPU. The backward pass adds the gradients of the largest of these arrays and
    of the parameters, and as much again for temporary arrays.
    """
    theta, x = blank(network, sample, batch, "cpu")
    saved_bytes: dict[int, int] = {}

    def record(array: Tensor) -> Tensor:
        storage = array.untyped_storage()
        saved_bytes[storage.data_ptr()] = storage.nbytes()
        return array

    with torch.autograd.graph.saved_tensors_hooks(record, lambda array: array):
        outputs = network.outputs(theta, x)
    for tensor in (theta, x):
        saved_bytes.pop(tensor.untyped_storage().data_ptr(), None)
    largest = max(saved_bytes.values(), default=0)
    return sum(saved_bytes.values()) + largest + outputs.nbytes + 2 * theta.nbytes


def keep_memory() -> bool:
    """Let this process reuse the memory that it frees.

    Every step of stacked training creates and frees arrays of many megabytes.  By default the C
    library returns each to the system, which clears it page by page before handing it out again.
    For large networks this takes longer than the arithmetic (see ``benchmarks/recurrent.py``).

    Returns whether the C library supports this (glibc); otherwise nothing changes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _NEVER)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER))


@contextmanager
def precise(device: str) -> Iterator[None]:
    """On a GPU, convolve in single precision, with the same result in each run.

    By default, PyTorch rounds the inputs of convolutions to ten bits (TF32), and its kernels may
    add in another order in each run.
    """
    if device == "cpu":
        yield
    else:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield


def blank(
    network: Network, sample: tuple[int, ...], batch: int, device: str
) -> tuple[Tensor, Tensor]:
    """Return one slot's parameters [1, size], with gradients, and a batch of zeros."""
    theta = torch.zeros(1, network.dimension, device=device, requires_grad=True)
    if network.module is not None:  # which may have no outputs at zero
        theta = torch.from_numpy(network.initial(np.random.default_rng(0)))[None].requires_grad_()
    symbols = any(name.startswith("embedding") for name in network.shapes)
    kind = torch.int64 if symbols else None
    return theta, torch.zeros(1, batch, *sample, device=device, dtype=kind)


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


def trial_samples(sample: tuple[int, ...], symbols: bool) -> Tensor:
    """Draw samples for trials: numbers in [0, 1), or the symbols 0 and 1."""
    numbers = np.random.default_rng(0).random((ROWS, *sample))
    drawn = torch.from_numpy(numbers.round() if symbols else numbers)
    return drawn.long() if symbols else drawn.float()
