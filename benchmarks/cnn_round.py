"""Time rounds of convolutional networks against loops over clients.

``python benchmarks/cnn_round.py [--threads 1]``, a round of ten clients on random images, for each
of three networks: that of fraboni2021clustered on CIFAR-10 (B = 50; 4 of the paper's 100 steps),
the digits network of chen2022optimal (B = 20, one epoch over 100 samples), and the ConvNet of
harshvardhan2025latency (B = 50, five epochs over 100 samples).  Stops if stack and loop differ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import timing
import torch
from client_loops import average, careful, usual
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.data import TensorDataset

from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.operations import operations, step_bytes
from fedsampling.learning.models.settings import CifarCnn, ConvNet, SimpleCnn
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import train
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.protocol.prepared import Prepared, prepared
from fedsampling.samplers.protocol.slots import Setup, Slots

CLIENTS, M, OWN = 20, 10, 100
SEED = np.array([0])


@dataclass(frozen=True)
class Case:
    """A network of this package, the same as an ordinary module, and its clients' work."""

    title: str
    record: Any
    module: Callable[[], nn.Module]
    image: tuple[int, ...]
    work: LocalWork
    undropped: dict[str, float] = field(default_factory=dict)


def cifar() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2),
        nn.Conv2d(64, 64, 3), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def plain(maps: Sequence[int], padding: int, hidden: Sequence[int]) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, maps[0], 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(maps[0], maps[1], 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(hidden[0], hidden[1]), nn.ReLU(), nn.Linear(hidden[1], 10),
    )  # fmt: skip


CASES = [
    Case(
        "CIFAR CNN, B=50, 4 steps",
        CifarCnn(),
        cifar,
        (32, 32, 3),
        LocalWork(batch=50, step=0.01, steps=4),
        {"dropout": 0.0},
    ),
    Case(
        "digits CNN, B=20, 1 epoch of 100 samples",
        SimpleCnn(),
        lambda: plain((32, 64), 2, (64 * 7 * 7, 512)),
        (28, 28),
        LocalWork(batch=20, step=0.01, epochs=1),
    ),
    Case(
        "ConvNet, B=50, 5 epochs of 100 samples",
        ConvNet(),
        lambda: plain((20, 50), 0, (50 * 4 * 4, 500)),
        (28, 28),
        LocalWork(batch=50, step=0.01, epochs=5),
    ),
]


def main() -> None:
    """Measure case after case."""
    arguments = timing.arguments(__doc__, repetitions=5)
    for case in CASES:
        torch.manual_seed(0)
        print(f"\n{case.title}")
        compare(case, arguments.repetitions)


def compare(case: Case, repetitions: int) -> None:
    """Let stack and loops take turns."""
    data = images(case.image)
    made = learner(case, data, case.record)
    check(case, learner(case, data, case.record.model_copy(update=case.undropped)))
    rows = draw(made)
    x, module = channels_first(made), case.module()
    own = [
        TensorDataset(*each) for each in zip(x.split(OWN), made.samples.y.split(OWN), strict=True)
    ][:M]
    last = {"memory_format": torch.channels_last}
    multiply, product_flop = timing.large_product()
    times = timing.take_turns(
        {
            "stacked": timing.seconds(lambda: train(made, sampler_of(made), [0], 1, [])),
            "loop, as usually written": timing.seconds(
                lambda: usual(module, own, len(rows[0]), case.work.batch, case.work.step)
            ),
            "loop, careful": timing.seconds(lambda: loop(case, module, x, made.samples.y, rows)),
            "the same, channels last": timing.seconds(
                lambda: loop(
                    case, case.module().to(**last), x.contiguous(**last), made.samples.y, rows
                )
            ),
            "large product": multiply,
        },
        repetitions,
    )
    timing.print_ratios({key: times[key] for key in times if key != "large product"}, "stacked")
    flop = (
        rows.numel() // case.work.batch * operations(made.network, case.image, case.work.batch).step
    )
    timing.print_rates(times, flop, "large product", product_flop)


def images(shape: tuple[int, ...]) -> FederatedDataset:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (CLIENTS * OWN, *shape), dtype=np.uint8)
    start, p = np.arange(CLIENTS + 1) * OWN, np.full(CLIENTS, 1 / CLIENTS)
    y = rng.integers(0, 10, len(x))
    return FederatedDataset("random", x, y, start, p, x[:0], y[:0], classes=10)


def learner(case: Case, data: FederatedDataset, record: Any) -> NetworkLearner:
    network = record.build(case.image, 10)
    memory = step_bytes(network, case.image, case.work.batch)
    return NetworkLearner(network, data, case.work, activation_bytes=memory)


def draw(made: NetworkLearner) -> Tensor:
    """Return pooled rows of M clients' batches, shape (M, steps, B)."""
    plan = made.local.batches(made.n_samples[:M], slots(), Draws(SEED, 0))
    return torch.from_numpy((made.data.start[:M, None] + plan.index).swapaxes(0, 1).copy())


def slots() -> Slots:
    return Slots.stack([np.arange(M)])


def sampler_of(made: NetworkLearner) -> Prepared:
    return prepared(Uniform(m=M), Setup(made.n_samples, made.p))


def channels_first(made: NetworkLearner) -> Tensor:
    x = made.samples.convert(made.samples.x)
    return (x[..., None] if x.dim() == 3 else x).movedim(-1, 1).contiguous()


def loop(case: Case, module: nn.Module, x: Tensor, y: Tensor, rows: Tensor) -> list[list[Tensor]]:
    """One round of the careful loop, with the server's mean."""
    names = [name for name, _ in module.named_parameters()]

    def forward(w: Sequence[Tensor], inputs: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, dict(zip(names, w, strict=True)), (inputs,))
        return logits

    first = [parameter.detach() for parameter in module.parameters()]
    models = careful(forward, first, x, y, rows, case.work.step)
    average(models)
    return models


def check(case: Case, made: NetworkLearner) -> None:
    """Stop unless stack and loop compute the same updates from the same batches."""
    theta = made.start(SEED)
    updates = made.work(theta, slots(), sampler_of(made), Draws(SEED, 0))
    module = case.module().eval()
    nn.utils.vector_to_parameters(theta[0].clone(), module.parameters())
    models = loop(case, module, channels_first(made), made.samples.y, draw(made))
    flat = torch.stack([torch.cat([part.flatten() for part in model]) for model in models])
    difference = float((flat - theta[0] - updates).norm() / updates.norm())
    # The loop differs as much from itself in double precision: rounding picks another pooled pixel.
    assert difference < 0.01, f"the updates differ by {difference} of their norm"


if __name__ == "__main__":
    main()
