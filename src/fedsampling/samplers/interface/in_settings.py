"""Samplers in experiments' settings: fields that accept only some, and the label ``*``."""

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fedsampling.base.errors import InputError, import_file, nearest
from fedsampling.base.families import OWN_FILE, load_members
from fedsampling.base.progress import format_bytes
from fedsampling.samplers.scheme import CONVEX_NEEDS, NETWORK_NEEDS, DataScheme, Scheme


def one_of(*names: str) -> AfterValidator:
    """Accept the samplers with these names."""

    def validate(sampler: Scheme) -> Scheme:
        if sampler.named not in names:
            raise ValueError(f"{sampler.named} is not supported here; use {' or '.join(names)}")
        return sampler

    return AfterValidator(validate)


def _observing(available: frozenset[str], models: str) -> AfterValidator:
    """Accept the samplers whose ``needs`` are available."""

    def validate(sampler: Scheme) -> Scheme:
        if missing := sorted(sampler.needs - available):
            raise ValueError(
                f"{sampler.named} needs {', '.join(missing)}, which {models} do not provide; "
                "use another sampler"
            )
        return sampler

    return AfterValidator(validate)


NetworkScheme = Annotated[Scheme, _observing(NETWORK_NEEDS, "networks")]
ConvexScheme = Annotated[Scheme, _observing(CONVEX_NEEDS, "convex models")]


def expand_star(
    records: Mapping[str, Any], intermittent: bool = False
) -> dict[str, dict[str, Any]]:
    """Expand the label ``"*"`` into all samplers that can train networks and have no other label.

    The record of ``"*"`` holds settings for all samplers that have them. A label whose record is
    null leaves the sampler of that name out; so does `intermittent` if it needs all clients.
    """
    common = records["*"]
    labelled = {label: record for label, record in records.items() if label != "*"}
    named = {(record or {}).get("name", label) for label, record in labelled.items()}
    members = {
        name: sampler
        for name, sampler in Scheme.members().items()
        if not issubclass(sampler, DataScheme)
    }
    unlabelled = {name: sampler for name, sampler in members.items() if name not in named}
    # Samplers left out by null count: at scale best, these are the unfinished ones.
    left_out = [members[name] for name, record in records.items() if not record and name in members]
    fields = [sampler.model_fields for sampler in (*unlabelled.values(), *left_out)]
    settings = {key for names in fields for key in names}
    if unknown := [key for key in common if key not in settings]:
        raise InputError(
            *(f"*.{key}: no sampler has this setting; {nearest(key, settings)}" for key in unknown)
        )
    expanded = {label: record for label, record in labelled.items() if record is not None}
    for name, sampler in unlabelled.items():
        if sampler.intermittent or not intermittent:
            fitting = {key: common[key] for key in common if key in sampler.model_fields}
            expanded[name] = {"name": name, **fitting}
    return expanded


# Samplers defined in users' files.


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


# Memory and time of a sampler's selection among n clients, before a run starts.
#
# A run that cannot fit is rejected with an explanation instead of being killed by the operating
# system.


NUMBER_BYTES = 8  # double precision
OPERATION_SECONDS = 1e-9
CANDIDATES = (10_000, 1000, 100)  # sizes of a candidate set that an error suggests


def memory_bytes(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return the bytes that a sampler needs for n clients, including the server's memory."""
    stored = scheme.demand(n, d, runs)[0]
    if "gradients" in scheme.needs:
        stored += runs * 0.5 * n * d
    if "heterogeneity" in scheme.needs and not scheme.reads_blocks:
        stored += runs * n**2
    return NUMBER_BYTES * stored


def selection_seconds(scheme: Scheme, n: int, d: int, runs: int = 1) -> float:
    """Return about how many seconds one selection takes on a CPU for all stacked runs."""
    return OPERATION_SECONDS * runs * scheme.demand(n, d, runs)[1]


def obstacle(scheme: Scheme, n: int, d: int, runs: int, memory: float, seconds: float) -> str:
    """Explain in one line why a sampler cannot select from n clients; empty if it can.

    `d`: number of the model's parameters. `runs`: number of runs stacked in a job. `memory`:
    available memory in bytes. `seconds`: time limit for one selection.  A run can stop and resume
    between rounds, but not within one.
    """
    required, time = memory_bytes(scheme, n, d, runs), selection_seconds(scheme, n, d, runs)
    if required <= memory and time <= seconds:
        return ""
    fix = "use fewer clients, fewer seeds at once, or a sampler that grows as n, such as md"
    for size in CANDIDATES if "candidates" in type(scheme).model_fields else ():
        smaller = scheme.model_copy(update={"candidates": size})
        fits = memory_bytes(smaller, n, d, runs) <= memory
        if size < n and fits and selection_seconds(smaller, n, d, runs) <= seconds:
            fix = f"set candidates: {size}, or use fewer clients"
            break
    if required > memory:
        return (
            f"name: {scheme.named} needs {format_bytes(required)} of memory for {n:,} clients, "
            f"but only {format_bytes(memory)} are available; {fix}"
        )
    return (
        f"name: {scheme.named} takes about {time / 3600:,.0f} hours for one selection among "
        f"{n:,} clients, and the limit is {seconds / 3600:,.0f}; {fix}"
    )
