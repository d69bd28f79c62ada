"""The boundary between the server and users' samplers: nothing they do reaches anyone else.

A user's sampler gets read-only copies (:func:`lent`), and its results are copied.
:class:`CallGuard` surrounds its calls: an error becomes one line, and a call is refused if it draws
from a generator that the whole process shares, or changes memory that all runs share.

:func:`pack` converts what a sampler remembers to arrays for a checkpoint: arrays are unchanged;
numbers, text, None, lists, tuples, sets and dicts are JSON, with marks for types that it lacks.
"""

import copy
import ctypes
import dis
import json
import pickle
import random
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError, blaming

T = TypeVar("T")

MT19937_BYTES = 625 * 4  # 624 words and a position
UNSEEDED = "default_rng", "SystemRandom"
MAX_ITEMS = 100_000  # of a container that is compared before and after a call
_SCALARS = bool, int, float, str
_GENERATORS = np.random.Generator, np.random.RandomState, random.Random
_MEMORY = (*_SCALARS, list, dict, set, deque, np.ndarray, *_GENERATORS)


def lent(value: T, writeable: bool = False) -> T:
    """Copy all arrays of a record, a sequence or a mapping; the copies are read-only by default."""
    if isinstance(value, np.ndarray):
        array = value.copy()
        array.flags.writeable = writeable
        return array
    if isinstance(value, dict):
        copied = copy.copy(value)  # of the same class
        copied.update((key, lent(item, writeable)) for key, item in value.items())
        return copied
    if type(value) in (list, tuple):
        items: Any = [lent(item, writeable) for item in value]  # type: ignore[attr-defined]
        return items if type(value) is list else tuple(items)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        changes = {item.name: lent(getattr(value, item.name), writeable) for item in fields(value)}
        return replace(value, **changes)
    return value


class CallGuard:
    """Surrounds the calls of a user's sampler.

    `kind`: the sampler's class. `named`: the sampler's name.
    """

    def __init__(self, kind: type, named: str) -> None:
        self._kind, self._named = kind, named
        self.is_user = is_user(kind)

    @contextmanager
    def calling(self, round: int | None = None) -> Iterator[None]:
        """Surround a call in a round, or before the first round."""
        if place := next(filter(None, map(_unseeded, filter(is_user, self._kind.__mro__))), ""):
            raise InputError(
                f"sampler {self._named}: {place} without a seed, so its numbers differ in every "
                "call; draw from `rng` only, by run"
            )
        # Python's generator and shared memory take longer to compare, so not in every round.
        is_thorough = not round or round & (round - 1) == 0
        generators = _generators(is_thorough)
        memory = _shared_memory(self._kind) if is_thorough else {}
        with self.blaming(round), np.errstate():
            yield
        start = self._start(round)
        after = _generators(is_thorough)
        # The call may have imported torch.
        if changed := _changed(generators, {name: after[name] for name in generators}):
            raise InputError(
                f"{start}: draws from {changed}, which the whole process shares; "
                "draw from `rng` only, by run"
            )
        if is_thorough and (changed := _changed(memory, _shared_memory(self._kind))):
            raise InputError(
                f"{start}: changes {changed}, which all runs share; remember it in an attribute of "
                "self (fedsampling.Sampler) or in the state (fedsampling.Scheme)"
            )

    def blaming(self, round: int | None = None) -> AbstractContextManager[None]:
        """Report an error in the sampler's code in one line."""
        return blaming(self._kind.__module__, self._start(round))

    def _start(self, round: int | None) -> str:
        return f"sampler {self._named}" + ("" if round is None else f", round {round}")


def is_user(kind: type) -> bool:
    """Whether a class is a user's, not the package's."""
    return kind.__module__.partition(".")[0] not in ("fedsampling", "pydantic", "builtins")


def _generators(is_thorough: bool) -> dict[str, Any]:
    """Return the states of the random generators that all code of a process shares."""
    bits = np.random.get_bit_generator()  # type: ignore[attr-defined]
    is_usual = type(bits) is np.random.MT19937
    states: dict[str, Any] = {
        # `bits.state` returns the same numbers, but takes a hundred times as long.
        "np.random": ctypes.string_at(bits.ctypes.state_address, MT19937_BYTES)
        if is_usual
        else pickle.dumps(bits.state)
    }
    if torch := sys.modules.get("torch"):
        states["torch's generator"] = torch.get_rng_state().numpy().tobytes()
    if is_thorough:
        states["random"] = random.getstate()
    return states


def _shared_memory(kind: type) -> dict[str, Any]:
    """Return the content of class attributes, and of global variables that the methods use."""
    content = {}
    for base in filter(is_user, kind.__mro__):
        for name, value in vars(base).items():
            if not name.startswith("__") and isinstance(value, _MEMORY):
                content[f"{base.__name__}.{name}"] = _content(value)
        for name, variables in _global_names(base).items():
            if isinstance(value := variables.get(name), _MEMORY):
                content[name] = _content(value)
    return content


def _content(value: Any) -> Any:
    """Return a value that shows whether a variable's content changed."""
    if isinstance(value, _SCALARS):
        return repr(value)  # NaN differs from itself
    size = value.size if isinstance(value, np.ndarray) else getattr(value, "__len__", int)()
    if size > MAX_ITEMS:
        return size
    try:
        return pickle.dumps(value)
    except Exception:  # it contains objects that cannot be pickled
        return size


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the name of a value that changed, was added or removed; empty if there is none."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return names[0] if names else ""


@cache
def _global_names(base: type) -> Mapping[str, dict[str, Any]]:
    """Return the global and attribute names that a class's methods use, with their modules."""
    functions = _functions(base)
    return {
        name: f.__globals__ for f in functions for c in _codes(f.__code__) for name in c.co_names
    }


@cache
def _unseeded(base: type) -> str:
    """Return the place where a class's methods create an unseeded generator; empty if nowhere."""
    for function in _functions(base):
        for code in _codes(function.__code__):
            name = ""
            for step in dis.get_instructions(code):
                if step.opname == "CALL" and step.arg == 0 and name in UNSEEDED:
                    return f"{function.__name__} calls {name}()"
                if step.opname not in ("PRECALL", "PUSH_NULL"):
                    name = str(step.argval)
    return ""


def _functions(base: type) -> list[FunctionType]:
    """Return a class's methods and properties, and the functions of its module that they use."""
    members = (getattr(m, "fget", None) or getattr(m, "__func__", m) for m in vars(base).values())
    functions = [member for member in members if isinstance(member, FunctionType)]
    for function in functions:  # which grows
        for code in _codes(function.__code__):
            for name in code.co_names:
                used = function.__globals__.get(name)
                if not isinstance(used, FunctionType) or used in functions:
                    continue
                if used.__module__ == base.__module__:
                    functions.append(used)
    return functions


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


START = "."  # prefix of these arrays' names
_PLAIN = f"{START}."  # name of the array with the JSON
_SEQUENCES = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}


def pack(values: Mapping[str, Any], owner: str) -> dict[str, NDArray[Any]]:
    """Convert values to arrays; `owner`, such as "sampler md: state", starts an error line."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for name, value in values.items():
        try:
            if isinstance(value, np.ndarray) and value.dtype != object:
                arrays[START + name] = value
            else:
                plain[name] = _encoded(value)
        except TypeError as error:
            raise InputError(
                f"{owner}.{name} holds {error}, which a checkpoint cannot store; use arrays, "
                "numbers, text, lists or dicts"
            ) from None
    if plain:
        arrays[_PLAIN] = np.array(json.dumps(plain))
    return arrays


def unpack(state: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the values that :func:`pack` converted; other arrays are ignored."""
    values: dict[str, Any] = {
        name.removeprefix(START): value.copy()
        for name, value in state.items()
        if name.startswith(START) and name != _PLAIN
    }
    if _PLAIN in state:
        plain = json.loads(str(state[_PLAIN]))
        values |= {name: _decoded(value) for name, value in plain.items()}
    return values


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
