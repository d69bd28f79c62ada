"""Samplers defined in users' files."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedsampling.base.blame import import_file
from fedsampling.base.errors import InputError
from fedsampling.base.families import OWN_FILE, load_members
from fedsampling.samplers.scheme import Scheme


def load_file(path: Path) -> tuple[type[Scheme], ...]:
    """Import a user's Python file, and return the samplers that it defines."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such file; check the path")
    name = OWN_FILE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    members = load_members(Scheme, name, path, lambda: import_file(path, name, "a sampler"))
    if not members:
        raise InputError(f"{path}: defines no sampler; {_fix(vars(sys.modules[name]), name)}")
    return members


def _fix(content: Mapping[str, Any], module: str) -> str:
    """Return the likely fix for a file, given its variables, that defines no sampler."""
    for value in content.values():
        if isinstance(value, type) and issubclass(value, Scheme) and value.__module__ == module:
            base = value.__bases__[0].__name__
            return f'give the class a name: class {value.__name__}({base}, name="…")'
    return 'derive a class from Sampler: class Mine(fedsampling.Sampler, name="mine")'
