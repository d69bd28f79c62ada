"""The content of a user's objects, which decides whether a saved training is the same."""

import ast
import dis
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fedsampling.base.code import is_library

PLAIN = (type(None), bool, int, float, complex, str, bytes)

# An import by a module or a function: the dots before the name, the name, and those after `from`.
Import = tuple[int, str, tuple[str, ...]]


def content_of(value: Any, visited: "set[int] | None" = None) -> Any:
    """Return plain data that change with a user's object: bytecode, constants and parameters.

    Functions and classes are followed into those that they use, and into the users' modules that
    they import, but not into libraries; the package's own code has fingerprints.  Not seen: files
    and environment variables that they read, and modules imported by a computed name.
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
        return _content_of_file(Path(str(value.__file__)), value.__package__ or "", visited)
    if isinstance(value, FunctionType):
        names = [*value.__code__.co_names]
        names += [
            name for code in value.__code__.co_consts for name in getattr(code, "co_names", ())
        ]
        used = {name: value.__globals__[name] for name in names if name in value.__globals__}
        cells = inspect.getclosurevars(value).nonlocals
        package = value.__globals__.get("__package__") or ""
        modules = _imported_files(_imports_of_code(value.__code__), package, visited)
        defaults = value.__defaults__, value.__kwdefaults__
        return inner([value.__code__, *defaults, used, cells]) + modules
    if isinstance(value, type):
        kinds = (FunctionType, classmethod, staticmethod, property, list, tuple, dict, frozenset)
        written = {
            key: getattr(part, "__func__", getattr(part, "fget", part))
            for key, part in vars(value).items()
            if isinstance(part, kinds + PLAIN) and (callable(part) or not key.startswith("__"))
        }
        return inner([name, [*value.__bases__], written])
    return inner([type(value), vars(value) if hasattr(value, "__dict__") else None])


def _content_of_file(path: Path, package: str, visited: set[int]) -> list[Any]:
    """Hash a user's file of Python, and the users' files that it imports."""
    source = path.read_bytes()
    content = [hashlib.sha256(source).hexdigest()]
    with suppress(SyntaxError, ValueError):  # a compiled module, or one that cannot be imported
        content += _imported_files(_imports_of_source(ast.parse(source)), package, visited)
    return content


def _imported_files(imports: Iterator[Import], package: str, visited: set[int]) -> list[Any]:
    """Return the content of the users' files among the imported modules."""
    contents: list[Any] = []
    for level, name, members in imports:
        absolute = resolve_name("." * level + name, package) if level and package else name
        spec = _spec_of_users(absolute)
        modules = [spec]
        if spec is not None and spec.submodule_search_locations is not None:
            modules += [_spec_of_users(f"{absolute}.{member}") for member in members]
        for module in filter(None, modules):
            if (key := hash(("file", module.origin))) not in visited:
                visited.add(key)
                file = _content_of_file(Path(str(module.origin)), module.parent or "", visited)
                contents += [module.name, file]
    return contents


def _spec_of_users(name: str) -> ModuleSpec | None:
    """Return where a user's module would be imported from; None for others."""
    if name.split(".")[0] in {"", "fedsampling", *sys.stdlib_module_names}:
        return None
    with suppress(ImportError, ValueError, AttributeError):  # no such module
        spec = find_spec(name)
        if spec and str(spec.origin).endswith(".py") and not is_library(str(spec.origin)):
            return spec
    return None


def _imports_of_source(tree: ast.AST) -> Iterator[Import]:
    """Yield the imports of a module, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", tuple(alias.name for alias in node.names)


def _imports_of_code(code: CodeType) -> Iterator[Import]:
    """Yield the imports in the body of a function, and in functions within it.

    Before an import, its bytecode pushes the number of dots and the names after ``from``.
    """
    pushed: list[Any] = [0, None]
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            level, members = pushed[-2:]
            yield level or 0, str(instruction.argval), members or ()
        elif instruction.opname.startswith("LOAD_"):
            pushed.append(instruction.argval)
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _imports_of_code(part)


def _is_users(value: Any) -> bool:
    """Whether an object is defined in a user's file, script or notebook."""
    kind = value if isinstance(value, ModuleType | FunctionType | type) else type(value)
    name = value.__name__ if isinstance(value, ModuleType) else str(kind.__module__)
    if name.split(".")[0] in {"fedsampling", *sys.stdlib_module_names} - {"__main__"}:
        return False
    return not is_library(getattr(sys.modules.get(name), "__file__", None) or "")
