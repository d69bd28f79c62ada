"""Networks of convolutions and dense layers.

A rectifier after a pooled layer is applied to the pooled values: the result is the same, with fewer
operations.  Outputs are logits, whose cross entropy equals the loss of the papers' networks that
end in a softmax.
"""

from dataclasses import replace

import torch
from torch import Tensor

from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.initial import (
    Parameter,
    Parameters,
    keras_layer,
    torch_layer,
)
from fedsampling.learning.models.layers import channels_first, convolution, dense, image, labels
from fedsampling.learning.models.network import Network, Parts, network
from fedsampling.learning.models.settings import (
    Cifar100Cnn,
    CifarCnn,
    ConvNet,
    LeafCnn,
    SimpleCnn,
)


def cifar_cnn(record: CifarCnn, sample: tuple[int, ...], classes: int | None) -> Network:
    """Three convolutions and two dense layers with dropout, with PyTorch's initial distributions.

    References: Fraboni et al. 2021, section 5 (CIFAR-10; sizes of the authors' code, in which the
    third convolution has no rectifier).
    """
    channels, height, width = image("cifar_cnn", sample, min_side=18)
    rows, columns = (((side - 2) // 2 - 2) // 2 - 2 for side in (height, width))
    parameters = {
        **torch_layer("conv1", 32, channels, 3, 3),
        **torch_layer("conv2", 64, 32, 3, 3),
        **torch_layer("conv3", 64, 64, 3, 3),
        **torch_layer("dense", 64, 64 * rows * columns),
        **torch_layer("head", labels("cifar_cnn", classes), 64),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = channels_first(x)
        h = keep(torch.relu(convolution(w, "conv1", h, pool=2)), record.dropout)
        h = keep(torch.relu(convolution(w, "conv2", h, pool=2)), record.dropout)
        h = convolution(w, "conv3", h)
        h = keep(torch.relu(h) if record.third_relu else h, record.dropout)
        return torch.relu(dense(w, "dense", h.flatten(2)))

    return network("cifar_cnn", parameters, body, lambda w, h: dense(w, "head", h))


def simple_cnn(record: SimpleCnn, sample: tuple[int, ...], classes: int | None) -> Network:
    """Two convolutions and two dense layers, as in TensorFlow Federated's simple_fedavg.

    Kernels 5 × 5, zero padding; Glorot's uniform weights and zero biases.

    References: Chen et al. 2022, section 4 (federated EMNIST; sizes of the authors' code, with 10
    classes).
    """
    channels, height, width = image("simple_cnn", sample, min_side=4)
    parameters = {
        **keras_layer("conv1", 32, channels, 5, 5),
        **keras_layer("conv2", 64, 32, 5, 5),
        **keras_layer("dense", record.dense, 64 * (height // 4) * (width // 4)),
        **keras_layer("head", labels("simple_cnn", classes), record.dense),
    }
    return _plain("simple_cnn", parameters, [("conv1", 2, 2), ("conv2", 2, 2)], ["dense"])


def leaf_cnn(record: LeafCnn, sample: tuple[int, ...], classes: int | None) -> Network:
    """LEAF's network for FEMNIST: `simple_cnn` with 2048 dense units (FEMNIST has 62 classes).

    References: Harshvardhan et al. 2025, section 7 ("2-layer ConvNet for FEMNIST" of LEAF). Caldas
    et al., LEAF: a benchmark for federated settings, 2018; sizes of its code.
    """
    settings = SimpleCnn(dense=record.dense)
    return replace(simple_cnn(settings, sample, classes), name="leaf_cnn")


def cifar100_cnn(record: Cifar100Cnn, sample: tuple[int, ...], classes: int | None) -> Network:
    """Six convolutions and three dense layers, rectified, without dropout or normalisation.

    Kernels 3 × 3, zero padding; Glorot's uniform weights and zero biases.

    References: Chen et al. 2022, appendix G (federated CIFAR-100; sizes of the authors' code).
    """
    channels, height, width = image("cifar100_cnn", sample, min_side=8)
    layers = [("conv1", 1, 1), ("conv2", 1, 2), ("conv3", 1, 1)]
    layers += [("conv4", 1, 2), ("conv5", 1, 1), ("conv6", 1, 2)]
    widths = [channels, 32, 64, 128, 128, 256, 256]
    parameters: dict[str, Parameter] = {}
    for (name, _, _), inputs, outputs in zip(layers, widths[:-1], widths[1:], strict=True):
        parameters |= keras_layer(name, outputs, inputs, 3, 3)
    parameters |= keras_layer("dense1", 1024, 256 * (height // 8) * (width // 8))
    parameters |= keras_layer("dense2", 512, 1024)
    parameters |= keras_layer("head", labels("cifar100_cnn", classes), 512)
    return _plain("cifar100_cnn", parameters, layers, ["dense1", "dense2"])


def convnet(record: ConvNet, sample: tuple[int, ...], classes: int | None) -> Network:
    """Two convolutions (20 and 50, 5 × 5) and two dense layers (500), initialised as by PyTorch.

    The paper only says "2-layer ConvNet".  This is the network that Async-HFL, the source of the
    paper's NYCMesh delays, trains on the same data.

    References: Harshvardhan et al. 2025, section 7 (MNIST and FashionMNIST).
    """
    channels, height, width = image("convnet", sample, min_side=16)
    rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
    parameters = {
        **torch_layer("conv1", 20, channels, 5, 5),
        **torch_layer("conv2", 50, 20, 5, 5),
        **torch_layer("dense", 500, 50 * rows * columns),
        **torch_layer("head", labels("convnet", classes), 500),
    }
    return _plain("convnet", parameters, [("conv1", 0, 2), ("conv2", 0, 2)], ["dense"])


def _plain(
    name: str, parameters: Parameters, convolutions: list[tuple[str, int, int]], hidden: list[str]
) -> Network:
    # Rectified convolutions (name, padding, pooling), then rectified dense layers.
    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = channels_first(x)
        for layer, padding, pool in convolutions:
            h = torch.relu(convolution(w, layer, h, padding, pool=pool))
        h = h.flatten(2)
        for layer in hidden:
            h = torch.relu(dense(w, layer, h))
        return h

    return network(name, parameters, body, lambda w, h: dense(w, "head", h))
