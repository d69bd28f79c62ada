"""All networks: sizes, initial parameters, invalid data, and independence of slots."""

from itertools import accumulate
from math import sqrt

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from fedsampling.base.errors import InputError
from fedsampling.learning.models.operations import step_bytes
from fedsampling.learning.models.settings import CifarCnn, Gru, Lstm, Model

MNIST, CIFAR = (28, 28), (32, 32, 3)
PUBLISHED = {  # sample, classes, number of parameters
    "linear": ((500,), None, 500),
    "softmax": (MNIST, 10, 7_850),
    "mlp": (MNIST, 10, 39_760),
    "cifar_cnn": (CIFAR, 10, 122_570),
    "simple_cnn": (MNIST, 10, 1_663_370),
    "cifar100_cnn": (CIFAR, 100, 5_897_508),
    "leaf_cnn": (MNIST, 62, 6_603_710),
    "convnet": (MNIST, 10, 431_080),
    "resnet18": (CIFAR, 10, 11_173_962),
    "lstm": ((80,), 100, 135_700),
    "leaf_lstm": ((80,), 80, 817_872),
    "gru": ((5,), 86, 833_622),
}
SMALL = {  # large enough for each kernel's own path, small enough for a test
    **{name: (sample, classes) for name, (sample, classes, _) in PUBLISHED.items()},
    "simple_cnn": ((8, 8), 10),
    "leaf_cnn": ((8, 8), 10),
    "cifar100_cnn": ((8, 8, 3), 10),
    "cifar_cnn": ((18, 18, 3), 10),
    "resnet18": ((8, 8, 3), 10),
    "lstm": ((5,), 30),
    "leaf_lstm": ((3,), 30),
    "gru": ((3,), 30),
}


def make(name, sample, classes, **settings):
    return Model.model_validate({"name": name, **settings}).build(sample, classes)


def inputs(name, slots, batch):
    sample, classes = SMALL[name]
    rng = torch.Generator().manual_seed(1)
    if "embedding.weight" in make(name, sample, classes).shapes:
        return torch.randint(classes, (slots, batch, *sample), generator=rng)
    return torch.rand((slots, batch, *sample), generator=rng)


def copies(network, slots):
    drawn = [network.initial(np.random.default_rng(slot)) for slot in range(slots)]
    return torch.from_numpy(np.stack(drawn))


def outputs_and_gradient(network, theta, x):
    theta = theta.clone().requires_grad_()
    z = network.outputs(theta, x)
    return z.detach(), torch.autograd.grad(z.square().sum(), theta)[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_numbers_of_parameters_are_the_published_ones(name):
    assert set(PUBLISHED) == set(Model.members()) - {"file"}  # a user's module has any size
    sample, classes, dimension = PUBLISHED[name]
    assert make(name, sample, classes).dimension == dimension


@pytest.mark.parametrize("name", [*PUBLISHED, "resnet18 group"])
def test_slots_do_not_depend_on_their_neighbours_to_the_last_bit(name):
    name, *norm = name.split()
    network = make(name, *SMALL[name], **({"norm": "group"} if norm else {}))
    is_large = name == "resnet18"
    slots, batch = (2, 2) if is_large else (5, 8)
    theta, x = copies(network, slots), inputs(name, slots, batch)
    if name in ("linear", "softmax"):
        theta += torch.randn(theta.shape, generator=torch.Generator().manual_seed(2))
    z, gradient = outputs_and_gradient(network, theta, x)
    assert len(z.flatten(1).unique(dim=0)) == slots
    for part in [slice(1, 2)] if is_large else [slice(0, 1), slice(4, 5), slice(2, 4)]:
        z_of_part, gradient_of_part = outputs_and_gradient(network, theta[part], x[part].clone())
        assert torch.equal(z_of_part, z[part])
        assert torch.equal(gradient_of_part, gradient[part])


@pytest.mark.parametrize(
    ("name", "sample", "classes"),
    [
        ("convnet", (80,), 10),
        ("cifar_cnn", (17, 32, 3), 10),
        ("lstm", MNIST, 10),
        ("linear", (5,), 10),
        ("mlp", MNIST, None),
    ],
)
def test_networks_reject_data_that_do_not_fit(name, sample, classes):
    with pytest.raises(InputError, match=rf"model\.name: {name}"):
        make(name, sample, classes)


# Half-widths of the uniform distributions. PyTorch: 1/√fan-in (recurrent layers: 1/√hidden). Keras
# and TensorFlow: √(6/(fan-in + fan-out)), with biases zero; in LEAF's cells, inputs and states
# count as one fan-in.
UNIFORM = {
    "mlp": {"hidden.weight": 1 / 28, "hidden.bias": 1 / 28, "head.weight": 1 / sqrt(50)},
    "cifar_cnn": {"conv1.weight": 1 / sqrt(27), "conv3.weight": 1 / 24, "dense.weight": 1 / 32},
    "convnet": {"conv2.weight": 1 / sqrt(500), "head.weight": 1 / sqrt(500)},
    "simple_cnn": {
        "conv1.weight": sqrt(6 / (25 + 25 * 32)),
        "dense.weight": sqrt(6 / (3136 + 512)),
        "head.weight": sqrt(6 / 522),
        **dict.fromkeys(("conv1.bias", "dense.bias", "head.bias"), 0),
    },
    "leaf_cnn": {"dense.weight": sqrt(6 / (3136 + 2048))},
    "cifar100_cnn": {
        "conv4.weight": sqrt(6 / (9 * 256)),
        "dense1.weight": sqrt(6 / 5120),
        **dict.fromkeys(("conv6.bias", "dense2.bias"), 0),
    },
    "lstm": {"layer1.w_x": 0.1, "layer2.w_h": 0.1, "layer2.b_h": 0.1, "head.weight": 0.1},
    "leaf_lstm": {
        "embedding.weight": sqrt(6 / 88),
        "layer1.w_x": sqrt(6 / (264 + 1024)),
        "layer1.w_h": sqrt(6 / (264 + 1024)),
        "layer2.w_x": sqrt(6 / (512 + 1024)),
        **dict.fromkeys(("layer1.b_x", "layer2.b_x", "head.bias"), 0),
    },
    "gru": {
        "embedding.weight": 0.05,
        "layer1.w_x": sqrt(6 / 1024),
        **dict.fromkeys(("layer1.b_x", "layer2.b_h", "head.bias"), 0),
    },
}


@pytest.fixture(scope="module")
def drawn():
    networks = {name: make(name, *PUBLISHED[name][:2]) for name in UNIFORM}
    return {name: network.draw(np.random.default_rng(0)) for name, network in networks.items()}


@pytest.mark.parametrize(("name", "laws"), UNIFORM.items())
def test_uniform_initial_values_fill_their_bounds(drawn, name, laws):
    for parameter, bound in laws.items():
        values = drawn[name][parameter].ravel()
        assert np.abs(values).max() <= bound
        # The largest of n falls below this with probability 1e-6.
        assert np.abs(values).max() >= bound * 1e-6 ** (1 / values.size)
        # Six standard errors of the variance of a uniform law.
        assert values.var() == pytest.approx(bound**2 / 3, rel=6 * sqrt(0.8 / values.size))


def test_recurrent_weights_of_the_gru_are_orthonormal(drawn):
    for layer in ("layer1", "layer2"):
        w_h = drawn["gru"][f"{layer}.w_h"]
        assert w_h.shape == (768, 256)
        assert w_h.T @ w_h == pytest.approx(np.eye(256), abs=1e-12)


def test_embeddings_of_torch_are_standard_normal(drawn):
    values = drawn["lstm"]["embedding.weight"]
    assert values.mean() == pytest.approx(0, abs=5 / sqrt(values.size))
    assert values.var() == pytest.approx(1, abs=5 * sqrt(2 / values.size))
    assert np.abs(values).max() > 2  # uniform of that variance would end at √3


def profiled_peak(network, sample, batch):
    """Peak bytes per slot of two slots' outputs and gradient, as PyTorch's profiler sees them."""
    theta = torch.zeros(2, network.dimension, requires_grad=True)
    symbols = any(name.startswith("embedding") for name in network.shapes)
    x = torch.zeros(2, batch, *sample, dtype=torch.int64 if symbols else None)
    torch.autograd.grad(network.outputs(theta, x).sum(), theta)  # products are tried out first
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        torch.autograd.grad(network.outputs(theta, x).sum(), theta)
    events = sorted(trace.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(accumulate(changes)) / 2


@pytest.mark.parametrize(
    ("model", "sample"),
    [(CifarCnn(), (32, 32, 3)), (Lstm(hidden=16), (20,)), (Gru(embedding=32, hidden=32), (20,))],
)
def test_estimated_memory_of_a_step_agrees_with_the_profiler(model, sample):
    network = model.build(sample, 10)
    peak = profiled_peak(network, sample, 16)
    # Which library multiplies differs between processors, and so does what it keeps.
    assert 0.9 * peak <= step_bytes(network, sample, 16) <= 1.8 * peak
