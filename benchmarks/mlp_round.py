"""Time figure 1's rounds of fraboni2021clustered against loops over clients and other engines.

``python benchmarks/mlp_round.py [--threads 1] [--flower PYTHON] [--pfl PYTHON]``: 100 clients with
500 images of one digit each, m = 10 of them a round, N = 50 steps on batches of B = 50, an MLP of
784-50-10.  The other engines run in separate environments, given by the path of their Python,
or are left out.  MNIST from ``$FEDSAMPLING_MIRROR`` if that is set, else random images of the
same shape.  ``docs/performance.md`` has the results.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import timing
import torch
from client_loops import average, careful, usual, usual_evaluation
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

from fedsampling.base.streams import Draws
from fedsampling.data.datasets.mnist import Mnist
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.operations import operations
from fedsampling.learning.models.products import multiply, subtract_product
from fedsampling.learning.models.settings import Mlp
from fedsampling.learning.training.evaluation import client_losses
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import train
from fedsampling.samplers.basic import MD
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, Slots

CLIENTS, OWN, M, STEPS, BATCH, STEP = 100, 500, 10, 50, 50, 0.01
ROUNDS = 3  # of a repetition
USUAL, CAREFUL, PRODUCTS = "loop, as usually written", "loop, careful", "its products alone"
# Lower bound on traffic if only one slot's numbers stay in the cache: each batch is read, and the
# model is read and written.
BYTES = M * STEPS * 4 * (BATCH * 784 + 2 * 39_760)


def main() -> None:
    """Measure all contestants and print the tables."""
    arguments = timing.arguments(__doc__, repetitions=9, engines=("flower", "pfl"))
    threads = arguments.threads
    data = images()
    network = Mlp().build(data.x.shape[1:], data.classes)
    work = LocalWork(batch=BATCH, step=STEP, steps=STEPS)
    learner = NetworkLearner(network, data, work)
    automatic = NetworkLearner(replace(network, layers=()), data, work)
    x, x_test = ((images / 255).astype(np.float32) for images in (data.x, data.x_test))
    numbers = replace(data, x=x, x_test=x_test)
    from_numbers = NetworkLearner(network, numbers, work, inputs="raw")
    rows = learner.samples.convert(learner.samples.x).flatten(1)
    check(learner, rows)
    large, product_flop = timing.large_product()
    contestants = {
        "stacked": timing.seconds(lambda: stacked(learner)),
        "stacked, automatic gradients": timing.seconds(lambda: stacked(automatic)),
        "stacked, images as numbers": timing.seconds(lambda: stacked(from_numbers)),
        USUAL: timing.seconds(lambda: as_usual(rows, learner.samples.y)),
        CAREFUL: with_care(rows, learner.samples.y),
        PRODUCTS: timing.seconds(products_alone),
        "evaluation": timing.seconds(lambda: evaluations(learner, 1)),
        "evaluation, ten seeds": timing.seconds(lambda: evaluations(learner, 10)),
        "evaluation, careful": timing.seconds(lambda: client_by_client(rows, learner.samples.y)),
        "evaluation, as usually written": timing.seconds(lambda: loaders(rows, learner.samples.y)),
    }
    contestants = {name: per_round(run) for name, run in contestants.items()}
    with ExitStack() as stack:
        for name in ("flower", "pfl"):
            if python := getattr(arguments, name):
                script = Path(__file__).with_name(f"{name}_round.py")
                contestants[name] = stack.enter_context(engine(python, script, data, threads))
        contestants["large product"] = large
        times = timing.take_turns(contestants, arguments.repetitions)
    product = {"large product": times.pop("large product")}
    timing.print_ratios(times, "stacked")
    print()
    with_evaluation = {
        "stacked, with evaluation": together(times, "stacked", "evaluation"),
        "usual, with evaluation": together(times, USUAL, "evaluation, as usually written"),
        "careful, with evaluation": together(times, CAREFUL, "evaluation, careful"),
    }
    timing.print_ratios(with_evaluation, "stacked, with evaluation")
    flop = M * STEPS * operations(network, data.x.shape[1:], BATCH).step
    rounds = {name: times[name] for name in ("stacked", USUAL, CAREFUL, PRODUCTS)}
    timing.print_rates(rounds | product, flop, "large product", product_flop)
    print(f"least traffic {BYTES / 1e9:.2f} GB per round")


def images() -> FederatedDataset:
    """Read MNIST from the mirror, or generate images of its shape."""
    if mirror := os.environ.get("FEDSAMPLING_MIRROR"):
        partition = {"name": "by_digit", "clients_per_label": CLIENTS // 10, "variant": "text"}
        record = Mnist.model_validate({"partition": partition, "importance": "equal"})
        return record.load("official", 0, Path(mirror), mirror)
    rng = np.random.default_rng(0)
    start = np.arange(CLIENTS + 1) * OWN
    x = rng.integers(0, 256, (CLIENTS * OWN, 28, 28), dtype=np.uint8)
    y = np.repeat(np.arange(10), CLIENTS * OWN // 10)
    p = np.full(CLIENTS, 1 / CLIENTS)
    return FederatedDataset("mnist", x, y, start, p, x[:0], y[:0], classes=10)


def stacked(learner) -> None:
    """Three rounds of this package, with selection, batches, the server's step and the counting."""
    train(learner, sampler_of(learner), [0], ROUNDS, [])


def sampler_of(learner):
    return prepared(MD(m=M), Setup(learner.n_samples, learner.p))


def products_alone() -> None:
    """The hidden layer's products of three rounds alone: a lower bound on a round."""
    x, w, g = torch.rand(M, BATCH, 784), torch.rand(M, 50, 784), torch.zeros(M, 50, BATCH)
    for _ in range(ROUNDS * STEPS):
        multiply(w, x)
        subtract_product(w, g, x)


def evaluations(learner, seeds: int) -> None:
    """Three rounds' evaluations of all clients' training data."""
    theta = learner.start(np.arange(seeds))
    for _ in range(ROUNDS):
        client_losses(learner, theta)


def client_by_client(x: Tensor, y: Tensor) -> None:
    """Three rounds' evaluations by a loop over clients, each in one pass."""
    parameters = [parameter.detach() for parameter in module().parameters()]
    for _ in range(ROUNDS):
        for images, labels in zip(x.split(OWN), y.split(OWN), strict=True):
            functional.cross_entropy(forward(parameters, images), labels).item()


def loaders(x: Tensor, y: Tensor) -> None:
    """Three rounds' evaluations as federated code is usually written."""
    model, clients = module(), datasets(x, y)
    for _ in range(ROUNDS):
        usual_evaluation(model, clients, BATCH)


def as_usual(x: Tensor, y: Tensor) -> None:
    """Three rounds as federated code is usually written."""
    model, rng, clients = module(), np.random.default_rng(0), datasets(x, y)
    for _ in range(ROUNDS):
        drawn = [clients[client] for client in rng.integers(CLIENTS, size=M)]
        model = usual(model, drawn, STEPS, BATCH, STEP)


def datasets(x: Tensor, y: Tensor) -> list[TensorDataset]:
    return [TensorDataset(*client) for client in zip(x.split(OWN), y.split(OWN), strict=True)]


def with_care(x: Tensor, y: Tensor) -> timing.Contestant:
    """Three rounds of the careful loop, with random numbers drawn beforehand."""
    rng = np.random.default_rng(0)

    def run() -> float:
        parameters = [parameter.detach() for parameter in module().parameters()]
        drawn = rng.integers(CLIENTS, size=(ROUNDS, M, 1, 1)) * OWN
        rows = torch.from_numpy(drawn + rng.integers(OWN, size=(ROUNDS, M, STEPS, BATCH)))
        begin = perf_counter()
        for client_rows in rows:
            parameters = average(careful(forward, parameters, x, y, client_rows, STEP))
        return perf_counter() - begin

    return run


def together(times: dict[str, list[float]], *names: str) -> list[float]:
    """Seconds of several contestants in each turn."""
    return [sum(turn) for turn in zip(*(times[name] for name in names), strict=True)]


def per_round(run: timing.Contestant) -> timing.Contestant:
    return lambda: run() / ROUNDS


def module() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 10))


def forward(w: Sequence[Tensor], x: Tensor) -> Tensor:
    return functional.linear(functional.linear(x, w[0], w[1]).relu(), w[2], w[3])


def check(learner, x: Tensor) -> None:
    """Stop unless stack and loop compute the same updates from the same batches."""
    slots, rng = Slots.stack([np.arange(3, 100, 10)]), Draws(np.array([0]), 0)
    theta = learner.start(np.array([0]))
    updates = learner.work(theta, slots, sampler_of(learner), rng)
    plan = learner.local.batches(learner.n_samples[slots.client], slots, rng)
    rows = [
        torch.from_numpy(learner.data.start[client] + plan.index[:, slot])
        for slot, client in enumerate(slots.client)
    ]
    parameters = list(learner.network.parts(theta[0][None]).values())
    first = [part[0] for part in parameters]
    models = careful(forward, first, x, learner.samples.y, rows, STEP)
    flat = torch.stack([torch.cat([part.flatten() for part in model]) for model in models])
    difference = float((flat - theta[0] - updates).norm() / updates.norm())
    assert difference < 1e-4, f"the updates differ by {difference} of their norm"


@contextmanager
def engine(
    python: str, script: Path, data: FederatedDataset, cores: int
) -> Iterator[timing.Contestant]:
    """Start another engine, which trains one round for each line of its input."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        x = (data.x.reshape(CLIENTS, OWN, 784) / 255).astype(np.float32)
        np.savez(
            path, x=x, y=data.y.reshape(CLIENTS, OWN), m=M, steps=STEPS, batch=BATCH, step=STEP
        )
        command = [python, str(script), str(path), str(cores)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes) as process:

            def run() -> float:
                process.stdin.write("go\n")
                process.stdin.flush()
                for line in process.stdout:
                    if line.startswith("seconds "):
                        return float(line.split()[1])
                raise RuntimeError(f"{script.name} ended before its round did")

            yield run
            process.stdin.close()
            process.stdout.read()


if __name__ == "__main__":
    main()
