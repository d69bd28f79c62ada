"""Time rounds with up to a million clients, m = 100 of which train.

``python benchmarks/many_clients.py [SAMPLER ...]``: four samples of eight features per client, read
from a memory map, an MLP with four hidden units, one local step on a batch of four.  Each sampler
and number of clients runs in a separate process.  Prints CPU milliseconds of a round (median of
nine, without the first two), the part that selection and weights take, the time to build the
learner, and the largest memory that a round adds.

Rounds do not evaluate, because evaluation is one pass over all samples whenever an experiment
requests it.  Losses that a sampler needs are also such a pass.  Not included: samplers for which
all clients train (optimal, delta, luo2022), samplers that remember every client's update (memory
n d), and samplers that compare pairs of clients (n²).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.settings import Mlp
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import play_round
from fedsampling.learning.training.observing import observations_for
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

M, SAMPLES, FEATURES, CLASSES, ROUNDS, LIMIT_S = 100, 4, 8, 2, 9, 300
POPULATIONS = (10_000, 100_000, 1_000_000)
SAMPLERS: dict[str, dict[str, object]] = {
    **{
        name: {"m": M}
        for name in (
            *("md", "uniform", "poisson", "binomial", "clustered_size", "stratified", "cyclic"),
            *("tifl", "tifl_adaptive", "f3ast", "kvib", "active_fl", "oort", "oort_fedscale"),
        )
    },
    **{name: {"m": M, "d": 2 * M} for name in ("power_of_choice", "cpow_d", "rpow_d")},
    "fedcs": {"d": 2 * M},
    "flanp": {"first": M, "stop": "rounds"},
}


def main() -> None:
    """Print a row for each sampler and number of clients."""
    print(f"{'sampler':18}{'clients':>10}{'round ms':>10}{'sampler ms':>12}{'start s':>9}{'MB':>7}")
    for name in sys.argv[1:] or SAMPLERS:
        for clients in POPULATIONS:
            command = [sys.executable, __file__, "--one", name, str(clients)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=LIMIT_S
                )
                row = done.stdout if not done.returncode else done.stderr.strip().splitlines()[-1]
            except subprocess.TimeoutExpired:
                row = f"  more than {LIMIT_S} s"
            print(f"{name:18}{clients:10}{row.rstrip()}", flush=True)


def one(name: str, clients: int) -> None:
    """Print the numbers of one sampler and population."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        data = population(clients, rng, Path(folder))
        begin = process_time()
        network = Mlp(hidden=4).build(data.x.shape[1:], CLASSES)
        work = LocalWork(batch=SAMPLES, step=0.1, steps=1)
        learner = NetworkLearner(network, data, work, inputs="raw")
        sampler = scheme(name, **SAMPLERS[name])
        if "delays" in sampler.needs:
            learner.delays = Delays(rng.lognormal(size=clients))
        learner.observations = observations_for(sampler, learner, SAMPLES, rng)
        setup = Setup(
            learner.n_samples,
            learner.p,
            labels=learner.labels,
            dimension=network.dimension,
            delays=learner.delays and learner.delays.mean,
        )
        sampler = prepared(sampler, setup)
        theta = learner.start(np.array([0]))
        started = process_time() - begin
        checked, before, spent = Checked(sampler, 1), peak(), {"sampler": 0.0}
        for method in ("select", "weigh"):
            clocked(sampler, method, spent)
        rounds, own = [], []
        for t in range(ROUNDS + 2):
            begin, spent["sampler"] = process_time(), 0.0
            theta, _ = play_round(learner, checked, theta, Draws(np.array([0]), t))
            rounds.append(1e3 * (process_time() - begin))
            own.append(1e3 * spent["sampler"])
        added = (peak() - before) / 1e6
    print(f"{median(rounds[2:]):10.1f}{median(own[2:]):12.1f}{started:9.1f}{added:7.0f}")


def population(clients: int, rng: np.random.Generator, folder: Path) -> FederatedDataset:
    """Write the samples to a file, and map it into memory."""
    rows = clients * SAMPLES
    x = np.memmap(folder / "x", np.float32, "w+", shape=(rows, FEATURES))
    for first in range(0, rows, 1_000_000):
        x[first : first + 1_000_000] = rng.standard_normal((len(x[first : first + 1_000_000]), 8))
    y = rng.integers(0, CLASSES, rows)
    p = rng.lognormal(size=clients)
    start = np.arange(clients + 1) * SAMPLES
    return FederatedDataset("many", x, y, start, p / p.sum(), x[:0], y[:0], classes=CLASSES)


def clocked(sampler: object, method: str, spent: dict[str, float]) -> None:
    """Add a method's CPU seconds to `spent`."""
    work = getattr(sampler, method)

    def run(*arguments):
        begin = process_time()
        result = work(*arguments)
        spent["sampler"] += process_time() - begin
        return result

    object.__setattr__(sampler, method, run)


def peak() -> int:
    """Return the largest memory of this process so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], int(sys.argv[3]))
    else:
        main()
