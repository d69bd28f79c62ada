"""Samplers in experiments' settings: fields that accept only some, and the label ``*``."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.record_errors import check_mapping
from fedsampling.samplers.protocol.base import CONVEX_NEEDS, NETWORK_NEEDS, DataScheme, Scheme


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
    for label, record in labelled.items():
        check_mapping(record or {}, label)
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
