"""Time stacked recurrent networks against a loop over clients with PyTorch's modules.

``python benchmarks/recurrent.py [threads]``: local steps of fraboni2022general's LSTM (10 clients,
batches of 64) and of chen2022optimal's GRU (10 clients, batches of 8), by both ways on the same
weights and batches in the same process.  The minimum over repetitions counts; with one thread it
is CPU time, which other work on the machine disturbs less.  The loops run twice: with the C
library's default memory handling, as in a plain script, and with `keep_memory`, as in the package.
Prints tables, and checks that both give the same parameters.
"""

import sys
from collections.abc import Callable
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedsampling.learning.models import products
from fedsampling.learning.models.devices import keep_memory
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.operations import operations
from fedsampling.learning.models.settings import Gru, Lstm

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
CLOCK = process_time if THREADS == 1 else perf_counter
CLIENTS, STEPS, TIMES = 10, 2, 5
RATE = 0.5


class Reader(nn.Module):
    """The same network as PyTorch code writes it."""

    def __init__(self, kind: type, symbols: int, embedding: int, hidden: int, every: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, embedding)
        self.layers = kind(embedding, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, symbols)
        self.every = every

    def forward(self, x: Tensor) -> Tensor:
        h = self.layers(self.embedding(x))[0]
        return self.head(h if self.every else h[:, -1])


CASES = {
    "LSTM, 80 steps, B=64": (Lstm(), Reader(nn.LSTM, 100, 8, 100, False), 100, 80, 64),
    "GRU, 5 steps, B=8": (Gru(), Reader(nn.GRU, 86, 256, 256, True), 86, 5, 8),
}


def main() -> None:
    torch.set_num_threads(THREADS)
    problems = {name: problem(*case) for name, case in CASES.items()}
    plain = {name: least(lambda p=p: loop(*p[1:]))[0] for name, p in problems.items()}
    keep_memory()
    print(f"{THREADS} thread(s); ms per client and step, and ratios to the stack")
    print(f"{'':22}{'loop':>16}{'keeping memory':>16}{'stack':>8}{'GFLOP/s':>9}  difference")
    for name, (network, module, theta, x, y) in problems.items():
        kept, by_loop = least(lambda m=module, t=theta, x=x, y=y: loop(m, t, x, y))
        own, by_stack = least(lambda n=network, t=theta, x=x, y=y: stack(n, t, x, y))
        difference = (by_loop - by_stack).abs().max().item()
        assert difference < 1e-4, f"{name}: the parameters differ by {difference}"
        speed = operations(network, x.shape[3:], x.shape[2]).step / own / 1e6
        print(
            f"{name:22}{plain[name]:8.2f} ({plain[name] / own:4.2f}×)"
            f"{kept:8.2f} ({kept / own:4.2f}×){own:8.2f}{speed:9.0f}  {difference:.0e}"
        )
    matrices()


def problem(record: Lstm | Gru, module: Reader, symbols: int, length: int, batch: int) -> tuple:
    network = record.build((length,), symbols)
    rng = np.random.default_rng(0)
    theta = torch.from_numpy(np.stack([network.initial(rng) for _ in range(CLIENTS)]))
    draw = torch.Generator().manual_seed(0)
    x = torch.randint(symbols, (STEPS, CLIENTS, batch, length), generator=draw)
    y = torch.randint(symbols, x.shape if module.every else x.shape[:-1], generator=draw)
    return network, module, theta, x, y


def loop(module: Reader, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """One client after the other, each with its own optimiser."""
    after = []
    for client in range(CLIENTS):
        vector_to_parameters(theta[client].clone(), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
        for inputs, target in zip(x[:, client], y[:, client], strict=True):
            optimiser.zero_grad()
            z = module(inputs)
            nn.functional.cross_entropy(z.flatten(0, -2), target.flatten()).backward()
            optimiser.step()
        after.append(parameters_to_vector(module.parameters()).detach())
    return torch.stack(after)


def stack(network: Network, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """All clients in one stack."""
    for inputs, target in zip(x, y, strict=True):
        theta = theta.detach().requires_grad_()
        z = network.outputs(theta, inputs)
        losses = nn.functional.cross_entropy(z.flatten(0, -2), target.flatten(), reduction="sum")
        (gradient,) = torch.autograd.grad(losses / target[0].numel(), theta)
        theta = torch.add(theta.detach(), gradient, alpha=-RATE)
    return theta


def matrices() -> None:
    """Print the speed of products by each library."""
    print(f"\n{'GFLOP/s of 10 products':34}{'oneDNN':>8}{'MKL':>8}")
    for rows, inputs, outputs, note in (
        (64, 100, 400, "a step of the LSTM"),
        (5120, 100, 400, "all its inputs"),
        (20, 3136, 512, "digits CNN, B=20"),
        (1024, 1024, 1024, "large"),
    ):
        x, w = torch.randn(10, rows, inputs), torch.randn(10, outputs, inputs)
        speeds = []
        for library in ("oneDNN", "MKL"):
            with patch.object(products, "library", lambda name=library: name):
                spent = least(lambda x=x, w=w: products.multiply(x, w))[0]
            seconds = spent * CLIENTS * STEPS / 1e3
            speeds.append(20 * rows * inputs * outputs / seconds / 1e9)
        print(f"{rows:5} × {inputs:4} × {outputs:4} {note:17}{speeds[0]:8.0f}{speeds[1]:8.0f}")


def least(work: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Return the minimum milliseconds per client and step, and the result of `work`."""
    result, times = work(), []
    for _ in range(TIMES):
        begin = CLOCK()
        result = work()
        times.append(CLOCK() - begin)
    return min(times) * 1e3 / CLIENTS / STEPS, result


if __name__ == "__main__":
    main()
