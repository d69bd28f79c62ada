"""Convolution, pooling and normalisation of all slots in one launch, for a GPU.

On a CPU, :mod:`.layers` computes one slot after another.  Both ways give the same results up to
rounding.  Images [slots, batch, channels, height, width] have their channels last in memory, so
that windows are copied in long pieces.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


def convolution(
    h: Tensor, weight: Tensor, bias: Tensor | None, padding: int, stride: int, pool: int
) -> Tensor:
    """Convolve each slot's images with its kernels; pool `pool` × `pool` squares."""
    z: Tensor = _Convolution.apply(h, weight, padding, stride)  # type: ignore[no-untyped-call]
    if pool > 1:
        pooled = functional.max_pool2d(z.flatten(0, 1), pool)
        z = pooled.view(*z.shape[:2], *pooled.shape[1:])
    return z if bias is None else z + bias[:, None, :, None, None]  # fewer sums than before pooling


def batch_norm(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise each slot's channels by their mean and variance over the slot's batch."""
    x = h.permute(1, 3, 4, 0, 2).flatten(3).movedim(3, 1)  # slots and channels are one axis
    z = functional.batch_norm(x, None, None, weight.flatten(), bias.flatten(), training=True)
    by_slot = z.movedim(1, -1).reshape(len(z), *z.shape[2:], len(h), -1)
    return by_slot.permute(3, 0, 4, 1, 2)


def group_norm(h: Tensor, groups: int, weight: Tensor, bias: Tensor) -> Tensor:
    """Normalise groups of each sample's channels."""
    z = functional.group_norm(h.flatten(0, 1), groups).view(h.shape)
    return torch.addcmul(bias[:, None, :, None, None], z, weight[:, None, :, None, None])


class _Convolution(torch.autograd.Function):
    """One product of all slots' windows; they are copied again for the gradient, not kept."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, weight: Tensor, padding: int, stride: int) -> Tensor:
        ctx.save_for_backward(h, weight)
        ctx.padding, ctx.stride = padding, stride
        sides = [
            (side + 2 * padding - size) // stride + 1
            for side, size in zip(h.shape[3:], weight.shape[3:], strict=True)
        ]
        z = torch.bmm(_windows(h, weight, padding, stride), _rows(weight).transpose(1, 2))
        return z.view(*h.shape[:2], *sides, -1).movedim(-1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        h, weight = ctx.saved_tensors
        _, outputs, channels, *size = weight.shape
        rows = g.movedim(2, -1).reshape(len(g), -1, outputs)
        by_rows = torch.bmm(rows.transpose(1, 2), _windows(h, weight, ctx.padding, ctx.stride))
        by_weight = by_rows.view(len(g), outputs, *size, channels).movedim(-1, 2)
        by_h = None
        if ctx.needs_input_grad[0]:
            windows = torch.bmm(rows, _rows(weight))
            windows = windows.view(*g.shape[:2], *g.shape[3:], *size, channels)
            by_h = _sum_of_windows(windows, h.shape, ctx.padding, ctx.stride)
        return by_h, by_weight, None, None


def _rows(weight: Tensor) -> Tensor:
    # [slots, outputs, channels, height, width] to [slots, outputs, height · width · channels].
    return weight.movedim(2, -1).flatten(2)


def _windows(h: Tensor, weight: Tensor, padding: int, stride: int) -> Tensor:
    # Each output's inputs, [slots, batch · outputs' height · width, height · width · channels].
    if len(h) > 1 and h.stride(0) == 0:  # the same images for all slots, as in an evaluation
        return _windows(h[:1], weight, padding, stride).expand(len(h), -1, -1)
    x = h.movedim(2, -1)
    if padding:
        x = functional.pad(x, (0, 0, *[padding] * 4))
    views = x.unfold(2, weight.shape[3], stride).unfold(3, weight.shape[4], stride)
    return views.movedim(4, -1).flatten(4).flatten(1, 3)


def _sum_of_windows(windows: Tensor, shape: tuple[int, ...], padding: int, stride: int) -> Tensor:
    # From [slots, batch, outputs' height, width, kernel's height, width, channels] to the images.
    slots, batch, channels, height, width = shape
    tall, wide = height + 2 * padding, width + 2 * padding
    kernel = windows.shape[4:6]
    sizes = [slots, batch, windows.shape[2], kernel[0], wide, channels]
    add_up = torch.ops.aten.unfold_backward
    columns = add_up(windows.permute(0, 1, 2, 4, 3, 6, 5), sizes, 4, kernel[1], stride)
    sizes = [slots, batch, tall, wide, channels]
    images = add_up(columns.permute(0, 1, 2, 4, 5, 3), sizes, 2, kernel[0], stride)
    inner: Tensor = images[:, :, padding : padding + height, padding : padding + width]
    return inner.movedim(-1, 2)
