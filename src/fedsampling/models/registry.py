"""The networks by name: what ``model: {name: ...}`` of a training experiment can say.

Values are ``module:function``; the function takes the settings record, the shape of a sample and
the number of classes, and returns a :class:`fedsampling.models.network.Network`.
"""

from importlib import import_module
from typing import Any

from fedsampling.models.network import Network

NETWORKS: dict[str, str] = {
    "mlp": "fedsampling.models.dense:mlp",
}


def build(record: Any, sample: tuple[int, ...], classes: int | None) -> Network:
    """Build the network that a settings record names.

    Parameters
    ----------
    record : settings record
        Such as ``settings_models.Mlp``.
    sample : tuple of int
        Shape of one sample.
    classes : int or None
        Number of labels; None for regression.
    """
    module, _, function = NETWORKS[record.name].partition(":")
    network: Network = getattr(import_module(module), function)(record, sample, classes)
    return network
