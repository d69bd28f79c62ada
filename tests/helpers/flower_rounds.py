"""Rounds of Flower's simulation engine, printed as JSON; run by test_flower.py in a process."""

import json
import logging
import os

import ray
import torch
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation
from tests.helpers.small_network import SIZES
from tests.helpers.small_rounds import (
    ROUNDS,
    SCHEMES,
    SEED,
    SERVER_STEP,
    descend,
    first_model,
    loss,
    noting,
)
from torch import nn

import fedsampling as fs
from fedsampling.adapters.flower import SchemeStrategy

logging.getLogger("flwr").setLevel(logging.WARNING)
client = ClientApp()
server = ServerApp()


@client.query()
def about(message, context):
    number = int(context.node_config["partition-id"])
    metrics = MetricRecord({"num-examples": int(SIZES[number]), "client": number})
    return Message(RecordDict({"about": metrics}), reply_to=message)


@client.query("losses")
def losses(message, context):
    model = first_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    metrics = MetricRecord({"loss": loss(model, int(context.node_config["partition-id"]))})
    return Message(RecordDict({"losses": metrics}), reply_to=message)


@client.train()
def train(message, context):
    torch.set_num_threads(1)
    number = int(context.node_config["partition-id"])
    if number == message.content["config"]["failing"]:
        raise RuntimeError("as asked")
    model = first_model()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    descend(model, number)
    metrics = MetricRecord({"num-examples": int(SIZES[number])})
    reply = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(reply, reply_to=message)


class Noting(SchemeStrategy):
    """The strategy, whose cohorts are noted."""

    def _prepare(self, *arguments):
        super()._prepare(*arguments)
        self.noted = ([], [])
        noting(self._cohort, *self.noted)


@server.main()
def main(grid, context):
    played = []
    for name, failing in [
        *((name, -1) for name in SCHEMES),
        ("md", 2),
        ("clustered_similarity", 2),
    ]:
        strategy = Noting(
            fs.scheme(name, **SCHEMES[name]),
            seed=SEED,
            server_step=SERVER_STEP,
            min_available_nodes=len(SIZES),
            fraction_evaluate=0.0,
        )
        result = strategy.start(
            grid,
            ArrayRecord(first_model().state_dict()),
            num_rounds=ROUNDS,
            train_config=ConfigRecord({"failing": failing}),
        )
        model = first_model()
        model.load_state_dict(result.arrays.to_torch_state_dict())
        theta = nn.utils.parameters_to_vector(model.parameters()).tolist()
        played.append((name, failing, (*strategy.noted, theta)))
    print("found", json.dumps(played), flush=True)


def start_ray():
    """Start Ray, which gives up after 30 s where the machine is too busy to start it in time."""
    for attempts_left in reversed(range(5)):
        try:
            ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
            return
        except Exception:  # it has no class of its own
            ray.shutdown()
            if not attempts_left:
                raise


if __name__ == "__main__":
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    start_ray()
    run_simulation(
        server,
        client,
        num_supernodes=len(SIZES),
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    ray.shutdown()
