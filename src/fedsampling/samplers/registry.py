"""The schemes by name: what ``samplers: {label: {name: ...}}`` of an experiment can say.

Values are ``module:class``, so that naming a scheme imports nothing, and so that a new line here
does not make the results of the other schemes out of date.
"""

from importlib import import_module
from typing import Any

SAMPLERS: dict[str, str] = {
    "approx_opt": "fedsampling.samplers.runtime:RuntimeSampling",
    "available": "fedsampling.samplers.available:Available",
    "binomial": "fedsampling.samplers.schemes:Binomial",
    "clustered_similarity": "fedsampling.samplers.clustered_schemes:ClusteredSimilarity",
    "clustered_size": "fedsampling.samplers.clustered_schemes:ClusteredSize",
    "delayhet_sampling": "fedsampling.samplers.delayhet:DelayHetSampling",
    "delayhet_submodular": "fedsampling.samplers.delayhet:DelayHetSubmodular",
    "divfl": "fedsampling.samplers.divfl:DivFL",
    "fedavg": "fedsampling.samplers.schemes:FedAvg",
    "flanp": "fedsampling.samplers.flanp:Flanp",
    "full": "fedsampling.samplers.schemes:Full",
    "isfedavg": "fedsampling.samplers.isfedavg:ISFedAvg",
    "luo2022": "fedsampling.samplers.runtime:LuoSampling",
    "md": "fedsampling.samplers.schemes:MD",
    "poisson": "fedsampling.samplers.schemes:Poisson",
    "power_of_choice": "fedsampling.samplers.power_of_choice:PowerOfChoice",
    "random": "fedsampling.samplers.power_of_choice:Random",
    "target": "fedsampling.samplers.target:Target",
    "uniform": "fedsampling.samplers.schemes:Uniform",
}


def sampler_class(name: str) -> Any:
    """Return the class of a scheme."""
    module, _, attribute = SAMPLERS[name].partition(":")
    return getattr(import_module(module), attribute)
