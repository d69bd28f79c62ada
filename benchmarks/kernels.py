"""Time the products of an MLP's hidden layer with both libraries, and limited to AVX2.

``python benchmarks/kernels.py``: microseconds of CPU time for one product of a slot, 50 × 784 × 50,
in the forward pass and for the gradient.  As in local steps, ten slots take turns, each with
different weights.  Both libraries take turns; medians of 41.  The second row limits PyTorch, oneDNN
and MKL to AVX2, in a separate process.
"""

import os
import subprocess
import sys
from statistics import median
from time import process_time

LIMITED = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
SLOTS, BATCH, INPUTS, HIDDEN, TURNS, CALLS = 10, 50, 784, 50, 41, 10


def main() -> None:
    """Print a row for each set of instructions."""
    for name, limits in {"all instructions": {}, "AVX2 at most": LIMITED}.items():
        environment = {**os.environ, **limits, "OMP_NUM_THREADS": "1"}
        process = subprocess.run(
            [sys.executable, __file__, "--one"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        print(f"{name:18} {process.stdout.strip()}", flush=True)


def one() -> None:
    """Print the microseconds of both libraries: forward, gradient."""
    import torch

    from fedsampling.learning.models import products

    torch.set_num_threads(1)
    w, x = torch.rand(SLOTS, HIDDEN, INPUTS), torch.rand(SLOTS, BATCH, INPUTS)
    g = torch.rand(SLOTS, HIDDEN, BATCH)
    times: dict[str, list[float]] = {}
    for turn in range(TURNS + 2):
        for library in ("MKL", "oneDNN"):
            os.environ[products.VARIABLE] = library.lower()
            products.library.cache_clear()
            work = {
                "forward": lambda: products.multiply(w, x),
                "gradient": lambda: products.subtract_product(w, g, x),
            }
            for name, product in work.items():
                begin = process_time()
                for _ in range(CALLS):
                    product()
                micros = 1e6 * (process_time() - begin) / CALLS / SLOTS
                if turn > 1:
                    times.setdefault(f"{library} {name}", []).append(micros)
    print(", ".join(f"{name} {median(spent):.0f}" for name, spent in times.items()))


if __name__ == "__main__":
    one() if sys.argv[1:] == ["--one"] else main()
