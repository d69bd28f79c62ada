"""Time a round of fs.train against that of another commit, in CPU time on one thread.

``python benchmarks/against_commit.py FOLDER [--repetitions 9] [--records]``: FOLDER is a checkout
of the other commit (``git worktree add FOLDER COMMIT``).  Processes of both alternate, each with
its own ``src`` on the path, and train a softmax of 610 parameters and an MLP of 39,760 with MD,
m = 10 of 50 clients.  Prints the median over pairs of the ratio of CPU times, and its quartiles.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[1]
MODELS = {"softmax": (60, 400), "mlp": (784, 40)}  # features, and rounds of a repetition
WARM_UP = 5  # rounds

TRAIN = """
import time
import numpy as np
import fedsampling as fs

rng = np.random.default_rng(0)
y = rng.integers(0, 10, 5000)
x = rng.normal(size=(10, {features}))[y] + rng.normal(size=(5000, {features}))
clients = [(x[i::50].astype(np.float32), y[i::50]) for i in range(50)]
data = fs.from_clients(clients, test_share=0.1)
work = {{"model": "{model}", "steps": 5, "batch": 20, "step": 0.05, "seeds": 1}}
def train(rounds):
    fs.train(data, fs.scheme("md", m=10), rounds=rounds, evaluate_every=rounds, **work)
if not {records}:
    work["selections"] = False
    try:
        train({warm_up})
    except Exception:  # the other commit does not record selections
        del work["selections"]
train({warm_up})
began = time.process_time()
train({rounds})
print(time.process_time() - began)
"""


def main() -> None:
    """Measure all pairs, and print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--records", action="store_true", help="also who was selected")
    arguments = parser.parse_args()
    for model, (features, rounds) in MODELS.items():
        sizes = {"features": features, "rounds": rounds, "warm_up": WARM_UP}
        code = TRAIN.format(model=model, records=arguments.records, **sizes)
        pairs = [
            (seconds(arguments.other, code), seconds(HERE, code))
            for _ in range(arguments.repetitions)
        ]
        before, now = 1e3 * np.median(pairs, axis=0) / rounds
        low, middle, high = np.quantile([new / old for old, new in pairs], [0.25, 0.5, 0.75])
        print(
            f"{model}: {before:.2f} ms a round there, {now:.2f} here; "
            f"ratio {middle:.3f} (quartiles {low:.3f} to {high:.3f})"
        )


def seconds(checkout: Path, code: str) -> float:
    """Return the CPU seconds of a training with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(output.stdout)


if __name__ == "__main__":
    main()
