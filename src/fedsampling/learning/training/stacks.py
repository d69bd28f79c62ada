"""Local training of the slots of a round as one batched computation.

Parameters have shape [slots, d], batches are gathered by index from one pooled tensor, and there is
no loop over clients.  Slots are sorted by their number of steps, so that finished slots drop off
the end of the stack and no masks are needed.  CPU and GPU run the same code.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.dropout import Keeper
from fedsampling.learning.models.network import Network
from fedsampling.learning.training.local_work import Batches, LocalWork, dropout_keys
from fedsampling.learning.training.samples import DeviceSamples
from fedsampling.learning.training.step import Batch, Copies, sgd_step
from fedsampling.samplers.protocol.slots import Slots

Result = TypeVar("Result")


class SlotLosses(NamedTuple):
    """Losses of each slot during local training, each of shape (slots,).

    `total`, `squares`: mean loss of each mini-batch, and its square, summed over samples.
    `samples`: number of samples in the slot's mini-batches.
    """

    total: Array
    squares: Array
    samples: Ints


@dataclass
class Stacks:
    """The slots of a round, trained in stacks that fit into the device's memory."""

    network: Network
    data: FederatedDataset
    local: LocalWork
    samples: DeviceSamples
    device: str  # PyTorch's name
    # slots that train at once; on a GPU, rounding may depend on it, so that a job keeps it
    size: int
    halved: bool = False  # whether memory ran out before
    # shape (runs,): local learning rate of each run; by default the rate in `local`
    learning_rates: Array | None = None

    def train(self, theta: Tensor, slots: Slots, rng: Draws) -> tuple[Tensor, SlotLosses]:
        """Train all slots, in stacks that fit into memory; return updates and losses."""
        return self.fitting(lambda: self._train(theta, slots, rng))

    def fitting(self, compute: Callable[[], Result]) -> Result:
        """Run `compute`; the first time that a GPU's memory runs out, halve the stack and retry."""
        try:
            return compute()
        except torch.OutOfMemoryError:
            if self.halved or self.size == 1:
                raise
        self.size, self.halved = self.size // 2, True
        line = f"the GPU's memory is exhausted; {self.size} slots train at once from now on"
        print(f"fedsampling: {line}", file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
        return compute()

    @cached_property
    def _n_samples(self) -> Ints:
        return self.data.n_samples

    def _train(self, theta: Tensor, slots: Slots, rng: Draws) -> tuple[Tensor, SlotLosses]:
        batches = self.local.batches(self._n_samples[slots.client], slots, rng)
        order = np.argsort(-(batches.size > 0).sum(0), kind="stable")  # by decreasing steps
        updates = theta.new_empty(len(slots), theta.shape[1])
        losses = SlotLosses(np.zeros(len(slots)), np.zeros(len(slots)), batches.size.sum(0))
        for begin in range(0, len(slots), self.size):
            part = order[begin : begin + self.size]
            start = theta[torch.from_numpy(slots.run[part])]
            updates[part], losses.total[part], losses.squares[part] = self._train_stack(
                start, slots, batches, part, rng
            )
        return updates, losses

    def _train_stack(
        self, start: Tensor, slots: Slots, batches: Batches, part: Ints, rng: Draws
    ) -> tuple[Tensor, Array, Array]:
        """Train the slots of `part`, sorted by decreasing number of steps."""
        client = slots.client[part]
        w = start.clone()
        velocity = torch.zeros_like(w) if self.local.momentum else w.new_empty(len(w), 0)
        size = batches.size[:, part]
        rows = self.data.start[client][:, None] + batches.index[:, part]
        present = np.arange(rows.shape[2]) < size[..., None]
        weight = self._tensor(present / np.maximum(size, 1)[..., None])
        rates = self.local.learning_rates(slots, rng.round, self.learning_rates)
        copies = Copies(w, start, velocity, self._tensor(rates[part])[:, None])
        keys = torch.from_numpy(dropout_keys(slots, rng)[part]).to(self.device)
        pooled_rows = torch.from_numpy(rows).to(self.device)
        losses = torch.zeros(size.shape, device=self.device)
        numbers = torch.arange(len(size), device=self.device)  # of the steps
        live = (size > 0).sum(1)  # slots that take each step
        for s, n in enumerate(live[live > 0]):
            x, y = self.samples.gather(pooled_rows[s, :n])
            batch = Batch(x, y, weight[s, :n], Keeper(keys[:n], numbers[s]))
            with self.network.blaming():
                losses[s, :n] = sgd_step(self.network, self.local, copies.first(n), batch)
        mean = losses.cpu().double().numpy()
        d = self.network.dimension
        w[:, :d].sub_(start[:, :d])
        return w, (mean * size).sum(0), (mean**2 * size).sum(0)

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values).to(self.device, torch.float32)
