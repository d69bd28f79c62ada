"""What a local step asks of a device: operations, bytes, floating-point operations and memory.

Counted without the device, as it would compute where
:func:`fedsampling.learning.models.devices.at_once` is true.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedsampling.learning.models.devices import GPU_SHARE, forced_at_once
from fedsampling.learning.models.dropout import Keeper
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.operations import step_bytes
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.step import Batch, Copies, sgd_step


@dataclass(frozen=True)
class Peaks:
    """A device's limits."""

    flops: float  # floating-point operations per second, in single precision
    bytes: float  # of its memory per second
    launch: float  # seconds to start an operation
    memory: float  # bytes


# An SXM card by its data sheet; an LSTM's step of 4,283 operations took 87 ms (docs/performance.md)
H100 = Peaks(flops=67e12, bytes=3.35e12, launch=20e-6, memory=80e9)


@dataclass(frozen=True)
class Launches:
    """What a step of all slots asks of a device."""

    operations: int  # without views, which start nothing
    bytes: int  # read and written by them
    flop: int  # in products and convolutions
    peak_bytes: int  # of memory, without the models and the batch

    def times(self, slots: float) -> "Launches":
        """Return the counts of a step of as many slots, if these are the counts of one slot."""
        counts = (int(slots * count) for count in (self.bytes, self.flop, self.peak_bytes))
        return Launches(self.operations, *counts)

    def jobs_at_once(self, peaks: Peaks = H100) -> int:
        """Predict how many such steps a device can serve at once: 1, 2, 4 or 8."""
        busy = max(self.flop / peaks.flops, self.bytes / peaks.bytes) / self.seconds(peaks)
        used = max(busy, self.peak_bytes / (GPU_SHARE * peaks.memory))
        return max(jobs for jobs in (1, 2, 4, 8) if jobs == 1 or jobs * used <= 1)

    def seconds(self, peaks: Peaks = H100) -> float:
        """Predict the time of a step by a roofline: the longest of arithmetic, memory, launches."""
        launching = self.operations * peaks.launch
        return max(self.flop / peaks.flops, self.bytes / peaks.bytes, launching)


def of_step(network: Network, sample: tuple[int, ...], batch: int, slots: int) -> Launches:
    """Count a step of `slots` slots on a GPU, without data if the network is one of ours."""
    from torch.utils.flop_counter import FlopCounterMode  # the import takes a second

    device = "meta" if network.module is None and network.criterion is None else "cpu"
    take = trial_step(network, sample, batch, slots, device)
    with forced_at_once(), Counter() as counter, FlopCounterMode(display=False) as flop:
        take()
    return Launches(counter.operations, counter.bytes, flop.get_total_flops(), counter.peak)


def trial_step(
    network: Network, sample: tuple[int, ...], batch: int, slots: int, device: str
) -> Callable[[], Tensor]:
    """Return a function that takes a step of samples of zeros, almost without moving the models."""
    if device == "meta":
        w = torch.zeros(slots, network.size, device=device)
    else:
        w = torch.from_numpy(network.initial(np.random.default_rng(0))).to(device)
        w = w.expand(slots, -1).clone()
    inputs = torch.int64 if network.takes_symbols else None
    x = torch.zeros(slots, batch, *sample, dtype=inputs, device=device)
    with torch.no_grad():
        shape = network.outputs(w[:1], x[:1]).shape[1:-1]
    kind = torch.float32 if network.loss == "squared" else torch.int64
    y = torch.zeros(slots, *shape, dtype=kind, device=device)
    weight = w.new_full((slots, batch), 1 / batch)
    work = LocalWork(batch=batch, step=1, steps=1)
    copies = Copies(w, start=w, velocity=w.new_empty(slots, 0), step=w.new_full((slots, 1), 1e-9))
    zeros = partial(torch.zeros, dtype=torch.int64, device=device)
    samples = Batch(x, y, weight, keep=Keeper(zeros(slots), zeros(())))
    return lambda: sgd_step(network, work, copies, samples)


_STARTING_NOTHING = ("_unsafe_view", "empty", "new_empty")  # in addition to views


def slot_bytes(network: Network, sample: tuple[int, ...], work: LocalWork, device: str) -> int:
    """Estimate the peak memory of one slot's step on a device; on a GPU, with its models."""
    if device == "cpu":
        return step_bytes(network, sample, work.batch)
    models = 3 + bool(work.momentum)  # the first and the trained one, the update, the velocity
    return of_step(network, sample, work.batch, 1).peak_bytes + 4 * models * network.size


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, their bytes, and the peak of the memory that they allocate."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = self.bytes = self.peak = self._held = 0
        self._storages: set[int] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute an operation, and count it unless it only makes a view or an empty array."""
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        results = [*_tensors(result)]
        if not function.is_view and not function.__name__.startswith(_STARTING_NOTHING):
            self.operations += 1
            inputs = {name: value for name, value in kwargs.items() if name != "out"}
            self.bytes += sum(_size(tensor) for tensor in (*_tensors((args, inputs)), *results))
        for tensor in results:
            self._hold(tensor.untyped_storage())
        return result

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._storages:
            self._storages.add(key)
            self._held += storage.nbytes()
            self.peak = max(self.peak, self._held)
            weakref.finalize(storage, self._release, key, storage.nbytes())

    def _release(self, key: int, size: int) -> None:
        self._storages.discard(key)
        self._held -= size


def _tensors(values: Any) -> Iterator[Tensor]:
    return (value for value in tree_leaves(values) if isinstance(value, Tensor))


def _size(tensor: Tensor) -> int:
    return min(tensor.nbytes, tensor.untyped_storage().nbytes())
