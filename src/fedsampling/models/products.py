"""Matrix products over slots, the arithmetic of every dense and recurrent layer.

On a GPU a batched product of all slots.  On a CPU, in single precision, one call of oneDNN per slot
where it is worth a call: the library that PyTorch takes for batched products reached half of its
speed on the AMD processor where both were measured (``benchmarks/recurrent.py``), because it leaves
the wider half of the vector units idle.  oneDNN's product has no public name in PyTorch; where it
is missing, the batched product serves.

A slot's result does not depend on the slots beside it, nor on its place among them.  The latter
takes care: a batched product of some forms rounds differently by where in memory a matrix begins,
so that only those forms are used that do not (those whose right factor has its rows contiguous).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Weights = Tensor | Sequence[Tensor]
_SMALLEST = 2**18


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply with each slot's weights, x Wᵀ, with gradients.

    Parameters
    ----------
    x : Tensor, shape (slots, rows, inputs)
    weight : Tensor, shape (slots, outputs, inputs)

    Returns
    -------
    Tensor, shape (slots, rows, outputs)
    """
    z: Tensor = _Product.apply(x, weight)  # type: ignore[no-untyped-call]
    return z


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """Return x Wᵀ of each slot, outside of automatic differentiation; shapes as `product`'s."""
    if _by_slot(x, weight.shape[1]):
        return torch.stack([_linear(a, b) for a, b in zip(x, weight, strict=True)])
    if x.device.type != "cpu":
        return torch.bmm(x, weight.transpose(1, 2))
    if weight.shape[1] == 1:
        return (x * weight).sum(-1, keepdim=True)
    return torch.bmm(x, _with_rows(weight.transpose(1, 2)))


def gradient(g: Tensor, x: Tensor) -> Tensor:
    """Return gᵀ x of each slot, the gradient of `multiply` by its weights.

    Parameters
    ----------
    g : Tensor, shape (slots, rows, outputs)
    x : Tensor, shape (slots, rows, inputs)

    Returns
    -------
    Tensor, shape (slots, outputs, inputs)
    """
    if g.shape[2] <= x.shape[2]:  # oneDNN is faster with the smaller matrix on the left
        return multiply(g.transpose(1, 2), x.transpose(1, 2))
    return multiply(x.transpose(1, 2), g.transpose(1, 2)).transpose(1, 2)


def unstacked(weight: Tensor, rows: int) -> Weights:
    """Prepare weights [slots, outputs, inputs] for many calls of :func:`advance`."""
    if _by_slot(weight.transpose(1, 2), rows):
        return weight.unbind()
    return _with_rows(weight.transpose(1, 2))


def advance(x: Tensor, weights: Weights, start: Tensor) -> Tensor:
    """Return start + x Wᵀ of each slot, a recurrent layer's step.

    Parameters
    ----------
    x : Tensor, shape (slots, rows, inputs)
    weights : Tensor or sequence of Tensor
        As :func:`unstacked` prepares them.
    start : Tensor, shape (slots, rows, outputs)

    Returns
    -------
    Tensor, shape (slots, rows, outputs)
    """
    if isinstance(weights, Tensor):
        return torch.baddbmm(start, x, weights)
    slots = zip(x.unbind(), weights, start.unbind(), strict=True)
    return torch.stack([_linear_added(a, w, s) for a, w, s in slots])


def _with_rows(matrix: Tensor) -> Tensor:
    whole = matrix.stride(2) == 1 and matrix.stride(1) == matrix.shape[2]
    return matrix if whole else matrix.contiguous()


def _by_slot(x: Tensor, outputs: int) -> bool:
    # Small products are not worth a call each.  Only sizes within a slot may decide.
    worthwhile = x.shape[1] * x.shape[2] * outputs >= _SMALLEST
    return _ONEDNN and worthwhile and x.device.type == "cpu" and x.dtype == torch.float32


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        by_x, by_weight = ctx.needs_input_grad
        return (
            multiply(g, weight.transpose(1, 2)) if by_x else None,
            gradient(g, x) if by_weight else None,
        )


def _linear(x: Tensor, weight: Tensor) -> Tensor:
    z: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return z


def _linear_added(x: Tensor, weight: Tensor, start: Tensor) -> Tensor:
    z: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, start, weight, None, "add")
    return z


def _found() -> bool:
    try:
        x, start = torch.ones(2, 3), torch.ones(2, 2)
        return bool((_linear_added(x, x, start) - _linear(x, x) == start).all())
    except (AttributeError, RuntimeError):
        return False


_ONEDNN = _found()
