"""Layers over slots, and the networks of dense and convolutional layers.

Each slot's inputs are combined with that slot's parameters.  A slot's result is the same to the
last bit, whichever slots are stacked with it.

Images have shape [slots, batch, height, width], or have the channels last.  Internally channels
come before height and width, as in PyTorch, which determines the order of the first dense layer's
inputs.  A rectifier after a pooled layer is applied to the pooled values: the result is the same,
with fewer operations.  Outputs are logits, whose cross entropy equals the loss of the papers'
networks that end in a softmax.
"""

from dataclasses import replace
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

from fedsampling.base.errors import InputError
from fedsampling.learning.model import (
    Cifar100Cnn,
    CifarCnn,
    ConvNet,
    LeafCnn,
    LinearRegression,
    Mlp,
    ResNet18,
    SimpleCnn,
    Softmax,
)
from fedsampling.learning.models.network import (
    Keep,
    Network,
    Parameter,
    Parameters,
    Parts,
    he,
    keras_layer,
    network,
    one,
    torch_layer,
    zero,
)
from fedsampling.learning.models.products import product


def dense(w: Parts, name: str, h: Tensor) -> Tensor:
    """Apply a dense layer to h (slots, ..., inputs): h Wᵀ + b."""
    rows = h.reshape(len(h), -1, h.shape[-1])
    z = product(rows, w[f"{name}.weight"]) + w[f"{name}.bias"][:, None]
    return z.view(*h.shape[:-1], z.shape[-1])


def convolution(
    w: Parts, name: str, h: Tensor, padding: int = 0, stride: int = 1, pool: int = 1
) -> Tensor:
    """Convolve h (slots, batch, inputs, height, width), then pool `pool` × `pool` squares.

    The slots are computed one after another, which on a CPU is twice as fast as a grouped
    convolution and keeps the pooling's input in the cache. It is fastest with contiguous channels.
    """
    weight, bias = w[f"{name}.weight"], w.get(f"{name}.bias")

    def convolve(x: Tensor, kernel: Tensor, b: Tensor | None) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)  # pooling is ten times as fast
        z = functional.conv2d(x, kernel, b, stride, padding)
        return functional.max_pool2d(z, pool) if pool > 1 else z

    biases = [None] * len(h) if bias is None else bias.unbind()
    slots = zip(h.unbind(), weight.unbind(), biases, strict=True)
    return stacked([convolve(*slot) for slot in slots])


def stacked(parts: list[Tensor]) -> Tensor:
    """Stack slots; a single slot is not copied."""
    return torch.stack(parts) if len(parts) > 1 else parts[0][None]


def labels(name: str, classes: int | None) -> int:
    """Return the number of classes."""
    if classes is None:
        raise InputError(
            f"model.name: {name} predicts labels, but the dataset has none; use linear"
        )
    return classes


def image(name: str, sample: tuple[int, ...], min_side: int) -> tuple[int, int, int]:
    """Return channels, height and width of an image."""
    if len(sample) not in (2, 3) or min(sample[:2]) < min_side:
        raise InputError(
            f"model.name: {name} requires images of at least {min_side} × {min_side} pixels, but "
            f"the dataset's samples have shape {sample}; use another model or dataset"
        )
    return sample[2] if len(sample) == 3 else 1, sample[0], sample[1]


def channels_first(x: Tensor) -> Tensor:
    """View images [slots, batch, H, W] or [..., H, W, C] as [slots, batch, C, H, W]."""
    return (x[..., None] if x.dim() == 4 else x).movedim(-1, 2)


# Networks of dense layers only.


def linear(record: LinearRegression, sample: tuple[int, ...], classes: int | None) -> Network:
    """Linear regression without intercept: z = xᵀw, loss (z − y)²/2, from w = 0.

    References: Harshvardhan et al. 2025, section 3.
    """
    if classes is not None:
        raise InputError(
            "model.name: linear predicts numbers, but the dataset has labels; use softmax"
        )
    parameters = {"head.weight": Parameter((1, prod(sample)), zero)}

    def head(w: Parts, h: Tensor) -> Tensor:
        return product(h, w["head.weight"])

    return network("linear", parameters, _flat, head, loss="squared")


def softmax(record: Softmax, sample: tuple[int, ...], classes: int | None) -> Network:
    """Multinomial logistic regression with intercepts, initially zero."""
    outputs = labels("softmax", classes)
    parameters = {
        "head.weight": Parameter((outputs, prod(sample)), zero),
        "head.bias": Parameter((outputs,), zero),
    }
    return network("softmax", parameters, _flat, lambda w, h: dense(w, "head", h), layers=("head",))


def mlp(record: Mlp, sample: tuple[int, ...], classes: int | None) -> Network:
    """One hidden layer of rectified units, initialised as by PyTorch.

    References: Fraboni et al. 2021, section 5 (MNIST; 784-50-10 in the authors' code).
    """
    parameters = {
        **torch_layer("hidden", record.hidden, prod(sample)),
        **torch_layer("head", labels("mlp", classes), record.hidden),
    }

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        return torch.relu(dense(w, "hidden", x.flatten(2)))

    return network(
        "mlp", parameters, body, lambda w, h: dense(w, "head", h), layers=("hidden", "head")
    )


def _flat(w: Parts, x: Tensor, keep: Keep) -> Tensor:
    return x.flatten(2)


_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride; two blocks each
_GROUPS = 32


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


def resnet18(record: ResNet18, sample: tuple[int, ...], classes: int | None) -> Network:
    """Residual network of 18 layers for small images, with torchvision's initial distributions.

    Structure and names follow ``torchvision.models.resnet18``, except for the stem: one
    convolution of 3 × 3 without stride or pooling, as usual for images of 32 × 32.  Kernels are
    drawn from He's normal distribution by fan-out, the last layer as by PyTorch.

    Batch normalisation uses mean and variance of each slot's batch, in training and evaluation.
    There are no running statistics: clients with one step would not fill them, and no paper says
    how to average them.  An evaluation therefore depends on which samples share a batch.  With
    group normalisation (32 groups) it does not.

    References: Harshvardhan et al. 2025, section 7 (CIFAR-10; the normalisation is not stated). He
    et al., Deep residual learning for image recognition, 2016. Wu and He, Group normalization,
    2018.
    """
    channels, _, _ = image("resnet18", sample, min_side=8)
    parameters = {**_kernel("conv1", 64, channels, 3), **_norm("bn1", 64)}
    before = 64
    for stage, (width, stride) in enumerate(_STAGES, start=1):
        for block in range(2):
            name = f"layer{stage}.{block}"
            parameters |= _kernel(f"{name}.conv1", width, before, 3) | _norm(f"{name}.bn1", width)
            parameters |= _kernel(f"{name}.conv2", width, width, 3) | _norm(f"{name}.bn2", width)
            if block == 0 and stride > 1:
                parameters |= _kernel(f"{name}.downsample.0", width, before, 1)
                parameters |= _norm(f"{name}.downsample.1", width)
            before = width
    parameters |= torch_layer("fc", labels("resnet18", classes), 512)

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = convolution(w, "conv1", channels_first(x), padding=1)
        h = torch.relu(_normalised(w, "bn1", h, record.norm))
        for stage, (_, stride) in enumerate(_STAGES, start=1):
            h = _block(w, f"layer{stage}.0", h, stride, record.norm)
            h = _block(w, f"layer{stage}.1", h, 1, record.norm)
        return h.mean((-2, -1))

    return network("resnet18", parameters, body, lambda w, h: dense(w, "fc", h))


def _block(w: Parts, name: str, h: Tensor, stride: int, norm: str) -> Tensor:
    z = convolution(w, f"{name}.conv1", h, padding=1, stride=stride)
    z = torch.relu(_normalised(w, f"{name}.bn1", z, norm))
    z = _normalised(w, f"{name}.bn2", convolution(w, f"{name}.conv2", z, padding=1), norm)
    if stride > 1:
        h = convolution(w, f"{name}.downsample.0", h, stride=stride)
        h = _normalised(w, f"{name}.downsample.1", h, norm)
    return torch.relu(z + h)


def _normalised(w: Parts, name: str, h: Tensor, norm: str) -> Tensor:
    weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
    slots = zip(h.unbind(), weight.unbind(), bias.unbind(), strict=True)
    return stacked([_norm_of(x, scale, shift, norm) for x, scale, shift in slots])


def _norm_of(x: Tensor, weight: Tensor, bias: Tensor, norm: str) -> Tensor:
    if norm == "group":
        return functional.group_norm(x, _GROUPS, weight, bias)
    return functional.batch_norm(x, None, None, weight, bias, training=True)


def _kernel(name: str, outputs: int, inputs: int, size: int) -> dict[str, Parameter]:
    return {f"{name}.weight": Parameter((outputs, inputs, size, size), he)}


def _norm(name: str, width: int) -> dict[str, Parameter]:
    return {f"{name}.weight": Parameter((width,), one), f"{name}.bias": Parameter((width,), zero)}
