"""A local step of each network on a GPU: operations, memory, time, and jobs that share the card.

``python benchmarks/devices.py``: with a GPU, a step of 10, 100 and 1,000 clients at once, timed,
its rate of arithmetic beside that of one batched product of as many operations on the same card,
and its peak memory.  Without a GPU, the structure of the same steps: operations that they dispatch,
bytes, FLOP, and the time that a roofline predicts for an H100, which is not a measurement.

``--operations``: only lines ``network slots operations``, counted without a GPU.
``--jobs 1 2 4``: with a GPU, steps per second of as many processes of a network with 10 clients.

Samples are zeros and have the papers' sizes.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import timing
import torch

from fedsampling.learning.models.devices import precise
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.launches import H100, Launches, of_step, trial_step

SLOTS = (10, 100, 1000)  # clients that train at once
JOB_SECONDS = 10.0  # of each process that shares the card


@dataclass(frozen=True)
class Case:
    """A network, its samples and its mini-batches."""

    name: str
    sample: tuple[int, ...]
    classes: int | None
    batch: int

    def network(self) -> Network:
        """Build the network."""
        return Model.member(self.name)().build(self.sample, self.classes)

    def launches(self, slots: int) -> Launches:
        """Count a step."""
        return of_step(self.network(), self.sample, self.batch, slots)


CASES = (
    Case("linear", (500,), None, 10),
    Case("softmax", (28, 28), 10, 50),
    Case("mlp", (28, 28), 10, 50),
    Case("simple_cnn", (28, 28), 10, 20),
    Case("convnet", (28, 28), 10, 50),
    Case("leaf_cnn", (28, 28), 62, 20),
    Case("cifar_cnn", (32, 32, 3), 10, 50),
    Case("cifar100_cnn", (32, 32, 3), 100, 20),
    Case("resnet18", (32, 32, 3), 10, 50),
    Case("gru", (80,), 80, 8),
    Case("lstm", (80,), 80, 64),
    Case("leaf_lstm", (80,), 80, 10),
)


def main() -> None:
    """Print the tables that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", action="store_true")
    parser.add_argument("--jobs", type=int, nargs="+", metavar="N", default=[])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--networks", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = [case for case in CASES if case.name in (options.networks or case.name)]
    if options.operations:
        for case in cases:
            for slots in SLOTS:
                print(case.name, slots, case.launches(slots).operations, flush=True)
    elif options.worker:
        print(steps_per_second(cases[0]))
    elif not torch.cuda.is_available():
        print_structure(cases)
    else:
        print(f"{torch.cuda.get_device_name()}; {timing.hardware()}")
        print_times(cases, options.repetitions)
        for jobs in options.jobs:
            for case in cases:
                rate = shared_steps_per_second(case, jobs)
                print(f"{case.name:<14} {jobs} jobs: {rate:.1f} steps/s", flush=True)


def print_structure(cases: list[Case]) -> None:
    """Print what each step asks of a GPU, and the time that a roofline predicts."""
    print("no GPU: counted; times and rates are predicted for an H100 by a roofline, not measured")
    print(
        "network        batch  slots  operations      GB     GFLOP  MB/slot  [ms]  TFLOP/s  bound"
    )
    for case in cases:
        for slots in SLOTS:
            step = case.launches(slots)
            seconds = step.seconds()
            bound = {
                step.flop / H100.flops: "arithmetic",
                step.bytes / H100.bytes: "memory",
                step.operations * H100.launch: "launches",
            }[seconds]
            print(
                f"{case.name:<14} {case.batch:>5} {slots:>6} {step.operations:>11} "
                f"{step.bytes / 1e9:>7.2f} {step.flop / 1e9:>9.1f} "
                f"{step.peak_bytes / slots / 1e6:>8.1f} {1e3 * seconds:>5.1f} "
                f"{step.flop / seconds / 1e12:>8.2f}  {bound}",
                flush=True,
            )


def print_times(cases: list[Case], repetitions: int) -> None:
    """Print the time of each step on the GPU, beside a product of as many operations."""
    print("network        batch  slots    [ms]  TFLOP/s  of a product   GB")
    for case in cases:
        for slots in SLOTS:
            flop = case.launches(slots).flop
            torch.cuda.reset_peak_memory_stats()
            try:
                step = measured_seconds(case, slots, repetitions)
            except torch.OutOfMemoryError:
                print(f"{case.name:<14} {case.batch:>5} {slots:>6}  does not fit", flush=True)
                break
            product = product_seconds(flop, repetitions)
            print(
                f"{case.name:<14} {case.batch:>5} {slots:>6} {1e3 * step:>7.2f} "
                f"{flop / step / 1e12:>8.2f} {product / step:>12.0%} "
                f"{torch.cuda.max_memory_allocated() / 1e9:>5.1f}",
                flush=True,
            )


def measured_seconds(case: Case, slots: int, repetitions: int) -> float:
    """Return the median time of a step; the first step is not timed."""
    take = trial_step(case.network(), case.sample, case.batch, slots, "cuda")
    with precise("cuda"):
        return median_seconds(lambda: take().sum().item(), repetitions)  # waits for the GPU


def product_seconds(flop: int, repetitions: int, side: int = 1024) -> float:
    """Return the median time of a batched product of square matrices with `flop` operations."""
    batch = max(1, min(1024, round(flop / (2 * side**3))))
    a, b = torch.randn(2, batch, side, side, device="cuda")
    seconds = median_seconds(lambda: torch.bmm(a, b).sum().item(), repetitions)
    return seconds * flop / (2 * batch * side**3)


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Return the median time of some work, after one call that is not timed."""
    work()
    return median([timing.seconds(work)() for _ in range(repetitions)])


def shared_steps_per_second(case: Case, jobs: int) -> float:
    """Return the steps per second of several processes on the GPU, together."""
    command = [sys.executable, __file__, "--worker", "--networks", case.name]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(jobs)]
    return sum(float(worker.communicate()[0]) for worker in workers)


def steps_per_second(case: Case) -> float:
    """Take steps for some seconds, after one that is not timed."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    take = trial_step(case.network(), case.sample, case.batch, SLOTS[0], device)
    take()
    steps, begin = 0, perf_counter()
    while (spent := perf_counter() - begin) < JOB_SECONDS:
        take().sum().item()
        steps += 1
    return steps / spent


if __name__ == "__main__":
    main()
