"""Time a round against the number of clients in it, and of seeds that are stacked.

``python benchmarks/scaling.py [--threads 1]``: the MLP of fraboni2021clustered, N = 10 steps on
batches of B = 50 of random images, clients drawn from a population of 1,000.  The cost of a slot
should fall with their number at first, and then stay flat.
"""

from functools import partial
from statistics import median

import numpy as np
import timing

from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.operations import step_bytes
from fedsampling.learning.models.settings import Mlp
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import train
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup

CLIENTS, OWN, STEPS, BATCH = 1000, 100, 10, 50
SIZES = [(1, 1), (10, 1), (100, 1), (1000, 1), (10, 4), (10, 16), (100, 4), (100, 16)]


def main() -> None:
    """Measure all sizes in turn."""
    arguments = timing.arguments(__doc__, repetitions=5)
    trainer = learner()

    def play(m: int, seeds: int) -> None:
        sampler = prepared(Uniform(m=m), Setup(trainer.n_samples, trainer.p, seeds))
        train(trainer, sampler, range(seeds), 1, [])

    contestants = {size: timing.seconds(partial(play, *size)) for size in SIZES}
    times = timing.take_turns(contestants, arguments.repetitions)
    print(f"{'m':>5} {'seeds':>6} {'s per round':>12} {'ms per slot':>12} {'against m=10':>13}")
    for (m, seeds), spent in times.items():
        slot = [duration / m / seeds for duration in spent]
        ratio = median(own * 10 / ten for own, ten in zip(slot, times[10, 1], strict=True))
        seconds = 1e3 * median(slot)
        print(f"{m:5} {seeds:6} {median(spent):12.3f} {seconds:12.2f} {ratio:13.2f}")


def learner() -> NetworkLearner:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (CLIENTS * OWN, 28, 28), dtype=np.uint8)
    y = rng.integers(0, 10, len(x))
    start, p = np.arange(CLIENTS + 1) * OWN, np.full(CLIENTS, 1 / CLIENTS)
    data = FederatedDataset("random", x, y, start, p, x[:0], y[:0], classes=10)
    network = Mlp().build(x.shape[1:], 10)
    memory = step_bytes(network, x.shape[1:], BATCH)
    work = LocalWork(batch=BATCH, step=0.01, steps=STEPS)
    return NetworkLearner(network, data, work, activation_bytes=memory)


if __name__ == "__main__":
    main()
