"""The networks that an experiment can use, as validated records: ``model: {name: ...}``.

A record's fields are the architecture's settings; the first line of its docstring includes the
number of parameters.  The network is built by the function with the record's name in the module
``code``.  This module does not import torch, since every command of the workflow imports it.  The
convex models of :mod:`fedsampling.learning.training.convex` belong to another run kind.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from fedsampling.base.code import helpers, with_helpers
from fedsampling.base.families import Named
from fedsampling.base.files import sha256, verified_digest
from fedsampling.base.inputs import note
from fedsampling.base.records import Positive, hashed_if_set

if TYPE_CHECKING:
    from fedsampling.learning.models.network import Network


CODE = "fedsampling.learning.models"  # the folder of the networks' code


Rate = Annotated[float, Field(ge=0, lt=1)]


class Model(Named, package=f"{CODE}.settings"):
    """A network architecture and its settings."""

    def build(self, sample: tuple[int, ...], classes: int | None) -> "Network":
        """Build the network for samples of a shape; `classes` is None for regression."""
        network: Network = getattr(import_module(self.code), self.named)(self, sample, classes)
        return network

    @classmethod
    def by_content(cls, value: Mapping[str, Any]) -> type[Named] | None:
        """Return :class:`ModelFile` if there is a key ``file``: ``name`` is then a name in it."""
        return ModelFile if "file" in value else None


class ModelFile(Model, name="file", code=f"{CODE}.own_files"):
    """A torch.nn.Module in a file of your own: {file: my_model.py, name: Net, loss: my_loss}."""

    name: str = Field(description="the class, or the function that makes the module, in the file")
    file: str = Field(description="Python file, from the working folder")
    loss: str | None = hashed_if_set(
        None,
        "a function in the file, loss(outputs, targets), one number per sample; null: cross "
        "entropy, or half the squared error for regression",
    )
    content: str = Field(
        "", description="SHA-256 of the file and of the modules that it imports; computed if empty"
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, record: Any) -> Any:
        """Set or compare the digest; the file is not imported, as modules import torch."""
        if not isinstance(record, dict) or not isinstance(record.get("file"), str):
            return record
        path = Path(record["file"])
        if path.suffix != ".py" or not os.path.isfile(path):
            raise ValueError(f"file: '{path}' is not a Python file; use one that defines a module")
        for file in (path, *helpers(path).values()):
            note(file)
        content = with_helpers(path, sha256(path))
        return {**record, "content": verified_digest(path, record.get("content"), content)}


class LinearRegression(Model, name="linear", code=f"{CODE}.dense_networks"):
    """A linear function without intercept, squared error, harshvardhan2025latency's Quadratic."""


class Softmax(Model, name="softmax", code=f"{CODE}.dense_networks"):
    """Multinomial logistic regression."""


class Mlp(Model, name="mlp", code=f"{CODE}.dense_networks"):
    """One hidden layer, Fraboni et al. 2021 on MNIST: 39,760."""

    hidden: Positive = 50


class CifarCnn(Model, name="cifar_cnn", code=f"{CODE}.convolutional"):
    """Three convolutions and two dense layers, Fraboni et al. 2021 on CIFAR-10: 122,570."""

    third_relu: bool = Field(
        False, description="rectifier after the third convolution; the authors' code has none"
    )
    dropout: Rate = Field(0.2, description="after each convolution")


class SimpleCnn(Model, name="simple_cnn", code=f"{CODE}.convolutional"):
    """Two convolutions and two dense layers, Chen et al. 2022 on digits: 1,663,370."""

    dense: Positive = 512


class Cifar100Cnn(Model, name="cifar100_cnn", code=f"{CODE}.convolutional"):
    """Six convolutions and three dense layers, Chen et al. 2022 on CIFAR-100: 5,897,508."""


class LeafCnn(Model, name="leaf_cnn", code=f"{CODE}.convolutional"):
    """LEAF's network for FEMNIST, Harshvardhan et al. 2025: 6,603,710 with 62 classes."""

    dense: Positive = 2048


class ConvNet(Model, name="convnet", code=f"{CODE}.convolutional"):
    """Two convolutions and two dense layers, Harshvardhan et al. 2025 on MNIST: 431,080."""


class ResNet18(Model, name="resnet18", code=f"{CODE}.resnet"):
    """Residual network for images of 32 × 32, Harshvardhan et al. 2025 on CIFAR-10: 11,173,962."""

    norm: Literal["batch", "group"] = Field(
        "batch", description="batch statistics, in evaluation too, or those of 32 groups"
    )


class Lstm(Model, name="lstm", code=f"{CODE}.recurrent"):
    """Stacked LSTM for the next character, fraboni2022general: 135,700 with 100 symbols."""

    embedding: Positive = 8
    hidden: Positive = 100
    layers: Positive = 2


class LeafLstm(Model, name="leaf_lstm", code=f"{CODE}.recurrent"):
    """LEAF's StackedLSTM for the next character: 817,872 with 80 symbols."""

    embedding: Positive = 8
    hidden: Positive = 256
    layers: Positive = 2


class Gru(Model, name="gru", code=f"{CODE}.recurrent"):
    """Stacked GRU with an output at every step, chen2022optimal: 833,622 with 86 symbols."""

    embedding: Positive = 256
    hidden: Positive = 256
    layers: Positive = 2
