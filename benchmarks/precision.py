"""Test whether bfloat16 can replace single precision in local steps, network by network.

``python benchmarks/precision.py [NAME ...]``, on one thread: small runs of each network in both
formats, paired by seed (same initial model, clients and batches), on the official data.  The
compared metric is the mean test accuracy over the second half of a run.  The formats are
equivalent if the paired 90 % t interval of the difference lies within the margin (an equivalence
test at 5 %).  Also prints the ratio of the CPU times of whole runs; evaluation is in single
precision in both.  ``FEDSAMPLING_MIRROR`` names a folder with the official files; missing files
are downloaded.
"""

import sys
from time import process_time
from typing import Any

import numpy as np
import torch

import fedsampling as fs
from fedsampling.evidence.statistics import compare, difference

MARGIN = 0.01  # of the accuracy, in both directions
SEEDS = 5
MORE_SEEDS = {"simple_cnn": 20}  # the first five seeds differed too much to decide
EQUAL = [[100, 100]]  # clients, and samples of each

DATA: dict[str, tuple[Any, ...]] = {
    "digits": ("mnist", {"name": "dirichlet", "alpha": 1, "groups": EQUAL}),
    "photos": ("cifar10", {"name": "dirichlet", "alpha": 1, "groups": EQUAL}),
}
# Data, network, a client's work, and enough rounds for the network to learn.
CASES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "mlp": ("digits", "mlp", {"steps": 20, "batch": 50, "step": 0.1, "rounds": 20}),
    "convnet": ("digits", "convnet", {"steps": 5, "batch": 20, "step": 0.1, "rounds": 30}),
    "simple_cnn": ("digits", "simple_cnn", {"steps": 5, "batch": 20, "step": 0.1, "rounds": 20}),
    "cifar_cnn": ("photos", "cifar_cnn", {"steps": 20, "batch": 10, "step": 0.05, "rounds": 40}),
    "lstm": (
        "lines",
        {"name": "lstm", "hidden": 32, "layers": 1},
        {"steps": 20, "batch": 16, "step": 1.5, "rounds": 40},
    ),
}


def main() -> None:
    torch.set_num_threads(1)
    print(f"equivalent where the interval is within ±{MARGIN}")
    print(f"{'':12}{'seeds':>6}{'single':>8}{'bf16 − single, 90 %':>30}{'time':>7}")
    for name in sys.argv[1:] or CASES:
        source, model, work = CASES[name]
        data = clients(source)
        work = {**work, "seeds": MORE_SEEDS.get(name, SEEDS)}
        ends, times = zip(*(train(data, model, work, bf16) for bf16 in (False, True)), strict=True)
        estimate = compare(ends[1], ends[0], difference, 0.9)
        verdict = "equivalent" if max(-estimate.low, estimate.high) < MARGIN else "not shown"
        span = f"{estimate.value:+.4f} ({estimate.low:+.4f} to {estimate.high:+.4f})"
        level, took = f"{len(ends[0]):6}{ends[0].mean():8.3f}", f"{times[1] / times[0]:7.2f}"
        print(f"{name:12}{level}{span:>30}{took}  {verdict}")


def clients(source: str) -> Any:
    if source == "lines":
        return fs.load("shakespeare", clients=8, fraction=0.005, min_samples=64, seed=2240)
    name, partition = DATA[source]
    return fs.load(name, partition)


def train(data: Any, model: Any, work: dict[str, Any], bf16: bool) -> tuple[np.ndarray, float]:
    """Return the accuracy of each seed's second half, and seconds of the processor."""
    begin = process_time()
    table = fs.train(
        data,
        fs.scheme("uniform", m=3),
        model=model,
        evaluate_every=work["rounds"] // 4,
        training_loss=False,
        precision={"bf16": bf16},
        **work,
    )
    seconds = process_time() - begin
    late = table[(table.metric == "accuracy") & (table["at"] > work["rounds"] // 2)]
    return late.groupby("seed").value.mean().to_numpy(), seconds


if __name__ == "__main__":
    main()
