"""Rounds of Flower's simulation engine; run by :mod:`mlp_round` in a separate environment.

``python flower_round.py DATA.npz CORES``: waits for a line on standard input, trains one round,
prints its seconds, and so on.  The client is that of Flower's PyTorch tutorial: a data loader over
the client's samples and an optimiser, for as many epochs as the number of batches requires.
"""

import logging
import os
import sys
from time import perf_counter

import numpy as np
import ray
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("flwr").setLevel(logging.ERROR)
PATH, CORES = sys.argv[1], int(sys.argv[2])
GIVEN = np.load(PATH)
CLIENTS, M = len(GIVEN["y"]), int(GIVEN["m"])
BATCH, STEP = int(GIVEN["batch"]), float(GIVEN["step"])
EPOCHS = int(GIVEN["steps"]) * BATCH // GIVEN["y"].shape[1]
_samples: dict[str, np.ndarray] = {}

client = ClientApp()
server = ServerApp()


def module() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 50), nn.ReLU(), nn.Linear(50, 10))


@client.train()
def train(message: Message, context: Context) -> Message:
    """One client's local work."""
    torch.set_num_threads(1)
    if not _samples:  # once in each worker
        _samples.update(np.load(PATH))
    own = int(context.node_config["partition-id"])
    data = TensorDataset(torch.from_numpy(_samples["x"][own]), torch.from_numpy(_samples["y"][own]))
    model = module()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(model.parameters(), lr=STEP)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    for _ in range(EPOCHS):
        for x, y in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
    metrics = MetricRecord({"num-examples": len(data)})
    reply = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=reply, reply_to=message)


class Clocked(FedAvg):
    """Federated averaging that waits for a line before each round, and prints its seconds."""

    def configure_train(self, *arguments):
        if not sys.stdin.readline():  # the parent has closed the pipe
            ray.shutdown()
            os._exit(0)
        self.begin = perf_counter()
        return super().configure_train(*arguments)

    def aggregate_train(self, *arguments):
        result = super().aggregate_train(*arguments)
        replies = len(list(arguments[1]))
        if replies == M:
            print("seconds", perf_counter() - self.begin, flush=True)
        return result


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Train until standard input ends."""
    strategy = Clocked(
        fraction_train=M / CLIENTS, fraction_evaluate=0.0, min_train_nodes=M,
        min_available_nodes=CLIENTS,
    )  # fmt: skip
    strategy.start(grid, ArrayRecord(module().state_dict()), num_rounds=10**6)


if __name__ == "__main__":
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    run_simulation(
        server,
        client,
        num_supernodes=CLIENTS,
        backend_config={
            "init_args": {"num_cpus": CORES, "include_dashboard": False, "log_to_driver": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
