"""Users' Python files as modules."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from fedsampling.base.errors import InputError


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
