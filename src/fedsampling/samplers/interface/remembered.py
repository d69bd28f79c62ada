"""Conversion of a sampler's attributes to arrays for a checkpoint, and back.

Arrays are stored unchanged.  Numbers, text, None, lists, tuples, sets and dicts are stored as JSON;
small mappings mark the types that JSON lacks.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError

START = "."  # prefix of these arrays' names, which no name in `memory` has
_PLAIN = f"{START}."  # name of the array with the JSON
_SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}


def pack(attributes: Mapping[str, Any], owner: str) -> dict[str, NDArray[Any]]:
    """Convert attributes to arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in attributes.items():
        try:
            if isinstance(value, np.ndarray) and value.dtype != object:
                arrays[START + name] = value
            else:
                plain[name] = _encoded(value)
        except TypeError as error:
            raise InputError(
                f"sampler {owner}: self.{name} holds {error}, which a checkpoint cannot store; use "
                "arrays, numbers, text, lists or dicts, or call it "
                f"self._{name} and create it in prepare"
            ) from None
    if plain:
        arrays[_PLAIN] = np.array(json.dumps(plain))
    return arrays


def unpack(state: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the attributes that :func:`pack` converted; other arrays are ignored."""
    attributes: dict[str, Any] = {
        name.removeprefix(START): value.copy()
        for name, value in state.items()
        if name.startswith(START) and name != _PLAIN
    }
    if _PLAIN in state:
        plain = json.loads(str(state[_PLAIN]))
        attributes |= {name: _decoded(value) for name, value in plain.items()}
    return attributes


def _encoded(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_encoded(item) for item in value]
    kind = type(value).__name__
    if type(value) in _SEQUENCES.values():
        maxlen = value.maxlen if isinstance(value, deque) else None
        return {"kind": kind, "value": [_encoded(item) for item in value], "most": maxlen}
    if type(value) is dict:
        pairs = [[_encoded(key), _encoded(item)] for key, item in value.items()]
        return {"kind": kind, "value": pairs}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufU":
        scalar = isinstance(value, np.generic)
        flat = value.ravel().tolist()
        of, shape = value.dtype.str, value.shape
        return {"kind": "array", "value": flat, "of": of, "shape": shape, "scalar": scalar}
    raise TypeError(f"a value of type {kind}")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, content = value["kind"], value["value"]
    if kind == "dict":
        return {_decoded(key): _decoded(item) for key, item in content}
    if kind == "array":
        array = np.array(content, value["of"]).reshape(value["shape"])
        return array[()] if value["scalar"] else array
    members = [_decoded(item) for item in content]
    return deque(members, value["most"]) if kind == "deque" else _SEQUENCES[kind](members)
