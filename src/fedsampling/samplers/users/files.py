"""Samplers defined in users' files."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from fedsampling.base.code import check_allowed, helpers
from fedsampling.base.errors import InputError, check_known, import_file, naming
from fedsampling.base.families import OWN_FILE, load_members
from fedsampling.base.inputs import merged, recording, watch, without
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.grids import drawn

_read_at_load: dict[Path, dict[str, str]] = {}  # by file


def read_at_load() -> dict[str, str]:
    """Return the inputs that users' files read when they were imported.

    The files and their helpers are left out: the hashes of runs cover them.
    """
    files = [*_read_at_load]
    files += [helper for file in files if file.is_file() for helper in helpers(file).values()]
    return without(merged(*_read_at_load.values()), files)


def load_file(path: Path) -> tuple[type[Scheme], ...]:
    """Import a user's Python file, and return the samplers that it defines."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such file; check the path")
    name = OWN_FILE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    check_allowed(path)
    watch(path.parent)
    with recording() as record:
        members = load_members(Scheme, name, path, lambda: import_file(path, name, "a sampler"))
        _read_at_load.setdefault(path, record.states())
    if not members:
        raise InputError(
            f"{path}: defines no sampler; derive a class with a name from Sampler: "
            'class Mine(fedsampling.Sampler, name="mine")'
        )
    with naming(str(path)):
        for member in members:
            keys = [key for key in member.model_fields if key != member.key]
            check_known(member.grid, keys, f"grid of {member.named}: '{{}}' is no setting")
            drawn(member.named, 1)
    return members


def joint_name(members: Iterable[type[Scheme]]) -> str:
    """Return the name of a comparison of users' samplers, which is also its folder."""
    return "-".join(member.named for member in members)
