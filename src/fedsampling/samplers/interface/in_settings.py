"""Samplers in experiments' settings: fields that accept only some, the label ``*``, and tuning."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from fedsampling.base.errors import InputError, check_known, import_file, naming, nearest
from fedsampling.base.families import OWN_FILE, load_members
from fedsampling.base.records import short
from fedsampling.base.streams import stream
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


DRAWS, SEED = 3, 33  # as when the published trials were drawn


def drawn(sampler: str, draw: int) -> dict[str, Any]:
    """Return the settings in a sampler's ``grid`` with the values of draw 1, 2 or 3.

    The draws are a Latin hypercube: each has a value from another third of a range, or another
    choice, in random order.

    Raises InputError if there is no such draw, or if the grid is invalid.
    """
    if draw not in range(1, DRAWS + 1):
        raise InputError(f"draw: {short(draw)} is invalid; must be from 1 to {DRAWS}")
    grid = next((member.grid for member in Scheme.named_as(sampler)), {})
    return {key: _values(sampler, key, space)[draw - 1] for key, space in grid.items()}


def _values(sampler: str, key: str, space: Any) -> list[Any]:
    """Return a setting's value in each draw, floats with two digits."""
    rng = stream(SEED, f"trials {sampler} {key}")
    order = rng.permutation(DRAWS)
    match space:
        case (int() | float() as low, int() | float() as high, "linear" | "integer") if low < high:
            pass
        case (int() | float() as low, int() | float() as high, "log") if 0 < low < high:
            pass
        case [*choices] if len({isinstance(choice, str) for choice in choices}) == 1:
            return [choices[int((k + 0.5) / DRAWS * len(choices))] for k in order]
        case _:
            raise InputError(
                f"grid of {sampler}: {key} = {short(space)} is invalid; must be (low, high, "
                "'linear'), with 'log' or 'integer' instead, or a tuple of choices"
            )
    place = (order + rng.random(DRAWS)) / DRAWS
    if space[2] == "integer":
        return [int(low + share * (high - low + 1)) for share in place]
    values = low * (high / low) ** place if space[2] == "log" else low + place * (high - low)
    return [float(f"{value:.2g}") for value in values]


# Samplers defined in users' files.


def load_file(path: Path) -> tuple[type[Scheme], ...]:
    """Import a user's Python file, and return the samplers that it defines."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such file; check the path")
    name = OWN_FILE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    members = load_members(Scheme, name, path, lambda: import_file(path, name, "a sampler"))
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
