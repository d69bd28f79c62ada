"""Layers over slots: each slot's inputs are combined with that slot's parameters.

These pure functions are the building blocks of the architectures.  A slot's result is the same to
the last bit, whichever slots are stacked with it.
"""

from collections.abc import Callable
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

from fedsampling.base.errors import InputError
from fedsampling.learning.model import LinearRegression, Mlp, Softmax
from fedsampling.learning.models.network import (
    Keep,
    Network,
    Parameter,
    Parts,
    network,
    torch_layer,
    zero,
)
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

    The slots are computed one after another, which on a CPU is twice as fast as a grouped
    convolution and keeps the pooling's input in the cache. It is fastest with contiguous channels.
    """
    weight, bias = w[f"{name}.weight"], w.get(f"{name}.bias")

    def convolve(x: Tensor, kernel: Tensor, b: Tensor | None) -> Tensor:
        z = functional.conv2d(x, kernel, b, stride, padding)
        return functional.max_pool2d(z, pool) if pool > 1 else z

    biases = [None] * len(h) if bias is None else bias.unbind()
    slots = zip(h.unbind(), weight.unbind(), biases, strict=True)
    return stacked([convolve(_channels_last(x), kernel, b) for x, kernel, b in slots])


def stacked(parts: list[Tensor]) -> Tensor:
    """Stack slots; a single slot is not copied."""
    return torch.stack(parts) if len(parts) > 1 else parts[0][None]


def slot_by_slot(f: Callable[[Parts, Tensor], Tensor]) -> Callable[[Parts, Tensor], Tensor]:
    """Apply several layers to one slot after another.

    Intermediate results of a slot then stay in the cache.

    `f`: ``f(w, x)``, for parameters and inputs of any number of slots.
    """

    def run(w: Parts, x: Tensor) -> Tensor:
        if len(x) == 1:
            return f(w, x)
        pieces = {name: torch.split(weight, 1) for name, weight in w.items()}
        by_slot = [{name: piece[s] for name, piece in pieces.items()} for s in range(len(x))]
        return torch.cat([f(w_s, x_s) for w_s, x_s in zip(by_slot, torch.split(x, 1), strict=True)])

    return run


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


def _channels_last(x: Tensor) -> Tensor:
    # Changes the memory layout only; pooling is ten times as fast with it.
    return x.contiguous(memory_format=torch.channels_last)


# Networks of dense layers only.


def linear(record: LinearRegression, sample: tuple[int, ...], classes: int | None) -> Network:
    """Linear regression without intercept: z = xᵀw, loss (z − y)²/2, from w = 0.

    References: harshvardhan2025latency, section 3.
    """
    if classes is not None:
        raise InputError(
            "model.name: linear predicts numbers, but the dataset has labels; use softmax"
        )
    parameters = {"head.weight": Parameter((1, prod(sample)), zero)}

    def head(w: Parts, h: Tensor) -> Tensor:
        return product(h, w["head.weight"])

    return network("linear", parameters, _flat, head, loss="squared")


def softmax(record: Softmax, sample: tuple[int, ...], classes: int | None) -> Network:
    """Multinomial logistic regression with intercepts, initially zero."""
    outputs = labels("softmax", classes)
    parameters = {
        "head.weight": Parameter((outputs, prod(sample)), zero),
        "head.bias": Parameter((outputs,), zero),
    }
    return network("softmax", parameters, _flat, lambda w, h: dense(w, "head", h), layers=("head",))


def mlp(record: Mlp, sample: tuple[int, ...], classes: int | None) -> Network:
    """One hidden layer of rectified units, initialised as by PyTorch.

    References: fraboni2021clustered, section 5 (MNIST; 784-50-10 in the authors' code).
    """
    parameters = {
        **torch_layer("hidden", record.hidden, prod(sample)),
        **torch_layer("head", labels("mlp", classes), record.hidden),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        return torch.relu(dense(w, "hidden", x.flatten(2)))

    return network(
        "mlp", parameters, body, lambda w, h: dense(w, "head", h), layers=("hidden", "head")
    )


def _flat(w: Parts, x: Tensor, keep: Keep) -> Tensor:
    return x.flatten(2)
