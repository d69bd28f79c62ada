"""Users' modules, losses and metrics change no data and no result, or are refused in one line."""

import random
import sys
import threading

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.helpers.small_network import three_clients
from torch import nn
from torch.nn.utils import parametrizations

import fedsampling as fs

WORK = {"steps": 2, "batch": 4, "step": 0.1, "rounds": 2}
DTYPES = ["floats", "bytes", "tokens"]
calls = []  # global state that users' code changes


class Net(nn.Module):
    """A network with a function before its layers, and one after them."""

    def __init__(self, before=None, after=None, kind="floats", setup=None):
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Embedding(3, 8) if kind == "tokens" else nn.Linear(25, 8)
        self.last, self.tokens = nn.Linear(8, 3), kind == "tokens"
        self.before, self.after = before or (lambda m, x: x), after or (lambda m, z: z)
        if setup:
            setup(self)

    def forward(self, x):
        x = self.before(self, x)
        h = self.layer(x.clamp(0, 2)).mean(1) if self.tokens else self.layer(x.flatten(1))
        return self.after(self, self.last(h.relu()))


def outcome(model, kind="floats", **options):
    """Return the history, or the line of an InputError; the data stay as they are."""
    data = three_clients(kind)
    arrays = data.x, data.y, data.x_test, data.y_test
    before = [array.copy() for array in arrays]
    try:
        history = fs.train(data, "full", model=model, seeds=2, **WORK, **options)
        result = history.drop(columns="metric").to_numpy()
    except fs.InputError as error:
        (result,) = error.lines
        assert "\n" not in result
    for array, unchanged in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, unchanged)
    return result


def set_first(m, x):
    x[:, 0] = 1
    return x


# An operation in place, and its twin that changes nothing.
IN_PLACE = {
    "sub_": (lambda m, x: x.sub_(1), lambda m, x: x - 1),
    "iadd": (lambda m, x: x.__iadd__(1), lambda m, x: x + 1),
    "relu": (lambda m, x: F.relu(x, inplace=True), lambda m, x: F.relu(x)),
    "view": (lambda m, x: x.flatten(1).clamp_(0, 1), lambda m, x: x.flatten(1).clamp(0, 1)),
    "index": (set_first, lambda m, x: set_first(m, x.clone())),
    "out": (lambda m, x: torch.add(x, 1, out=x), lambda m, x: x + 1),
    "detach": (lambda m, x: x.detach().mul_(2), lambda m, x: x * 2),
    "evaluation": (
        lambda m, x: x if m.training else x.sub_(1),
        lambda m, x: x if m.training else x - 1,
    ),
    "condition": (
        lambda m, x: x.sub_(1) if x.abs().max() > 1 else x,
        lambda m, x: x - 1 if x.abs().max() > 1 else x,
    ),
}


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_module_that_changes_its_inputs_agrees_with_its_twin(name, kind):
    results = [outcome(Net(before, kind=kind), kind) for before in IN_PLACE[name]]
    if isinstance(results[0], str):
        assert results[0].startswith("model: Net: ")
    else:
        np.testing.assert_allclose(*results, rtol=1e-5)


def count(factor):
    def forward(m, x):
        m.n = getattr(m, "n", 0) + 1
        return x * factor(m.n)

    return forward


def remember(m, x):
    previous = getattr(m, "previous", x)
    m.previous = x.detach()
    return x + previous.mean()


def append(m, x):
    calls.append(0)
    return x * len(calls)


def grow(m, x):
    m.queue = torch.cat([m.queue, x.flatten(1)[:1]])
    return x


def parameter(m, x):
    m.last.weight.data.mul_(0.5)
    return x


def buffer(name, value):
    return lambda m: m.register_buffer(name, value)


GENERATOR = torch.Generator()
DIFFERENT = "returns different outputs for the same samples"
REFUSED = {
    "hidden count": (Net(before=count(lambda n: n)), DIFFERENT),
    "hidden state": (Net(before=remember), DIFFERENT),
    "global state": (Net(before=append), DIFFERENT),
    "late state": (Net(before=count(lambda n: 1 + (n > 20))), "has changed during training"),
    "numpy": (Net(before=lambda m, x: x * np.random.rand()), "draws from the global"),  # noqa: NPY002
    "python": (Net(before=lambda m, x: x * random.random()), "draws from the global"),
    "entropy": (Net(before=lambda m, x: x * np.random.default_rng().random()), "different"),
    "own generator": (Net(after=lambda m, z: z + torch.rand(1, generator=GENERATOR)), DIFFERENT),
    "parameter": (Net(before=parameter), "forward changes the parameter 'last.weight'"),
    "growing buffer": (
        Net(before=grow, setup=buffer("queue", torch.zeros(1, 25))),
        "forward changes the shape of buffer 'queue'",
    ),
    "exit": (Net(before=lambda m, x: sys.exit(3)), "SystemExit(3)"),
    "detached": (Net(after=lambda m, z: z.detach()), "do not depend on its parameters"),
    "integers": (Net(after=lambda m, z: z.long()), "returns torch.int64"),
    "nothing": (Net(after=lambda m, z: None), "returns NoneType"),
    "complex": (
        Net(setup=lambda m: m.register_parameter("c", nn.Parameter(torch.ones(1) * 1j))),
        "has complex numbers",
    ),
    "lock": (Net(setup=lambda m: setattr(m, "lock", threading.Lock())), "cannot be copied"),
    # Functions that no seed determines.
    "draws of numpy": (
        lambda: nn.Sequential(nn.Flatten(), Noise()),
        "1.w is not drawn from PyTorch",
    ),
    "untrained": (
        lambda: Net(setup=buffer("queue", torch.rand(3))),
        "queue is random but not trained",
    ),
    "TorchScript": (lambda: torch.jit.script(nn.Linear(5, 3)), "use the module that"),
    "error": (lambda: 1 / 0, "ZeroDivisionError"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_whose_effects_cannot_be_isolated_is_one_line(name):
    model, text = REFUSED[name]
    line = outcome(model)
    assert isinstance(line, str), "not refused"
    assert line.startswith("model: ")
    assert text in line


class Noise(nn.Module):
    """Initial parameters from NumPy."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(np.random.default_rng().random((25, 3))))

    def forward(self, x):
        return x @ self.w


SUPPORTED = {
    "unused parameter": lambda: Net(setup=lambda m: setattr(m, "unused", nn.Linear(2, 2))),
    "shared submodule": lambda: nn.Sequential(nn.Flatten(), shared := nn.Linear(25, 25), shared,
                                              nn.Linear(25, 3)),
    "lazy": lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.Tanh(), nn.LazyLinear(3)),
    "weight norm": lambda: Net(setup=lambda m: nn.utils.weight_norm(m.last)),
    "spectral norm": lambda: Net(setup=lambda m: parametrizations.spectral_norm(m.last)),
    "old spectral norm": lambda: Net(setup=lambda m: nn.utils.spectral_norm(m.last)),
    "data parallel": lambda: nn.DataParallel(Net()),
    "compiled": lambda: torch.compile(Net()),
    "double": lambda: Net().double(),
    "bernoulli": lambda: Net(lambda m, x: x * torch.bernoulli(torch.full_like(x, 0.5))),
    "noise in evaluation": lambda: Net(after=lambda m, z: z + torch.rand_like(z)),
}  # fmt: skip


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_module_is_reproducible_and_learns(name):
    torch.manual_seed(0)
    model = SUPPORTED[name]()
    first = outcome(model)
    torch.rand(3)  # PyTorch's generator moves on
    np.testing.assert_array_equal(first, outcome(model))
    assert np.isfinite(first.astype(float)).all()


def entropy(z, y):
    return F.cross_entropy(z, y, reduction="none")


class Memory(nn.Module):
    """A loss that remembers its calls."""

    n = 0

    def forward(self, z, y):
        self.n += 1
        return entropy(z, y) * self.n


LOSSES = {
    "outputs": (lambda z, y: entropy(z.sub_(1), y), entropy),
    "targets": (lambda z, y: entropy(z, y.add_(1).remainder_(3)),
                lambda z, y: entropy(z, (y + 1) % 3)),
    "array": (lambda z, y: entropy(z, torch.from_numpy(np.add(y.numpy(), 1, out=y.numpy()) % 3)),
              lambda z, y: entropy(z, (y + 1) % 3)),
    "random": (lambda z, y: entropy(z, y) * torch.rand(1), None),
    "text": ("mse", "loss: 'mse' is invalid"),
    "nothing": (lambda z, y: None, "loss: it returns None for 4 samples"),
    "scalar": (nn.CrossEntropyLoss(), "loss: it returns shape () for 4 samples"),
    "labels": (lambda z, y: (z.argmax(-1) != y).float(), "loss: does not depend on the outputs"),
    "numpy": (lambda z, y: entropy(z, y) * np.random.rand(), "loss: draws from the global"),  # noqa: NPY002
    "memory": (Memory(), "loss: differs for the same outputs"),
    "parameters": (nn.Bilinear(3, 3, 1), "loss: its parameters would not be trained"),
    "error": (lambda z, y: 1 / 0, "loss: ZeroDivisionError"),
}  # fmt: skip


def one(model, x, y):
    return 1.0


METRICS = {
    "inputs": (lambda m, x, y: (x.mul_(0), 1.0)[1], one),
    "targets": (lambda m, x, y: (y.mul_(0), 1.0)[1], one),
    "array": (lambda m, x, y: (np.multiply(x.numpy(), 0, out=x.numpy()), 1.0)[1], one),
    "data": (lambda m, x, y: (x.data.zero_(), 1.0)[1], one),
    "outputs": (lambda m, x, y: (m(x).zero_(), 1.0)[1], one),
    "random": (lambda m, x, y: torch.rand(1), None),
    "numpy": (lambda m, x, y: np.random.rand(), "metrics.z: draws from the global"),  # noqa: NPY002
    "nothing": (lambda m, x, y: None, "metrics.z: TypeError"),
    "text": (lambda m, x, y: "good", "metrics.z: ValueError"),
    "exit": (lambda m, x, y: sys.exit(3), "metrics.z: SystemExit(3)"),
}
FUNCTIONS = [*(("loss", *case) for case in LOSSES.values())]
FUNCTIONS += [("metrics", *case) for case in METRICS.values()]


@pytest.mark.parametrize("model", ["mlp", "own"])
@pytest.mark.parametrize(("option", "function", "expected"), FUNCTIONS)
def test_a_loss_or_metric_agrees_with_its_twin_or_is_one_line(model, option, function, expected):
    def result(chosen):
        module = Net() if model == "own" else model
        return outcome(module, **{option: {"z": chosen} if option == "metrics" else chosen})

    if isinstance(expected, str):
        line = result(function)
        assert isinstance(line, str)
        assert line.startswith(expected)
    else:
        twin = result(expected or function)
        tolerance = 1e-5 if option == "loss" else 0
        np.testing.assert_allclose(result(function), twin, rtol=tolerance)


def test_a_module_that_returns_its_bias_gives_metrics_a_copy():
    class Constant(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.bias.expand(len(x), 3)

    spoiling = {"z": lambda m, x, y: float(m(x).mul_(0).sum())}
    clean = {"z": lambda m, x, y: 0.0}
    results = [outcome(Constant(), metrics=metrics) for metrics in (spoiling, clean)]
    np.testing.assert_array_equal(*results)
