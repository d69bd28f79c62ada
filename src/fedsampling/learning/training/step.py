"""One local step of SGD of every copy of a network, with its loss and its dropout.

:mod:`.stacks` gathers the samples and runs the steps.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fedsampling.learning.models.dropout import Keep, everything
from fedsampling.learning.models.network import Network, Parts
from fedsampling.learning.models.products import multiply, subtract_product
from fedsampling.learning.training.local_work import LocalWork

_rectifier_backward = torch.ops.aten.threshold_backward.grad_input


class Copies(NamedTuple):
    """The copies of a network that train together, one for each slot."""

    w: Tensor  # shape [slots, size]: the models
    start: Tensor  # shape [slots, size]: the global models that training started from
    velocity: Tensor  # shape [slots, size]: the momentum; [slots, 0] without it
    step: Tensor  # shape [slots, 1]: the learning rates

    def first(self, n: int) -> "Copies":
        """Return the first `n` copies, which share these copies' memory."""
        return Copies(self.w[:n], self.start[:n], self.velocity[:n], self.step[:n])


class Batch(NamedTuple):
    """A mini-batch of B samples for each slot."""

    x: Tensor  # shape [slots, B, ...]
    y: Tensor  # shape [slots, B] or, for sequences, [slots, B, steps]
    weight: Tensor  # shape [slots, B]: of each sample in its batch's mean; zero for padding
    keep: Keep  # dropout


def sgd_step(network: Network, work: LocalWork, copies: Copies, batch: Batch) -> Tensor:
    """Take one SGD step of every copy, in place; return each copy's batch loss, shape [slots]."""
    x, y, weight, keep = batch
    parts = network.parts(copies.w)
    if network.layers and work.plain:
        return dense_step(network.layers, parts, x, y, weight, copies.step)
    # One leaf per parameter: with a flat leaf, autograd would copy the gradients together.
    aligned = network.aligned(parts)
    leaves = {name: aligned[name].detach().requires_grad_() for name in network.shapes}
    sizes = (weight > 0).sum(1).tolist() if network.separate else None
    # A user's module updates its buffers in place.
    z = network.apply({**parts, **leaves}, x, keep, sizes)
    loss = (sample_losses(network, z, y, keep, sizes) * weight).sum(1)
    gradients = _gradients(network, loss.sum(), leaves)
    if not work.plain:
        gradients = _directions(network, work, parts, copies, gradients)
    for name, gradient in gradients.items():
        parts[name].addcmul_(gradient, _along(copies.step, gradient), value=-1)
    return loss.detach()


def _gradients(network: Network, loss: Tensor, leaves: Parts) -> Parts:
    """Return the gradient of each parameter, except for those that a user's module did not use."""
    unused = network.module is not None
    gradients = torch.autograd.grad(loss, list(leaves.values()), allow_unused=unused)
    pairs = zip(leaves, gradients, strict=True)
    return {name: gradient for name, gradient in pairs if gradient is not None}


def _directions(
    network: Network, work: LocalWork, parts: Parts, copies: Copies, gradients: Parts
) -> Parts:
    """Turn the loss' gradients into directions: FedProx, clipping, weight decay, momentum.

    Parameters without a gradient do not move, as in ``torch.optim.SGD``.
    """
    if work.prox:
        first = network.parts(copies.start)
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
        moved = network.parts(copies.velocity)
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
