"""Samplers: one module for each family; pure functions first, with the equations they implement."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class _Samplers(ModuleType):
    """The package as a callable: ``fedsampling.samplers()`` returns a table of all samplers."""

    def __call__(self) -> "pd.DataFrame":
        """Return all samplers: name, settings, needs, whether unbiased, and a description."""
        from fedsampling.base.families import catalogue

        family = import_module("fedsampling.samplers.protocol.base").Scheme  # imports this package
        return catalogue(family, "needs", "unbiased")


sys.modules[__name__].__class__ = _Samplers
