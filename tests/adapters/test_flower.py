"""The Flower strategy in Flower's simulation agrees with our own loop."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.helpers.small_rounds import SCHEMES, check_rounds
from tests.shared import ROOT, line_of

import fedsampling as fs


def test_flower_moves_the_model_as_our_own_loop_does():
    for framework in ("flwr", "ray"):
        pytest.importorskip(framework, reason="needs Flower: make test-adapters")
    process = subprocess.run(
        [sys.executable, "-m", "tests.helpers.flower_rounds"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    print(process.stderr[-3000:])  # is shown where the test fails
    lines = [line for line in process.stdout.splitlines() if line.startswith("found ")]
    assert lines
    rounds = json.loads(lines[0].removeprefix("found "))
    assert {name for name, *_ in rounds} == set(SCHEMES)
    for name, failing, played in rounds:
        check_rounds(played, name, failing)


class Grid:
    """Five nodes in this process; `fails(message)` is an error, or None."""

    def __init__(self, first=100, fails=lambda message: None):
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
        self.nodes, self.fails, self.trained = range(first, first + 5), fails, []

    def get_node_ids(self):
        return [*self.nodes]

    def send_and_receive(self, messages, timeout=None):
        replies = [self.answer(message) for message in messages]
        return replies[::-1]  # the last message is answered first

    def answer(self, message):
        """Answer with the slot as the change of each array."""
        from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict

        node, kind = message.metadata.dst_node_id, message.metadata.message_type
        if error := self.fails(message):
            return Message(error, reply_to=message)
        metrics = MetricRecord({"num-examples": 10, "client": node, "loss": 1.0, "work-loss": 1.0})
        if kind != "train":
            return Message(RecordDict({"about": metrics}), reply_to=message)
        self.trained.append(node)
        change = message.content["config"]["slot"] + 1
        arrays = ArrayRecord(
            {
                name: Array(np.asarray(array.numpy() + change, array.numpy().dtype))
                for name, array in message.content["arrays"].items()
            }
        )
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def trained(scheme, grid=None, rounds=1, **options):
    """Train from arrays of zeros; return the last ones and the strategy."""
    from flwr.app import Array, ArrayRecord

    from fedsampling.adapters.flower import SchemeStrategy

    zeros = {
        "layer.weight": np.zeros((2, 3), np.float32),
        "norm.running_var": np.zeros(3, np.float32),
        "norm.num_batches_tracked": np.zeros((), np.int64),
    }
    strategy = SchemeStrategy(
        fs.scheme(**scheme), min_available_nodes=5, fraction_evaluate=0.0, **options
    )
    first = ArrayRecord({name: Array(array) for name, array in zeros.items()})
    result = strategy.start(grid or Grid(), first, num_rounds=rounds)
    return {name: array.numpy() for name, array in result.arrays.items()}, strategy


@pytest.fixture
def flower(monkeypatch):
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    return pytest.importorskip("flwr", reason="needs Flower: make test-adapters")


def failing(kind, reason, nodes=(102,)):
    """Return what fails in a grid: the answers of some nodes to messages of a kind."""
    from flwr.app import Error

    def fails(message):
        about = message.metadata
        return (
            Error(code=0, reason=reason)
            if about.message_type == kind and about.dst_node_id in nodes
            else None
        )

    return fails


def test_replies_belong_to_slots_and_buffers_are_averaged(flower):
    arrays, strategy = trained({"name": "full"}, server_step=0.5)
    assert strategy._cohort._dimension == 6
    np.testing.assert_allclose(arrays["layer.weight"], 0.5 * 3, rtol=1e-6)
    np.testing.assert_allclose(arrays["norm.running_var"], 3, rtol=1e-6)
    assert arrays["norm.num_batches_tracked"] == 3


@pytest.mark.parametrize("reason", [None, "", "out of memory"])
def test_a_node_that_fails_is_left_out_and_the_others_weigh_more(flower, reason):
    arrays, _ = trained({"name": "full"}, Grid(fails=failing("train", reason)))
    np.testing.assert_allclose(arrays["layer.weight"], (1 + 2 + 4 + 5) / 4, rtol=1e-6)


def test_a_node_without_a_loss_is_not_available_in_the_round(flower):
    grid = Grid(fails=failing("query.losses", "crashed"))
    trained({"name": "power_of_choice", "m": 4, "d": 4}, grid)
    assert {*grid.trained} == {100, 101, 103, 104}


def test_a_start_is_a_new_training(flower):
    grids = [Grid(), Grid(), Grid(first=200)]
    _, strategy = trained({"name": "osmd", "m": 2}, grids[0], rounds=3)
    from flwr.app import Array, ArrayRecord

    for grid in grids[1:]:
        first = ArrayRecord({"w": Array(np.zeros(6, np.float32))})
        strategy.start(grid, first, num_rounds=3)
    assert grids[1].trained == grids[0].trained
    assert [node - 100 for node in grids[2].trained] == grids[0].trained


def test_options_and_answers_that_cannot_work_are_one_line(flower):
    full = {"name": "full"}
    assert line_of(trained, full, fraction_train=0.5).startswith("fraction_train: no effect")
    assert line_of(trained, full, min_train_nodes=3).startswith("min_train_nodes: no effect")
    assert line_of(trained, full, buffers=["w"]).startswith("buffers: 'w' is not the name of an a")
    grid = Grid(fails=failing("query", "no function"))
    assert line_of(trained, full, grid).startswith("node 102: no answer to 'query': no function;")
    grid = Grid(fails=failing("query.losses", "no function", range(200)))
    line = line_of(trained, {"name": "power_of_choice", "m": 2, "d": 3}, grid)
    assert line.startswith("nodes: no answer to 'query.losses': no function; add a function")


def test_a_round_waits_until_a_node_is_connected(flower):
    grid = Grid()

    def fails(message):
        if message.metadata.message_type == "train":
            grid.nodes = []

    grid.fails = fails
    line = line_of(trained, {"name": "full"}, grid, rounds=2, timeout=0)
    assert line.startswith("nodes: none of the 5 nodes of the first round is connected")
