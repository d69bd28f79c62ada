"""The pooled samples of all clients, and their conversion to a network's inputs."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from fedsampling.base import memory
from fedsampling.data.federated import FederatedDataset

Inputs = Literal["unit", "centred", "raw", "tokens"]


@dataclass
class Samples:
    """All clients' training samples on a device."""

    data: FederatedDataset
    inputs: Inputs  # conversion of stored samples: x/255, (x/255 − 1/2)/(1/2), x, or integers
    device: str  # pyTorch's name
    converted_share: float = 0.0  # fraction of the free memory that converted samples may use
    x: Tensor = field(init=False)
    y: Tensor = field(init=False)
    _converted: dict[int, Tensor | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.x = torch.from_numpy(self.data.x).to(self.device)
        self.y = torch.from_numpy(self.data.y).to(self.device)
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

    def converted(self, x: Tensor) -> Tensor | None:
        """Convert all of `x` and keep the result; return None if that takes too much memory.

        `x`: stored samples that stay in place as long as this object exists.
        """
        if self.device != "cpu":
            return None
        if (key := x.data_ptr()) not in self._converted:
            fits = 4 * x.numel() <= self.converted_share * memory.free()
            self._converted[key] = self.convert(x) if fits else None
        return self._converted[key]
