"""Matrix products over slots, the arithmetic of every dense and recurrent layer.

On a GPU this is one batched product of all slots; on a CPU large slots are multiplied one by one.
:func:`library` chooses the CPU library, MKL or oneDNN: the library named in
``FEDSAMPLING_PRODUCTS``, or the faster one for the processor's instruction set according to
``docs/performance.md``.  It never depends on a timing, so that repeated runs use the same library.

A slot's result must not depend on the other slots or on its position, with any kernels that the
libraries choose for a processor.  Libraries do not guarantee this, so:

- A batched product of a single matrix uses other kernels than one of several, which on some
  processors round differently.  A single slot is therefore multiplied twice.
- In some forms, a batched product's rounding depends on the memory alignment of a matrix.  Only
  forms whose right factor has contiguous rows are used.  The results must be aligned as well: each
  slot's must begin at a multiple of 16 bytes, as the first one does.
- If all slots have the same left factor, as in an evaluation, their weights are multiplied as one
  matrix.
- Each size in use is tested once per process; if the test fails, slots are multiplied one by one.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fedsampling.base.errors import InputError
from fedsampling.base.machine import instructions
from fedsampling.learning.models.devices import at_once

VARIABLE = "FEDSAMPLING_PRODUCTS"  # mkl, onednn or auto
Weights = Tensor | Sequence[Tensor]
_LARGE_SLOT = 2**18  # multiplications in a slot above which it gets its own call
_TEST_STACKS = (2, 3, 5)  # numbers of stacked slots in the tests


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x Wᵀ of each slot, shape (slots, rows, outputs), with gradients."""
    z: Tensor = _Product.apply(x, weight)  # type: ignore[no-untyped-call]
    return z


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """Return x Wᵀ of each slot, without automatic differentiation; shapes as in `product`."""
    if _needs_single_slots(x, x.shape[1], weight.shape[1]):
        case = *x.shape[1:], weight.shape[1], len(x), x.dtype, torch.get_num_threads()
        if x.stride(0) == 0 and _is_exact(_side_by_side, *case):
            return _side_by_side(x, weight)
        if weight.stride(0) == 0 and _is_exact(_one_below_the_other, *case):
            return _one_below_the_other(x, weight)
        return _slot_by_slot(x, weight)
    if at_once(x.device):
        return torch.bmm(x, weight.transpose(1, 2))
    if weight.shape[1] == 1:
        return (x * weight).sum(-1, keepdim=True)
    return _batched(x, _with_contiguous_rows(weight.transpose(1, 2)))


def gradient(g: Tensor, x: Tensor) -> Tensor:
    """Return gᵀ x of each slot, the gradient of `multiply` with respect to its weights."""
    if g.shape[2] <= x.shape[2]:  # oneDNN is faster with the smaller matrix on the left
        return multiply(g.transpose(1, 2), x.transpose(1, 2))
    return multiply(x.transpose(1, 2), g.transpose(1, 2)).transpose(1, 2)


def subtract_product(weight: Tensor, g: Tensor, x: Tensor) -> None:
    """Subtract g x of each slot, shape (slots, outputs, inputs), from its weights, in place."""
    if _needs_single_slots(g, g.shape[1], x.shape[2]):
        for slot_weight, a, b in zip(weight.unbind(), g.unbind(), x.unbind(), strict=True):
            if _uses_onednn(g):
                slot_weight.sub_(_onednn(a, b.T))  # while the product is in the cache
            else:
                slot_weight.addmm_(a, b, alpha=-1)
    else:
        weight.sub_(multiply(g, x.transpose(1, 2)))


def libraries() -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Return the available functions for x Wᵀ of two matrices on a CPU, by library."""
    plain: dict[str, Callable[[Tensor, Tensor], Tensor]] = {_plain(): lambda x, w: x @ w.T}
    return {**plain, "oneDNN": _onednn} if _has_onednn() else plain


@cache
def library() -> str:
    """Return the library that multiplies slot by slot: ``MKL``, ``oneDNN`` or another ``BLAS``.

    PyTorch's public product uses MKL, or the BLAS with which PyTorch is built, as on ARM and macOS.
    It is also the fallback if this PyTorch has no oneDNN product.  On a processor for which oneDNN
    is faster, the fallback takes 1.35 times as long for an MLP's hidden layer, and 1.19 times for
    its gradient.
    """
    choice = os.environ.get(VARIABLE, "").lower()
    if choice not in ("", "auto", "mkl", "onednn"):
        raise InputError(f"{VARIABLE}: {choice!r} is unknown; must be mkl, onednn or auto")
    if choice in ("", "auto"):
        mkl = _plain() == "MKL" and not is_onednn_faster(instructions())
        choice = "mkl" if mkl else "onednn"
    return "oneDNN" if choice == "onednn" and _has_onednn() else _plain()


def _plain() -> str:
    """Return the library of PyTorch's public product."""
    return "MKL" if torch.backends.mkl.is_available() else "BLAS"  # type: ignore[no-untyped-call]


def is_onednn_faster(processor: str) -> bool:
    """Return whether oneDNN is faster than MKL: AVX-512 that only oneDNN uses at full width.

    MKL restricts its AVX-512 kernels to Intel's processors.  On others they are faster only if the
    vector units have 512 bits, for which there is no flag.  AMD introduced ``avx_vnni`` and
    ``avx512_vp2intersect`` together with such units (Zen 5).
    """
    flags = set(processor.split())
    wide = "avx512f" in flags and not flags.isdisjoint({"avx_vnni", "avx512_vp2intersect"})
    return wide and "GenuineIntel" not in flags


def prepared(weight: Tensor, rows: int) -> Weights:
    """Prepare weights [slots, outputs, inputs] for many calls of :func:`add_product`."""
    if _needs_single_slots(weight, rows, weight.shape[1]):
        return weight.unbind()
    return _with_contiguous_rows(weight.transpose(1, 2))


def add_product(x: Tensor, weights: Weights, start: Tensor) -> Tensor:
    """Return start + x Wᵀ of each slot, a recurrent layer's step; `weights` are prepared."""
    if isinstance(weights, Tensor):
        return _batched(x, weights, start)
    slots = zip(x.unbind(), weights, start.unbind(), strict=True)
    if _uses_onednn(x):
        return torch.stack([_onednn(*slot) for slot in slots])
    return torch.stack([torch.addmm(s, a, w.T) for a, w, s in slots])


def _needs_single_slots(factor: Tensor, rows: int, outputs: int) -> bool:
    """Whether slots are multiplied one by one; must depend only on sizes within a slot."""
    if at_once(factor.device):
        return False
    sizes = rows, factor.shape[2], outputs
    is_aligned = rows * outputs % 4 == 0  # every slot's result begins at a multiple of 16 bytes
    if prod(sizes) >= _LARGE_SLOT or not is_aligned:
        return True
    return outputs > 1 and not _is_independent(*sizes, factor.dtype, torch.get_num_threads())


@cache
def _is_independent(rows: int, inputs: int, outputs: int, dtype: torch.dtype, threads: int) -> bool:
    """Test whether slots of these sizes give the same result stacked or singly; takes 1 ms."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(max(_TEST_STACKS), rows, inputs, generator=rng, dtype=dtype)
    right = torch.randn(max(_TEST_STACKS), inputs, outputs, generator=rng, dtype=dtype)
    with torch.no_grad():
        for left in (x, x.transpose(1, 2).contiguous().transpose(1, 2)):
            slots = zip(left.unbind(), right.unbind(), strict=True)
            singles = torch.cat([_batched(a.clone()[None], b.clone()[None]) for a, b in slots])
            if any(
                not torch.equal(_batched(left[:n], right[:n]), singles[:n]) for n in _TEST_STACKS
            ):
                _print_slow()
                return False
    return True


@cache
def _is_exact(
    joined: Callable[[Tensor, Tensor], Tensor],
    rows: int,
    inputs: int,
    outputs: int,
    slots: int,
    dtype: torch.dtype,
    threads: int,
) -> bool:
    """Test whether one product of slots with a common factor equals the slots' own products."""
    if slots == 1:
        return False
    rng = torch.Generator().manual_seed(0)
    factors = [1, slots] if joined is _side_by_side else [slots, 1]  # of x, and of the weights
    x = torch.randn(factors[0], rows, inputs, generator=rng, dtype=dtype).expand(slots, -1, -1)
    weight = torch.randn(factors[1], outputs, inputs, generator=rng, dtype=dtype)
    weight = weight.expand(slots, -1, -1)
    with torch.no_grad():
        return torch.equal(joined(x, weight), _slot_by_slot(x, weight))


@cache
def _print_slow() -> None:
    print(
        "fedsampling: on this processor, rounding in batched products depends on the number of "
        "slots; some are multiplied slot by slot, which takes longer",
        file=sys.stderr,
        flush=True,
    )


def _batched(x: Tensor, right: Tensor, start: Tensor | None = None) -> Tensor:
    # x · right of each slot, plus start.
    if len(x) == 1 and not at_once(x.device):
        x, right = x.expand(2, -1, -1), right.expand(2, -1, -1)
        return _batched(x, right, None if start is None else start.expand(2, -1, -1))[:1]
    return torch.bmm(x, right) if start is None else torch.baddbmm(start, x, right)


def _with_contiguous_rows(matrix: Tensor) -> Tensor:
    is_contiguous = matrix.stride(-1) == 1 and matrix.stride(-2) == matrix.shape[-1]
    return matrix if is_contiguous else matrix.contiguous()


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


def _slot_by_slot(x: Tensor, weight: Tensor) -> Tensor:
    # x Wᵀ, slot by slot.
    slots = zip(x.unbind(), weight.unbind(), strict=True)
    if _uses_onednn(x):
        z = [_onednn(a, b) for a, b in slots]
        return torch.stack(z) if len(z) > 1 else z[0][None]
    if weight.shape[1] == 1:
        return torch.stack([(a * b).sum(-1, keepdim=True) for a, b in slots])
    filled = x.new_empty(*x.shape[:2], weight.shape[1])
    for (a, b), z_s in zip(slots, filled.unbind(), strict=True):
        torch.mm(a, b.T, out=z_s)
    return filled


def _side_by_side(x: Tensor, weight: Tensor) -> Tensor:
    # x Wᵀ of slots with the same x, as one product.
    z = _slot_by_slot(x[:1], weight.flatten(0, 1)[None])[0]
    return z.view(len(z), len(weight), -1).transpose(0, 1)


def _one_below_the_other(x: Tensor, weight: Tensor) -> Tensor:
    # x Wᵀ of slots with the same W, as one product.
    return _slot_by_slot(x.flatten(0, 1)[None], weight[:1])[0].view(*x.shape[:2], -1)


def _uses_onednn(x: Tensor) -> bool:
    return x.dtype == torch.float32 and library() == "oneDNN"


def _onednn(x: Tensor, weight: Tensor, start: Tensor | None = None) -> Tensor:
    """Return x Wᵀ, plus start, computed by oneDNN.

    The only use of PyTorch's private function; `libraries` and `library` work without it.
    """
    linear = torch.ops.mkldnn._linear_pointwise
    z: Tensor = (
        linear(x, weight, None, "none", [], "")
        if start is None
        else linear.binary(x, start, weight, None, "add")
    )
    return z


@cache
def _has_onednn() -> bool:
    try:
        x, start = torch.ones(2, 3), torch.ones(2, 2)
        return bool((_onednn(x, x, start) - _onednn(x, x) == start).all())
    except (AttributeError, RuntimeError):
        return False
