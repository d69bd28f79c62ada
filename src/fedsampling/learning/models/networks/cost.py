"""Cost of training a network before it runs, in operations and bytes; and reuse of freed memory.

These functions consider one local step of one slot; planning and benchmarks multiply by slots,
batches and rounds.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedsampling.learning.models.networks.network import Network

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # constants of glibc's malloc.h
_NEVER = 2**31 - 1


@dataclass(frozen=True)
class Operations:
    """Floating-point operations of one slot's batch, in products and convolutions only.

    An addition and a multiplication count as two.

    `forward`, `step`: operations for the outputs, and for outputs and gradient.
    """

    forward: int
    step: int


def operations(network: Network, sample: tuple[int, ...], batch: int) -> Operations:
    """Count the operations of a batch, where possible on a device without data.

    `sample`: shape of one sample.
    """
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
    forward pass of one slot on this machine's CPU.  The backward pass adds the gradient of the
    largest of these arrays, the gradients of the parameters, and as much again for temporary
    arrays.

    `sample`: shape of one sample.
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


def blank(
    network: Network, sample: tuple[int, ...], batch: int, device: str
) -> tuple[Tensor, Tensor]:
    """Return one slot's parameters [1, size], with gradients, and a batch [1, batch, ...] of zeros.

    Inputs of an embedding are integers.
    """
    theta = torch.zeros(1, network.dimension, device=device, requires_grad=True)
    if network.module is not None:  # which may have no outputs at zero
        theta = torch.from_numpy(network.initial(np.random.default_rng(0)))[None].requires_grad_()
    symbols = any(name.startswith("embedding") for name in network.shapes)
    kind = torch.int64 if symbols else None
    return theta, torch.zeros(1, batch, *sample, device=device, dtype=kind)
