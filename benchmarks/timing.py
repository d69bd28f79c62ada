"""Shared by the speed comparisons: contestants that take turns, and the machine's peak rates.

Import it before PyTorch: it makes waiting threads sleep. Otherwise, two threads make hardly any
progress on a machine with more running processes than cores.

The machine may be busy with other work.  Therefore the contestants take turns within each
repetition, and a ratio is the median over repetitions.  Milliseconds are medians, comparable only
within one table.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import argparse
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median, quantiles
from time import perf_counter

import torch

from fedsampling.learning.models.devices import keep_memory
from fedsampling.learning.models.products import libraries

Contestant = Callable[[], float]  # runs once; returns seconds


def arguments(
    description: str | None, repetitions: int, engines: Sequence[str] = ()
) -> argparse.Namespace:
    """Read ``--threads`` and ``--repetitions``; keep this process to as many cores as threads.

    Each of `engines` also gets an option for the path of its Python.
    """
    parser = argparse.ArgumentParser(description=description)
    for engine in engines:
        parser.add_argument(f"--{engine}", metavar="PYTHON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=repetitions)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    torch.set_num_threads(options.threads)
    keep_memory()  # as in the package; the loops profit as well
    print(f"{hardware()}; {options.threads} thread(s), {options.repetitions} repetitions")
    return options


def hardware() -> str:
    """Return processor and versions in one line."""
    with open("/proc/cpuinfo") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return f"{names[0]}, Python {platform.python_version()}, PyTorch {torch.__version__}"


def seconds(work: Callable[[], object]) -> Contestant:
    """Make a contestant from a function, timed by the clock."""

    def run() -> float:
        begin = perf_counter()
        work()
        return perf_counter() - begin

    return run


def take_turns(contestants: Mapping[str, Contestant], repetitions: int) -> dict[str, list[float]]:
    """Run each once to warm up, then all of them in turn, `repetitions` times."""
    for run in contestants.values():
        run()
    turns = [[run() for run in contestants.values()] for _ in range(repetitions)]
    return dict(zip(contestants, map(list, zip(*turns, strict=True)), strict=True))


def print_ratios(times: Mapping[str, Sequence[float]], ours: str, unit: str = "round") -> None:
    """Print milliseconds, and each contestant's time as a multiple of `ours`."""
    print(f"{'':28} {'ms per ' + unit:>14} {'ratio':>7}   middle half")
    for name, spent in times.items():
        ratios = [other / own for other, own in zip(spent, times[ours], strict=True)]
        low, _, high = quantiles(ratios, n=4)
        note = "" if name == ours else f"{median(ratios):7.2f}   {low:.2f} to {high:.2f}"
        print(f"{name:28} {median(spent) * 1e3:14.1f} {note}".rstrip())


def large_product(size: int = 1536) -> tuple[Contestant, float]:
    """Make a contestant of a large matrix product, the best of both libraries; and its FLOP."""
    a = torch.randn(size, size)
    ways = [seconds(partial(way, a, a)) for way in libraries().values()]
    return lambda: min(way() for way in ways), 2.0 * size**3


def print_rates(
    times: Mapping[str, Sequence[float]], flop: float, product: str, product_flop: float
) -> None:
    """Print the FLOP/s of contestants that perform `flop` operations, next to a large product's."""
    ceiling = median(product_flop / spent for spent in times[product])
    print(f"\n{flop / 1e9:.2f} GFLOP per round; a large matrix product makes {ceiling / 1e9:.0f}/s")
    for name, spent in times.items():
        if name != product:
            share = [
                flop / own / (product_flop / other)
                for own, other in zip(spent, times[product], strict=True)
            ]
            rate = flop / median(spent) / 1e9
            print(f"{name:28} {rate:8.0f} GFLOP/s, {100 * median(share):.0f} % of the product's")
