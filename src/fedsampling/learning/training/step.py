"""One local step of SGD of every copy of a network, with its loss and its dropout.

:mod:`.learner` determines the samples and runs the steps.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.network import Keep, Network, Parts, everything
from fedsampling.learning.models.products import multiply, subtract_product
from fedsampling.learning.training.local_work import LocalWork

LANES = 4  # dropout decisions from one hash
_rectifier_backward = torch.ops.aten.threshold_backward.grad_input


def sgd_step(
    network: Network,
    work: LocalWork,
    w: Tensor,
    start: Tensor,
    velocity: Tensor,
    step: Tensor,
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    keep: Keep,
) -> Tensor:
    """Take one SGD step of every copy, in place; return each copy's batch loss, shape [slots].

    `start` are the global models that training started from. `velocity`, the momentum, has shape
    [slots, 0] without it. `weight` is each sample's in its batch's mean, zero for padding.
    """
    parts = network.parts(w)
    if network.layers and work.plain:
        return dense_step(network.layers, parts, x, y, weight, step)
    # One leaf per parameter: with a flat leaf, autograd would copy the gradients together.
    leaves = {name: parts[name].detach().requires_grad_() for name in network.shapes}
    sizes = (weight > 0).sum(1).tolist() if network.separate else None
    # A user's module updates its buffers in place.
    z = network.apply({**parts, **leaves}, x, keep, sizes)
    loss = (sample_losses(network, z, y, keep, sizes) * weight).sum(1)
    gradients = _gradients(network, loss.sum(), leaves)
    if not work.plain:
        gradients = _directions(network, work, parts, start, velocity, gradients)
    for name, gradient in gradients.items():
        parts[name].addcmul_(gradient, _along(step, gradient), value=-1)
    return loss.detach()


def _gradients(network: Network, loss: Tensor, leaves: Parts) -> Parts:
    """Return the gradient of each parameter, except for those that a user's module did not use."""
    unused = network.module is not None
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=unused)
    pairs = zip(leaves, gradients, strict=True)
    return {name: gradient for name, gradient in pairs if gradient is not None}


def _directions(
    network: Network,
    work: LocalWork,
    parts: Parts,
    start: Tensor,
    velocity: Tensor,
    gradients: Parts,
) -> Parts:
    """Turn the loss' gradients into directions: FedProx, clipping, weight decay, momentum.

    Parameters without a gradient do not move, as in ``torch.optim.SGD``.
    """
    if work.prox:
        first = network.parts(start)
        gradients = {
            name: gradient + work.prox * (parts[name] - first[name])
            for name, gradient in gradients.items()
        }
    if work.clip is not None:
        squares = [gradient.flatten(1).square().sum(1) for gradient in gradients.values()]
        norm = torch.stack(squares).sum(0).sqrt()
        factor = (work.clip / norm.clamp(min=work.clip))[:, None]
        gradients = {name: g * _along(factor, g) for name, g in gradients.items()}
    if work.weight_decay:
        gradients = {name: g + work.weight_decay * parts[name] for name, g in gradients.items()}
    if work.momentum:
        moved = network.parts(velocity)
        gradients = {n: moved[n].mul_(work.momentum).add_(g) for n, g in gradients.items()}
    return gradients


def _along(values: Tensor, part: Tensor) -> Tensor:
    """Reshape values [slots, 1] to the number of axes of a parameter."""
    return values.view(-1, *[1] * (part.dim() - 1))


def sample_losses(
    network: Network,
    z: Tensor,
    y: Tensor,
    keep: Keep = everything,
    sizes: Sequence[int] | None = None,
) -> Tensor:
    """Return every sample's loss, [slots, B]; for sequences, the mean over the steps."""
    if network.criterion is not None:
        return network.criterion(z, y, keep, sizes)
    if network.loss == "squared":
        return 0.5 * (z.squeeze(-1) - y) ** 2
    losses = F.cross_entropy(z.movedim(-1, 1), y, reduction="none")  # contiguous along samples
    return losses.flatten(2).mean(2) if losses.dim() > 2 else losses


def dense_step(
    layers: Sequence[str], w: Parts, x: Tensor, y: Tensor, weight: Tensor, step: Tensor
) -> Tensor:
    """Take a step with explicit gradients, for networks of dense layers and rectifiers only.

    Automatic differentiation would write every gradient to memory and read it again for the update.
    Here the gradient of the cross entropy is multiplied directly into the weights, which saves much
    of a small network's time.  Outputs of layers are [slots, features, B]: then no factor of a
    product has to be transposed first, and operations on classes run along samples, of which there
    are more.

    `weight`: weight of each sample in its batch's mean; zero for padding. Returns each copy's batch
    loss before the step.
    """
    inputs = _layer_inputs(layers, w, x)
    log_p = torch.log_softmax(_affine(w, layers[-1], inputs[-1]), 1)
    true = y[:, None]
    loss = -(log_p.gather(1, true)[:, 0] * weight).sum(1)
    g = log_p.exp_().scatter_add_(1, true, log_p.new_full((), -1.0).expand(true.shape))
    g *= (weight * step)[:, None]
    for name in reversed(layers):
        h = inputs.pop()
        matrix = w[f"{name}.weight"]
        below = multiply(matrix.transpose(1, 2), g.transpose(1, 2)) if inputs else g
        if inputs:
            _rectifier_backward(below, h.transpose(1, 2), 0, grad_input=below)
        subtract_product(matrix, g, h)
        w[f"{name}.bias"].sub_(g.sum(2))
        g = below
    return loss


def dense_outputs(layers: Sequence[str], w: Parts, x: Tensor) -> Tensor:
    """Return the outputs [slots, B, classes] of such a network, with the products of its steps."""
    return _affine(w, layers[-1], _layer_inputs(layers, w, x)[-1]).transpose(1, 2)


def _layer_inputs(layers: Sequence[str], w: Parts, x: Tensor) -> list[Tensor]:
    inputs = [x.flatten(2)]
    for name in layers[:-1]:
        inputs.append(_affine(w, name, inputs[-1]).relu_().transpose(1, 2))
    return inputs


def _affine(w: Parts, name: str, h: Tensor) -> Tensor:
    # W h + b, [slots, outputs, B], of h [slots, B, inputs].
    return multiply(w[f"{name}.weight"], h).add_(w[f"{name}.bias"][..., None])


class Keeper:
    """The dropout of one local step; its masks depend only on their key.

    With a generator's sequence, a client's masks would depend on earlier computations and on the
    device.  Here 64 bits are hashed from (key of the slot, step, layer, position) and split into
    four decisions of 16 bits each, which are the same for every stacking, order and device.

    ``keep(h, rate)`` sets each element of h [slots, ...] to zero with probability `rate`, rounded
    to 16 bits, and scales the others to preserve the expectation.  Layers are distinguished by the
    order of their calls.

    `keys`, shape (slots,): hash of seed, round, client and occurrence. `step`, shape (): number of
    the local step.
    """

    def __init__(self, keys: Tensor, step: Tensor) -> None:
        self._keys, self._step, self._layers = keys, step, 0

    def __call__(self, h: Tensor, rate: float) -> Tensor:
        """Drop elements of h [slots, ...] with probability `rate`."""
        self._layers += 1
        drop = round(rate * 2**16)
        count = prod(h.shape[1:])
        word = torch.arange(-(-count // LANES), device=h.device)
        stream = mix(self._keys + (self._step * 64 + self._layers) * _GAMMA)
        lanes = mix(stream[:, None] + word * _GAMMA).view(torch.int16)[:, :count]
        mask = (lanes >= drop - 2**15).view(h.shape)
        return h * (mask.to(h.dtype) * (2**16 / (2**16 - drop)))

    def seeds(self, purpose: int) -> Tensor:
        """Return a seed for each slot's generator, in users' modules (0) and losses (1)."""
        return mix(mix(self._keys + self._step * 64 * _GAMMA) + purpose * _GAMMA) & (2**63 - 1)


def mix(z: Tensor) -> Tensor:
    """Scramble 64-bit integers, so that consecutive integers become independent: SplitMix64.

    References: Steele, Lea, Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    z = (z ^ _logical_shift(z, 30)) * _FIRST
    z = (z ^ _logical_shift(z, 27)) * _SECOND
    return z ^ _logical_shift(z, 31)


def _logical_shift(z: Tensor, bits: int) -> Tensor:
    # PyTorch has signed integers only, whose right shift copies the sign.
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _wrapped(word: int) -> int:
    """Return the signed 64-bit integer with these low bits."""
    return (word + 2**63) % 2**64 - 2**63


_GAMMA = _wrapped(0x9E3779B97F4A7C15)
_FIRST = _wrapped(0xBF58476D1CE4E5B9)
_SECOND = _wrapped(0x94D049BB133111EB)


# The pooled samples of all clients, and their conversion to a network's inputs.


def tensor_of(array: NDArray[Any]) -> Tensor:
    """Return a tensor with the memory of an array of the data, which nothing may change."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


Inputs = Literal["unit", "centred", "raw", "tokens"]


@dataclass
class Samples:
    """All clients' training samples on a device."""

    data: FederatedDataset
    inputs: Inputs  # conversion of stored samples: x/255, (x/255 − 1/2)/(1/2), x, or integers
    device: str  # pyTorch's name
    x: Tensor = field(init=False)
    y: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.x = tensor_of(self.data.x).to(self.device)
        self.y = tensor_of(self.data.y).to(self.device)
        if self.y.is_floating_point():
            self.y = self.y.float()

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of pooled rows [slots, B]."""
        flat = rows.flatten()
        x = self.x.index_select(0, flat).view(*rows.shape, *self.x.shape[1:])
        y = self.y.index_select(0, flat).view(*rows.shape, *self.y.shape[1:])
        return self.convert(x), y

    def convert(self, x: Tensor) -> Tensor:
        """Convert stored samples to the network's inputs."""
        if self.inputs == "tokens":
            return x.long()
        if self.inputs == "raw":
            return x.float()
        unit = x.to(torch.float32, copy=True).div_(255)
        return unit if self.inputs == "unit" else unit.sub_(0.5).div_(0.5)
