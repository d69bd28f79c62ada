"""The schemes by name: what ``samplers: {label: {name: ...}}`` of an experiment can say.

Values are ``module:class``, so that naming a scheme imports nothing, and so that a new line here
does not make the results of the other schemes out of date.
"""

from importlib import import_module
from typing import Any

SAMPLERS: dict[str, str] = {
    "available": "fedsampling.samplers.available:Available",
    "binomial": "fedsampling.samplers.schemes:Binomial",
    "clustered_similarity": "fedsampling.samplers.clustered_schemes:ClusteredSimilarity",
    "clustered_size": "fedsampling.samplers.clustered_schemes:ClusteredSize",
    "fedavg": "fedsampling.samplers.schemes:FedAvg",
    "full": "fedsampling.samplers.schemes:Full",
    "isfedavg": "fedsampling.samplers.isfedavg:ISFedAvg",
    "md": "fedsampling.samplers.schemes:MD",
    "poisson": "fedsampling.samplers.schemes:Poisson",
    "target": "fedsampling.samplers.target:Target",
    "uniform": "fedsampling.samplers.schemes:Uniform",
}


def sampler_class(name: str) -> Any:
    """Return the class of a scheme."""
    module, _, attribute = SAMPLERS[name].partition(":")
    return getattr(import_module(module), attribute)
