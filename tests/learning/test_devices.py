"""A GPU's way to compute, all slots at once, on a CPU: equal results, few operations, memory."""

import numpy as np
import pytest
import torch
from torch import nn

from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models import resnet
from fedsampling.learning.models.devices import forced_at_once
from fedsampling.learning.models.own import own_network
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.evaluation import client_losses, evaluate
from fedsampling.learning.training.launches import Counter, of_step
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.samples import DeviceSamples
from fedsampling.samplers.protocol.slots import Slots

CLIENTS, CLASSES, BATCH = 4, 10, 3
ALL_TERMS = {"momentum": 0.5, "weight_decay": 0.1, "clip": 1.0, "prox": 0.1}
NETWORKS = {  # settings, and the shape of a sample
    "linear": ({}, (5,)),
    "softmax": ({}, (4, 4)),
    "mlp": ({"hidden": 5}, (4, 4)),
    "cifar_cnn": ({}, (18, 18, 3)),
    "simple_cnn": ({"dense": 8}, (4, 4)),
    "cifar100_cnn": ({}, (8, 8, 3)),
    "leaf_cnn": ({"dense": 8}, (4, 4)),
    "convnet": ({}, (16, 16)),
    "resnet18": ({}, (8, 8, 3)),
    "resnet18 by groups": ({"norm": "group"}, (8, 8, 3)),
    "lstm": ({"hidden": 6}, (5,)),
    "leaf_lstm": ({"hidden": 6}, (5,)),
    "gru": ({"embedding": 4, "hidden": 6}, (5,)),
}


@pytest.fixture(autouse=True)
def thin(monkeypatch):
    """ResNet-18 with fewer channels, in the same structure."""
    monkeypatch.setattr(resnet, "_STAGES", ((4, 1), (4, 2), (8, 2), (8, 2)))
    monkeypatch.setattr(resnet, "_GROUPS", 2)


def learner(name, **work):
    """Clients with 3, 4, 5 and 6 random samples."""
    settings, sample = NETWORKS[name]
    named, rng = name.split()[0], np.random.default_rng(0)
    classes = None if named == "linear" else CLASSES
    tokens = named in ("lstm", "leaf_lstm", "gru")
    start = np.concatenate([[0], np.cumsum(np.arange(3, 3 + CLIENTS))])
    x = rng.integers(CLASSES if tokens else 256, size=(start[-1], *sample))
    y = rng.integers(CLASSES, size=x.shape if named == "gru" else len(x))
    if classes is None:
        x, y = x.astype(float), y.astype(float)
    data = FederatedDataset(
        "random", x, y, start, np.diff(start) / start[-1], x[:7], y[:7], classes=classes
    )
    network = Model.model_validate({"name": named, **settings}).build(sample, classes)
    inputs = "tokens" if tokens else "raw" if classes is None else "unit"
    trained = LocalWork(batch=BATCH, step=0.1, steps=2, **work)
    return NetworkLearner(network, data, trained, inputs)


def slots_of(number):
    """`number` slots in two runs, of all clients in turn."""
    half = np.arange(number // 2) % CLIENTS
    return Slots.stack([half, half])


def trained(stacked, number, seeds):
    theta = stacked.start(seeds)
    return stacked.stacks.train(theta, slots_of(number), Draws(seeds, 0))[0]


@pytest.fixture
def double(monkeypatch):
    """Models and inputs in double precision."""
    start, tensor = NetworkLearner.start, NetworkLearner._tensor
    convert = DeviceSamples.convert

    def converted(self, x):
        inputs = convert(self, x)
        return inputs.double() if inputs.is_floating_point() else inputs

    monkeypatch.setattr(NetworkLearner, "start", lambda self, seeds: start(self, seeds).double())
    monkeypatch.setattr(NetworkLearner, "_tensor", lambda *values: tensor(*values).double())
    monkeypatch.setattr(DeviceSamples, "convert", converted)


def close(first, second):
    torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_updates_are_those_of_a_cpu_up_to_rounding(name, double):
    stacked, seeds = learner(name), np.arange(2)
    expected = trained(stacked, 6, seeds)
    assert expected.abs().max() > 1e-4
    with forced_at_once():
        close(trained(stacked, 6, seeds), expected)


@pytest.mark.parametrize("name", NETWORKS)
def test_measurements_are_those_of_a_cpu_up_to_rounding(name, double):
    stacked = learner(name)
    theta = stacked.start(np.arange(3))
    theta += 0.1 * torch.randn(theta.shape, generator=torch.Generator().manual_seed(1))

    def measured():
        values = {**evaluate(stacked, theta, dropout=True), "each": client_losses(stacked, theta)}
        return {name: torch.from_numpy(value) for name, value in values.items()}

    expected = measured()
    assert expected["each"].std() > 0
    with forced_at_once():
        close(measured(), expected)


@pytest.mark.parametrize(
    ("name", "work"),
    [*((name, {}) for name in NETWORKS if name != "cifar100_cnn"), ("lstm", ALL_TERMS)],
)
def test_a_step_dispatches_as_many_operations_for_10_as_for_100_slots(name, work):
    stacked, seeds = learner(name, **work), np.arange(2)

    def operations(number):
        with forced_at_once(), Counter() as counter:
            trained(stacked, number, seeds)
        return counter.operations

    assert operations(100) == operations(10)


def test_a_step_of_a_large_network_does_too():
    """Counted without data, at the paper's size."""
    network = Model.model_validate({"name": "cifar100_cnn"}).build((32, 32, 3), 100)
    assert len({of_step(network, (32, 32, 3), 20, slots).operations for slots in (10, 100)}) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_an_evaluation_of_100_runs_dispatches_as_much_as_of_10(name):
    few, many = (2, 5) if name == "cifar100_cnn" else (10, 100)  # it has millions of parameters
    stacked = learner(name)

    def operations(runs):
        theta = stacked.start(np.arange(runs))
        with forced_at_once(), Counter() as counter:
            evaluate(stacked, theta, dropout=True)
        return counter.operations

    assert operations(many) == operations(few)


def test_a_users_module_is_stacked_by_vmap():
    """One that draws, or that changes buffers, is computed slot by slot."""
    network = own_network(nn.Sequential(nn.Flatten(), nn.Linear(16, CLASSES)), (4, 4), CLASSES)
    steps = [of_step(network, (4, 4), BATCH, slots) for slots in (10, 100)]
    assert steps[0].operations == steps[1].operations


def test_a_step_reads_nothing_back(monkeypatch):
    stacked, read = learner("cifar_cnn"), []
    for name in ("item", "cpu", "numpy", "tolist"):
        method = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda self, *a, n=name, m=method: read.append(n) or m(self, *a)
        )
    with forced_at_once():
        trained(stacked, 10, np.arange(2))
    assert read == ["cpu", "numpy"]  # the losses of all steps, once


def test_counts_of_a_step_by_hand():
    """Of softmax regression: 2 · 16 · 10 operations per sample, and twice as many for a step."""
    network = Model.model_validate({"name": "softmax"}).build((4, 4), CLASSES)
    step = of_step(network, (4, 4), BATCH, 7)
    assert step.flop == 7 * 2 * (2 * BATCH * 16 * CLASSES)
    assert step.peak_bytes < step.bytes
    assert step.bytes > 4 * 7 * (170 + BATCH * 16)


def test_the_peak_counts_arrays_only_while_they_exist():
    with Counter() as counter:
        for _ in range(3):
            torch.zeros(100).add_(1)
        kept = torch.zeros(50)
    assert counter.peak == 400
    assert (counter.operations, counter.bytes) == (7, 3 * 3 * 400 + kept.nbytes)


class TestMemoryOfAGpu:
    """A fake limit: a stack of more slots than `fits` fails."""

    @pytest.fixture
    def limited(self, monkeypatch):
        def limit(fits):
            stacked = learner("mlp")
            train_stack = stacked.stacks._train_stack

            def checked(start, *arguments):
                if len(start) > fits:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                return train_stack(start, *arguments)

            monkeypatch.setattr(stacked.stacks, "_train_stack", checked)
            return stacked

        return limit

    def test_half_as_many_slots_train_at_once_after_it_is_exhausted(self, limited, capsys):
        stacked, seeds = limited(5), np.arange(2)
        stacked.stacks.size = 10
        expected = trained(learner("mlp"), 20, seeds)
        assert torch.equal(trained(stacked, 20, seeds), expected)
        assert stacked.stacks.size == 5
        assert "5 slots train at once" in capsys.readouterr().err

    @pytest.mark.parametrize("guest", ["module", "criterion"])
    def test_a_users_module_or_loss_may_exhaust_it_once(self, guest):
        errors = []

        class Flat(nn.Flatten):
            def forward(self, x):
                if errors and guest == "module":
                    raise errors.pop()
                return super().forward(x)

        def loss(outputs, targets):
            if errors and guest == "criterion":
                raise errors.pop()
            return nn.functional.cross_entropy(outputs, targets, reduction="none")

        module = nn.Sequential(Flat(), nn.Linear(16, CLASSES))
        network = own_network(module, (4, 4), CLASSES, loss)
        ours = learner("mlp")
        stacked, seeds = NetworkLearner(network, ours.data, ours.local), np.arange(2)
        stacked.stacks.size = 10
        expected = trained(stacked, 20, seeds)
        errors.append(torch.OutOfMemoryError("CUDA out of memory"))
        assert torch.equal(trained(stacked, 20, seeds), expected)
        assert (errors, stacked.stacks.size) == ([], 5)

    def test_it_may_be_exhausted_once(self, limited):
        stacked = limited(4)
        stacked.stacks.size = 10
        with pytest.raises(torch.OutOfMemoryError):
            trained(stacked, 20, np.arange(2))

    def test_a_resumed_job_keeps_its_stack(self, limited):
        stacked = limited(5)
        stacked.stacks.size = 10
        theta = stacked.start(np.arange(2))
        trained(stacked, 20, np.arange(2))
        resumed = learner("mlp")
        resumed.restore(stacked.state(theta))
        assert (resumed.stacks.size, resumed.stacks.halved) == (5, True)
