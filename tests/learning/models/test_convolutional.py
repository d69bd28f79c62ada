import sys
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.shared import ROOT
from torch import nn

from fedsampling.learning.models import settings


class Times(nn.Module):
    """Multiply with a given mask."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask

    def forward(self, h):
        return h * self.mask


def images(slots, batch, *shape):
    return torch.rand(slots, batch, *shape, generator=torch.Generator().manual_seed(3))


def colours(x):
    return x.movedim(-1, 2)


def conv(inputs, outputs, size, padding=0, pool=1, relu=True):
    layers = [nn.Conv2d(inputs, outputs, size, padding=padding)]
    return layers + [nn.ReLU()] * relu + [nn.MaxPool2d(pool)] * (pool > 1)


def dense(*widths):
    layers = [nn.Flatten()]
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return layers[:-1]


@pytest.mark.parametrize("third_relu", [False, True])
def test_cifar_cnn_agrees_with_torch_and_drops_after_each_convolution(agree, third_relu):
    torch.manual_seed(0)
    shapes = [(32, 15, 15), (64, 6, 6), (64, 4, 4)]
    masks = {shape: (torch.rand(2, 5, *shape) < 0.8) / 0.8 for shape in shapes}
    modules = [
        nn.Sequential(
            *conv(3, 32, 3, pool=2),
            Times(masks[shapes[0]][slot]),
            *conv(32, 64, 3, pool=2),
            Times(masks[shapes[1]][slot]),
            *conv(64, 64, 3, relu=third_relu),
            Times(masks[shapes[2]][slot]),
            *dense(1024, 64, 10),
        )
        for slot in range(2)
    ]
    network = settings.CifarCnn(third_relu=third_relu).build((32, 32, 3), 10)
    rates = []

    def keep(h, rate):
        rates.append(rate)
        return h * masks[tuple(h.shape[2:])]

    outputs = partial(network.outputs, keep=keep)
    x = images(2, 5, 32, 32, 3)
    dropping = SimpleNamespace(dimension=network.dimension, outputs=outputs)
    agree(dropping, modules, colours(x), x)
    assert rates == [0.2] * 3


PLAIN = {  # shape of a sample, and the layers
    "linear": ((500,), lambda: [nn.Flatten(), nn.Linear(500, 1, bias=False)]),
    "softmax": ((20, 3), lambda: dense(60, 10)),
    "mlp": ((28, 28), lambda: dense(784, 50, 10)),
    "simple_cnn": (
        (28, 28),
        lambda: [*conv(1, 32, 5, 2, 2), *conv(32, 64, 5, 2, 2), *dense(3136, 512, 10)],
    ),
    "leaf_cnn": (
        (16, 16),
        lambda: [*conv(1, 32, 5, 2, 2), *conv(32, 64, 5, 2, 2), *dense(1024, 2048, 10)],
    ),
    "convnet": (
        (28, 28),
        lambda: [*conv(1, 20, 5, pool=2), *conv(20, 50, 5, pool=2), *dense(800, 500, 10)],
    ),
    "cifar100_cnn": (
        (16, 16, 3),
        lambda: [
            *conv(3, 32, 3, 1),
            *conv(32, 64, 3, 1, 2),
            *conv(64, 128, 3, 1),
            *conv(128, 128, 3, 1, 2),
            *conv(128, 256, 3, 1),
            *conv(256, 256, 3, 1, 2),
            *dense(1024, 1024, 512, 10),
        ],
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks_agree_with_torch(agree, name):
    torch.manual_seed(0)
    shape, layers = PLAIN[name]
    is_regression = name == "linear"
    network = settings.Model.member(name)().build(shape, None if is_regression else 10)
    assert (network.loss == "squared") == is_regression
    is_convex = name in ("linear", "softmax")  # which start from zero
    assert network.initial(np.random.default_rng(0)).any() != is_convex
    modules = [nn.Sequential(*layers()) for _ in range(2)]
    x = images(2, 4, *shape)
    agree(network, modules, colours(x) if len(shape) == 3 else x[:, :, None], x)


@pytest.fixture(scope="module")
def torchvision_resnet18():
    sys.path.append(str(ROOT / "build/torchvision"))  # of .ci/run
    try:
        from torchvision.models import resnet18
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:  # built for another torch, it lacks its operators; their names are enough
        arguments = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", arguments)
        from torchvision.models import resnet18

    def make(norm):
        layer = {"batch": None, "group": lambda width: nn.GroupNorm(32, width)}[norm]
        module = resnet18(num_classes=10, norm_layer=layer)
        module.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        module.maxpool = nn.Identity()
        return module.double().train()

    return make


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_resnet18_agrees_with_torchvision_but_for_the_stem(agree, torchvision_resnet18, norm):
    torch.manual_seed(0)
    modules = [torchvision_resnet18(norm) for _ in range(2)]
    network = settings.ResNet18(norm=norm).build((8, 8, 3), 10)
    assert list(network.shapes) == [name for name, _ in modules[0].named_parameters()]
    x = torch.rand(2, 3, 8, 8, 3, dtype=torch.float64)
    agree(network, modules, x.movedim(-1, 2), x, tolerance=1e-8)


def test_initialisation_agrees_with_torchvision(torchvision_resnet18):
    torch.manual_seed(0)
    network = settings.ResNet18().build((32, 32, 3), 10)
    drawn = network.draw(np.random.default_rng(0))
    for name, parameter in torchvision_resnet18("batch").named_parameters():
        if name == "conv1.weight":
            continue  # the stem is ours
        theirs = parameter.detach().numpy()
        spread = 5 * theirs.std() / theirs.size**0.5  # five standard errors
        assert abs(drawn[name].std() - theirs.std()) <= spread, name
        assert abs(drawn[name].mean() - theirs.mean()) <= 2 * spread, name
