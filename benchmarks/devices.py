"""Time a step of each network with labels on the GPU and on one processor core.

``python benchmarks/devices.py [--repetitions 5]``: ten clients train at once, each with one
mini-batch.  Samples are random and have the papers' sizes.  Prints milliseconds per step, their
ratio, and the GPU's rate of arithmetic.
"""

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import timing
import torch
from numpy.typing import NDArray

from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.devices import precise
from fedsampling.learning.models.operations import operations
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.samples import Inputs
from fedsampling.samplers.basic import MD
from fedsampling.samplers.protocol.slots import Slots

SLOTS = 10  # clients that train at once


@dataclass(frozen=True)
class Case:
    """A network, its samples and its mini-batches."""

    name: str
    sample: tuple[int, ...]
    classes: int
    batch: int
    inputs: Inputs = "unit"


CASES = (
    Case("softmax", (28, 28), 10, 50),
    Case("mlp", (28, 28), 10, 50),
    Case("simple_cnn", (28, 28), 10, 20),
    Case("convnet", (28, 28), 10, 50),
    Case("leaf_cnn", (28, 28), 62, 20),
    Case("cifar_cnn", (32, 32, 3), 10, 50),
    Case("cifar100_cnn", (32, 32, 3), 100, 20),
    Case("resnet18", (32, 32, 3), 10, 50),
    Case("gru", (80,), 80, 8, "tokens"),
    Case("lstm", (80,), 80, 64, "tokens"),
    Case("leaf_lstm", (80,), 80, 10, "tokens"),
)


def main() -> None:
    """Print one line for each network."""
    arguments = timing.arguments(__doc__, repetitions=5)
    print(torch.cuda.get_device_name())
    on_gpu = [milliseconds(learner(case, "cuda"), arguments.repetitions) for case in CASES]
    print("network        batch  GPU [ms]  core [ms]  ratio  TFLOP/s", flush=True)
    for case, gpu in zip(CASES, on_gpu, strict=True):
        stacked = learner(case, "cpu")
        core = milliseconds(stacked, 1)
        flop = operations(stacked.network, case.sample, case.batch).step * SLOTS
        print(
            f"{case.name:<14} {case.batch:>5} {gpu:>9.2f} {core:>10.1f} {core / gpu:>6.1f} "
            f"{flop / gpu / 1e9:>8.3f}",
            flush=True,
        )


def milliseconds(stacked: NetworkLearner, repetitions: int) -> float:
    """Return the median time of a step; the first step is not timed."""
    slots, theta = Slots.stack([np.arange(SLOTS)]), stacked.start(np.zeros(1, np.int64))

    def step() -> None:
        updates = stacked.work(theta, slots, MD(m=SLOTS), Draws(np.zeros(1, np.int64), 0))
        updates.sum().item()  # waits for the GPU

    with precise(stacked.device):
        step()
        return float(1000 * median([timing.seconds(step)() for _ in range(repetitions)]))


def learner(case: Case, device: str) -> NetworkLearner:
    """Build a learner with random samples, one mini-batch for each client."""
    rng, rows = np.random.default_rng(0), case.batch * SLOTS
    high, kind = (case.classes, np.int64) if case.inputs == "tokens" else (256, np.uint8)
    x: NDArray[Any] = rng.integers(high, size=(rows, *case.sample)).astype(kind)
    network = Model.member(case.name)().build(case.sample, case.classes)
    blank = torch.zeros(1, rows, *case.sample, device="meta")
    theta = torch.zeros(1, network.dimension, device="meta")
    shape = network.outputs(theta, blank.long() if case.inputs == "tokens" else blank).shape[1:-1]
    y = rng.integers(case.classes, size=shape)
    start, p = np.arange(SLOTS + 1) * case.batch, np.full(SLOTS, 1 / SLOTS)
    data = FederatedDataset("random", x, y, start, p, x[:0], y[:0], classes=case.classes)
    work = LocalWork(batch=case.batch, step=0.01, steps=1)
    return NetworkLearner(network, data, work, case.inputs, device=device)


if __name__ == "__main__":
    main()
