"""Slow libraries, imported at their first use.

Annotations must quote them; otherwise, the annotation itself would import the library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pd", "requests", "torch"]

if TYPE_CHECKING:
    import pandas as pd
    import requests
    import torch
else:

    class _Lazy:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    pd, requests, torch = map(_Lazy, ("pandas", "requests", "torch"))
