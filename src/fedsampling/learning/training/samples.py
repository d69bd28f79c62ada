"""The pooled samples of all clients, and their conversion to a network's inputs."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.data.federated import FederatedDataset


def tensor_of(array: NDArray[Any]) -> Tensor:
    """Return a tensor with the memory of an array of the data, which nothing may change."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


Inputs = Literal["unit", "centred", "raw", "tokens"]


@dataclass
class DeviceSamples:
    """All clients' training samples on a device."""

    data: FederatedDataset
    inputs: Inputs  # conversion of stored samples: x/255, (x/255 − 1/2)/(1/2), x, or integers
    device: str  # pyTorch's name
    x: Tensor = field(init=False)
    y: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.x = tensor_of(self.data.x).to(self.device)
        self.y = tensor_of(self.data.y).to(self.device)
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
