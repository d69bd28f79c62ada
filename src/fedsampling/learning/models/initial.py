"""Parameters of a network, and the distributions from which they are first drawn.

They are initialised as in PyTorch (``torch_*``) or as in Keras and TensorFlow (``keras_*``),
depending on the paper's code.

References
----------
Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.
He et al., Delving deep into rectifiers, 2015.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod, sqrt

import numpy as np

from fedsampling.base.arrays import Array

Law = Callable[[np.random.Generator, tuple[int, ...]], Array]


@dataclass(frozen=True)
class Parameter:
    """One array of a copy: its shape, and ``law(rng, shape)``, its initial distribution."""

    shape: tuple[int, ...]
    law: Law


Parameters = Mapping[str, Parameter]


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
