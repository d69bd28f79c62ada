"""The schemes by name: what ``samplers: {label: {name: ...}}`` of an experiment can say.

Values are ``module:class``, so that naming a scheme imports nothing, and so that a new line here
does not make the results of the other schemes out of date.
"""

from importlib import import_module
from typing import Any

SAMPLERS: dict[str, str] = {
    "isfedavg": "fedsampling.samplers.isfedavg:ISFedAvg",
    "md": "fedsampling.samplers.schemes:MD",
    "uniform": "fedsampling.samplers.schemes:Uniform",
}


def sampler_class(name: str) -> Any:
    """Return the class of a scheme."""
    module, _, attribute = SAMPLERS[name].partition(":")
    return getattr(import_module(module), attribute)
