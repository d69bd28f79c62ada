"""Dense and convolutional layers over slots.

Each slot's inputs are combined with that slot's parameters.  A slot's result is the same to the
last bit, whichever slots are stacked with it.

Images have shape [slots, batch, height, width], or have the channels last.  Internally channels
come before height and width, as in PyTorch, which determines the order of the first dense layer's
inputs.
"""

import torch
from torch import Tensor
from torch.nn import functional

from fedsampling.base.errors import InputError
from fedsampling.learning.models import batched
from fedsampling.learning.models.devices import at_once
from fedsampling.learning.models.network import Parts
from fedsampling.learning.models.products import product


def dense(w: Parts, name: str, h: Tensor) -> Tensor:
    """Apply a dense layer to h (slots, ..., inputs): h Wᵀ + b."""
    rows = h.reshape(len(h), -1, h.shape[-1])
    z = product(rows, w[f"{name}.weight"]) + w[f"{name}.bias"][:, None]
    return z.view(*h.shape[:-1], z.shape[-1])


def convolution(
    w: Parts, name: str, h: Tensor, padding: int = 0, stride: int = 1, pool: int = 1
) -> Tensor:
    """Convolve h (slots, batch, inputs, height, width), then pool `pool` × `pool` squares.

    On a CPU, the slots are computed one after another, which is twice as fast as a grouped
    convolution and keeps the pooling's input in the cache. It is fastest with contiguous channels.
    """
    weight, bias = w[f"{name}.weight"], w.get(f"{name}.bias")
    if at_once(h.device):
        return batched.convolution(h, weight, bias, padding, stride, pool)

    def convolve(x: Tensor, kernel: Tensor, b: Tensor | None) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)  # pooling is ten times as fast
        z = functional.conv2d(x, kernel, b, stride, padding)
        return functional.max_pool2d(z, pool) if pool > 1 else z

    biases = [None] * len(h) if bias is None else bias.unbind()
    slots = zip(h.unbind(), weight.unbind(), biases, strict=True)
    return stacked([convolve(*slot) for slot in slots])


def normalised(w: Parts, name: str, h: Tensor, groups: int | None) -> Tensor:
    """Normalise h by its channels' statistics in each slot's batch, or by those of `groups`."""
    weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
    if at_once(h.device):
        if groups is None:
            return batched.batch_norm(h, weight, bias)
        return batched.group_norm(h, groups, weight, bias)

    def normalise(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        if groups is None:
            return functional.batch_norm(x, None, None, scale, shift, training=True)
        return functional.group_norm(x, groups, scale, shift)

    slots = zip(h.unbind(), weight.unbind(), bias.unbind(), strict=True)
    return stacked([normalise(*slot) for slot in slots])


def stacked(parts: list[Tensor]) -> Tensor:
    """Stack slots; a single slot is not copied."""
    return torch.stack(parts) if len(parts) > 1 else parts[0][None]


def labels(name: str, classes: int | None) -> int:
    """Return the number of classes."""
    if classes is None:
        raise InputError(
            f"model.name: {name} predicts labels, but the dataset has none; use linear"
        )
    return classes


def image(name: str, sample: tuple[int, ...], min_side: int) -> tuple[int, int, int]:
    """Return channels, height and width of an image."""
    if len(sample) not in (2, 3) or min(sample[:2]) < min_side:
        raise InputError(
            f"model.name: {name} requires images of at least {min_side} × {min_side} pixels, but "
            f"the dataset's samples have shape {sample}; use another model or dataset"
        )
    return sample[2] if len(sample) == 3 else 1, sample[0], sample[1]


def channels_first(x: Tensor) -> Tensor:
    """View images [slots, batch, H, W] or [..., H, W, C] as [slots, batch, C, H, W]."""
    return (x[..., None] if x.dim() == 4 else x).movedim(-1, 2)
