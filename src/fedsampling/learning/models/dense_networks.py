"""Networks of dense layers only."""

from math import prod

import torch
from torch import Tensor

from fedsampling.base.errors import InputError
from fedsampling.learning.models.dropout import Keep
from fedsampling.learning.models.initial import Parameter, torch_layer, zero
from fedsampling.learning.models.layers import dense, labels
from fedsampling.learning.models.network import Network, Parts, network
from fedsampling.learning.models.products import product
from fedsampling.learning.models.settings import LinearRegression, Mlp, Softmax


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
