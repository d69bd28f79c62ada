"""Cost of training a network before it runs: operations and bytes of one slot's local step.

Planning and benchmarks multiply by slots, batches and rounds.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedsampling.learning.models.network import Network


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


def blank(
    network: Network, sample: tuple[int, ...], batch: int, device: str
) -> tuple[Tensor, Tensor]:
    """Return one slot's parameters [1, size], with gradients, and a batch of zeros."""
    theta = torch.zeros(1, network.dimension, device=device, requires_grad=True)
    if network.module is not None:  # which may have no outputs at zero
        theta = torch.from_numpy(network.initial(np.random.default_rng(0)))[None].requires_grad_()
    kind = torch.int64 if network.takes_symbols else None
    return theta, torch.zeros(1, batch, *sample, device=device, dtype=kind)
