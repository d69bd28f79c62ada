"""Residual networks."""

import torch
from torch import Tensor

from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.initial import Parameter, he, one, torch_layer, zero
from fedsampling.learning.models.layers import (
    channels_first,
    convolution,
    dense,
    image,
    labels,
    normalised,
)
from fedsampling.learning.models.network import Network, Parts, network
from fedsampling.learning.models.settings import ResNet18

_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride; two blocks each
_GROUPS = 32


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
    groups = _GROUPS if record.norm == "group" else None
    before = _STAGES[0][0]
    parameters = {**_kernel("conv1", before, channels, 3), **_norm("bn1", before)}
    for stage, (width, stride) in enumerate(_STAGES, start=1):
        for block in range(2):
            name = f"layer{stage}.{block}"
            parameters |= _kernel(f"{name}.conv1", width, before, 3) | _norm(f"{name}.bn1", width)
            parameters |= _kernel(f"{name}.conv2", width, width, 3) | _norm(f"{name}.bn2", width)
            if block == 0 and stride > 1:
                parameters |= _kernel(f"{name}.downsample.0", width, before, 1)
                parameters |= _norm(f"{name}.downsample.1", width)
            before = width
    parameters |= torch_layer("fc", labels("resnet18", classes), before)

    def body(w: Parts, x: Tensor, keep: Keep) -> Tensor:
        h = convolution(w, "conv1", channels_first(x), padding=1)
        h = torch.relu(normalised(w, "bn1", h, groups))
        for stage, (_, stride) in enumerate(_STAGES, start=1):
            h = _block(w, f"layer{stage}.0", h, stride, groups)
            h = _block(w, f"layer{stage}.1", h, 1, groups)
        return h.mean((-2, -1))

    return network("resnet18", parameters, body, lambda w, h: dense(w, "fc", h))


def _block(w: Parts, name: str, h: Tensor, stride: int, groups: int | None) -> Tensor:
    z = convolution(w, f"{name}.conv1", h, padding=1, stride=stride)
    z = torch.relu(normalised(w, f"{name}.bn1", z, groups))
    z = normalised(w, f"{name}.bn2", convolution(w, f"{name}.conv2", z, padding=1), groups)
    if stride > 1:
        h = convolution(w, f"{name}.downsample.0", h, stride=stride)
        h = normalised(w, f"{name}.downsample.1", h, groups)
    return torch.relu(z + h)


def _kernel(name: str, outputs: int, inputs: int, size: int) -> dict[str, Parameter]:
    return {f"{name}.weight": Parameter((outputs, inputs, size, size), he)}


def _norm(name: str, width: int) -> dict[str, Parameter]:
    return {f"{name}.weight": Parameter((width,), one), f"{name}.bias": Parameter((width,), zero)}
