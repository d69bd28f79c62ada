"""Users' Python files as modules, and the content of users' classes and functions."""

import hashlib
import inspect
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fedsampling.base.errors import InputError

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def import_file(path: Path, name: str, defines: str) -> ModuleType:
    """Import a user's Python file, once, as the module `name`.

    `defines`: what the file must define, for the message, such as ``a sampler``.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: not a Python file; use one that defines {defines}")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # a partly executed module must not be reused
        raise
    return module


def content_of(value: Any, visited: "set[int] | None" = None) -> Any:
    """Return plain data that change with a user's object: bytecode, constants and parameters.

    Functions and classes are followed into those that they use, but not into libraries; the
    package's own code has fingerprints.
    """
    visited = set() if visited is None else visited
    inner = partial(content_of, visited=visited)
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, Mapping):
        return [[str(key), inner(part)] for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [inner(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):  # an array
        return [str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, CodeType):
        constants = [inner(constant) for constant in value.co_consts]
        return [value.co_code.hex(), value.co_names, value.co_varnames, constants]
    if isinstance(value, partial):
        return inner([value.func, value.args, value.keywords])
    if isinstance(value, MethodType):
        return inner([value.__func__, value.__self__])
    if hasattr(value, "named_modules") and not isinstance(value, type):  # a module of PyTorch
        arrays = {key: part.detach().double().numpy() for key, part in value.state_dict().items()}
        parts = [part for _, part in value.named_modules()]
        settings = [[v for v in vars(part).items() if isinstance(v[1], PLAIN)] for part in parts]
        return inner([repr(value), [*map(type, parts)], settings, arrays])
    name = getattr(value, "__qualname__", type(value).__qualname__)
    if id(value) in visited or not _is_users(value):
        return name
    visited.add(id(value))
    if isinstance(value, ModuleType):
        return hashlib.sha256(Path(str(value.__file__)).read_bytes()).hexdigest()
    if isinstance(value, FunctionType):
        names = [*value.__code__.co_names]
        names += [
            name for code in value.__code__.co_consts for name in getattr(code, "co_names", ())
        ]
        used = {name: value.__globals__[name] for name in names if name in value.__globals__}
        cells = inspect.getclosurevars(value).nonlocals
        return inner([value.__code__, value.__defaults__, value.__kwdefaults__, used, cells])
    if isinstance(value, type):
        kinds = (
            FunctionType,
            classmethod,
            staticmethod,
            property,
            *PLAIN,
            list,
            tuple,
            dict,
            frozenset,
        )
        written = {
            key: getattr(part, "__func__", getattr(part, "fget", part))
            for key, part in vars(value).items()
            if isinstance(part, kinds + PLAIN) and (callable(part) or not key.startswith("__"))
        }
        return inner([name, [*value.__bases__], written])
    return inner([type(value), vars(value) if hasattr(value, "__dict__") else None])


def _is_users(value: Any) -> bool:
    """Whether an object is defined in a user's file, script or notebook."""
    kind = value if isinstance(value, ModuleType | FunctionType | type) else type(value)
    name = value.__name__ if isinstance(value, ModuleType) else str(kind.__module__)
    if name.split(".")[0] in {"fedsampling", *sys.stdlib_module_names} - {"__main__"}:
        return False
    return "site-packages" not in str(getattr(sys.modules.get(name), "__file__", None) or "")
