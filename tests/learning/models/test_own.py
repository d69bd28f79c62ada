"""A user's module trains as in a loop over clients, with the same random numbers."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.helpers.small_network import three_clients
from tests.shared import line_of
from torch import nn

import fedsampling as fs
from fedsampling.base.streams import Draws
from fedsampling.learning.models.dropout import Keeper
from fedsampling.learning.models.own import own_network
from fedsampling.learning.models.own_losses import OwnLoss
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork, dropout_keys
from fedsampling.learning.training.loop import train
from fedsampling.samplers.clustered import ClusteredSimilarity
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, Slots

STEP, STEPS, BATCH = 0.1, 3, 100  # a batch is all of a client's data, so that no draw matters
WORK = {"steps": STEPS, "batch": BATCH, "step": STEP, "rounds": 3}


class Reader(nn.Module):
    """An LSTM or a transformer layer that reads a sequence of symbols."""

    def __init__(self, kind, *sizes, **options):
        super().__init__()
        self.layer = kind(8, *sizes, batch_first=True, **options)
        self.symbols, self.last = nn.Embedding(3, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = self.layer(self.symbols(x))
        return self.last((h[0] if isinstance(h, tuple) else h).mean(1))


class Counting(nn.Module):
    """A running count and a running mean of its inputs, one replaced and one changed in place."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(25, 3)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(25))

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            self.steps = self.steps + 1
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.last(x - self.mean) / (1 + self.steps)


class Functional(nn.Module):
    """Random numbers without a layer."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(25, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = F.dropout(self.first(x.flatten(1)), 0.3, self.training)
        return self.last(h + 0.1 * torch.randn_like(h) if self.training else h)


def with_layer(layer):
    return lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(25, 8), layer(), nn.Tanh(), nn.Linear(8, 3)
    )


def both():
    return nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.4))


mlp = with_layer(nn.Identity)


def by_hand(module, data, rounds):
    """Train all clients one after the other, average all state; return the loss by round."""
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    theta = {key: value.detach().clone() for key, value in module.state_dict().items()}
    values = []
    for t in range(rounds + 1):
        module.load_state_dict(theta)
        outputs = module.eval()(x)
        moved = {key: torch.zeros(value.shape) for key, value in theta.items()}
        total = 0.0
        for k, p in enumerate(data.p):
            part = slice(data.start[k], data.start[k + 1])
            total += p * float(F.cross_entropy(outputs[part], y[part]).detach())
            module.load_state_dict(theta)
            module.train()
            optimizer = torch.optim.SGD(module.parameters(), lr=STEP)
            for step in range(STEPS):
                optimizer.zero_grad()
                torch.manual_seed(generator_seed(t, k, step))
                F.cross_entropy(module(x[part]), y[part]).backward()
                optimizer.step()
            for key, value in module.state_dict().items():
                moved[key] += p * (value - theta[key])
        values.append(total)
        theta = {key: value + moved[key].to(value.dtype) for key, value in theta.items()}
    return values


def generator_seed(t, client, step):
    """Return the seed of PyTorch's generator in a local step of the run with seed 0."""
    slots = Slots(np.zeros(1, int), np.array([client]), np.ones(1))
    keys = torch.from_numpy(dropout_keys(slots, Draws(np.zeros(1, int), t)))
    return int(Keeper(keys, torch.tensor(step)).seeds(0)[0])


def losses(sampler, model, data, seed=0, **changes):
    history = fs.train(data, sampler, model=model, **WORK | changes)
    return history[(history["metric"] == "loss") & (history["seed"] == seed)]["value"].to_numpy()


@pytest.mark.parametrize(
    ("make", "kind", "stacks"),
    [
        (mlp, "floats", True),
        (lambda: Reader(nn.LSTM, 8), "tokens", False),
        (lambda: Reader(nn.TransformerEncoderLayer, 2, 16, dropout=0.0), "tokens", True),
        (with_layer(nn.RReLU), "floats", True),
        (Functional, "floats", True),
        (with_layer(lambda: nn.BatchNorm1d(8, track_running_stats=False)), "floats", True),
        (with_layer(both), "floats", True),
        (Counting, "floats", True),
    ],
)
def test_training_agrees_with_a_loop_over_clients(make, kind, stacks):
    torch.manual_seed(0)
    module, data = make(), three_clients(kind)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = losses("full", module, data)
    np.testing.assert_allclose(result, by_hand(module, data, 3), rtol=2e-5)
    messages = [str(warning.message) for warning in caught]
    assert sum("one after the other" in message for message in messages) == (0 if stacks else 1)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 13])
@pytest.mark.parametrize("relative", [lambda h: h - h.mean(0), lambda h: h / len(h), torch.relu])
def test_modules_that_see_other_samples_are_computed_without_padding(width, relative):
    torch.manual_seed(0)

    class Relative(nn.Sequential):
        def forward(self, x):
            return self[1](relative(self[0](x)).relu())

    module = Relative(nn.Linear(8, width), nn.Linear(width, 3))
    assert own_network(module, (8,), 3).module.separate == (relative is not torch.relu)


def balanced(z, y):
    return F.cross_entropy(z, y, reduction="none") / torch.bincount(y, minlength=3)[y]


@pytest.mark.parametrize(
    ("loss", "separate"),
    [
        (balanced, True),
        (lambda z, y: F.cross_entropy(z - z.mean(0), y, reduction="none"), True),
        (lambda z, y: F.cross_entropy(z, y, reduction="none") / len(y), True),
        (lambda z, y: F.cross_entropy(z, y, reduction="none"), False),
    ],
)
def test_losses_that_see_other_samples_are_computed_without_padding(loss, separate):
    assert OwnLoss(loss, (4, 3), 3).separate == separate


class OutputFirst(nn.Module):
    """Registers its output layer before the other one."""

    def __init__(self, hidden):
        super().__init__()
        self.last, self.first = nn.Linear(hidden, 3), nn.Linear(25, hidden)

    def forward(self, x):
        return self.last(self.first(x.flatten(1)).relu())


@pytest.mark.parametrize("hidden", [3, 6])
def test_hics_refuses_a_module_whose_last_bias_is_another_layers(hidden):
    sampler = fs.scheme("hics", m=2)
    line = line_of(fs.train, three_clients(), sampler, model=OutputFirst(hidden), **WORK)
    assert line.startswith("scheme.name: hics needs the bias of the output layer, which is not")


@pytest.mark.parametrize(
    "make", [mlp, lambda: nn.Sequential(mlp(), nn.LogSoftmax(-1)), with_layer(both)]
)
def test_hics_reads_the_bias_of_a_modules_output_layer(make):
    assert own_network(make(), (5, 5), 3).biases == 3


def test_batchnorm_on_one_sample_is_a_line_with_the_fix():
    work = {**WORK, "steps": None, "epochs": 1, "batch": 5}  # of 6 samples
    data = three_clients()
    line = line_of(fs.train, data, "full", model=with_layer(lambda: nn.BatchNorm1d(8)), **work)
    assert line.startswith("model: Sequential, on a batch of one sample (set remainder=False, or")
    fs.train(data, "full", model=with_layer(lambda: nn.BatchNorm1d(8)), remainder=False, **work)


@pytest.mark.filterwarnings("error")
def test_operations_that_vmap_computes_in_a_loop_do_not_warn():
    def normed():
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(25, 8))
        return nn.Sequential(nn.Flatten(), layer, nn.Linear(8, 3))

    fs.train(three_clients(), "full", model=normed, **WORK)


def test_a_function_draws_a_model_for_each_seed_and_a_module_is_shared():
    def first(model):
        history = fs.train(three_clients(), "full", model=model, seeds=3, **WORK)
        rows = history[(history["metric"] == "loss") & (history["at"] == 0)]
        return rows["value"].round(9).tolist()

    assert len({*first(mlp)}) == 3
    assert first(mlp) == first(mlp)
    assert len({*first(mlp())}) == 1


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (nn.Linear(25, 4), "model: Sequential returns (4, 4) for 4 samples; must be (4, 3), one"),
        (nn.Linear(7, 3), "model: Sequential fails on samples of shape (5, 5): RuntimeError: mat1"),
        (lambda: 5, "model: int is invalid; must be a torch.nn.Module"),
        (lambda size: nn.Linear(size, 3), "model: <lambda>() is incomplete (missing a required"),
    ],
)
def test_an_invalid_module_is_one_line(model, line):
    if isinstance(model, nn.Module):
        model = nn.Sequential(nn.Flatten(), model)
    assert line_of(fs.train, three_clients(), "full", model=model, **WORK).startswith(line)


@pytest.mark.parametrize("make", [with_layer(both), Counting, Functional])
def test_a_seed_does_not_depend_on_the_seeds_stacked_with_it(make):
    single, stacked = (
        losses(fs.scheme("md", m=2), make, three_clients(), 7, batch=4, seeds=seeds)
        for seeds in ([7], [0, 7, 3])
    )
    np.testing.assert_array_equal(single, stacked)


def counting_learner():
    work = LocalWork(batch=4, step=STEP, steps=STEPS)
    return NetworkLearner(own_network(Counting, (5, 5), 3), three_clients(), work, "raw")


def test_buffers_are_averaged_with_normalised_weights():
    job = counting_learner()
    theta = job.start(np.array([0]))
    slots = Slots(np.zeros(3, int), np.arange(3), np.ones(3))
    updates = torch.zeros(3, theta.shape[1])
    updates[:, -25:] = torch.tensor([1.0, 2.0, 4.0])[:, None]  # the trained means
    moved = job.advance(theta, updates, slots, np.array([1.5, 1.5, -1.0]))
    np.testing.assert_allclose(moved[0, -25:], 1.5)
    np.testing.assert_array_equal(moved[0, : job.network.dimension], theta[0, :-26])
    assert job.advance(theta, updates, slots, np.zeros(3)).equal(theta)


def test_samplers_and_server_optimisers_see_only_parameters():
    job = counting_learner()
    setup = Setup(job.n_samples, job.p, 1, dimension=25 * 3 + 3)
    train(job, prepared(ClusteredSimilarity(m=2), setup), [0], 2)  # stores updates of this size
    data = three_clients()
    history = fs.train(data, "full", model=Counting(), server="fedadam", server_step=0.01, **WORK)
    assert history["value"].notna().all()
