"""The competitors of a comparison: the samplers of users' files, with the settings of ``--set``."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.samplers.checks.check import check_sampler
from fedsampling.samplers.checks.populations import N
from fedsampling.samplers.protocol.base import Scheme, scheme

Entry = dict[str, Any]  # one competitor of a comparison: a sampler's name, and settings of --set


def all_entries(members: Sequence[type[Scheme]], words: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of some samplers by label: a name, and the values that differ.

    `words`: settings, ``key=value`` or ``key=value,value``; several values give several entries.  A
    setting applies to all samplers that have it.
    """
    values: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: not a setting; write it as key=value")
        if key == "name":
            raise InputError(f"--set {word}: your files name the samplers; remove it")
        parts = [value] if value[:1] in ("[", "{") else value.split(",")
        values.setdefault(key, []).extend(part.strip() for part in parts)
    entries = {}
    fields = {key for member in members for key in member.model_fields}
    for member in members:
        # A setting that no sampler has goes to all of them, which reject it.
        keys = [key for key in values if key in member.model_fields or key not in fields]
        if varied := [key for key in keys if key in member.grid]:
            raise InputError(
                f"--set {varied[0]}: tuning chooses it, because the grid of {member.named} has it; "
                "remove one of the two"
            )
        for combination in product(*(values[key] for key in keys)):
            texts = dict(zip(keys, combination, strict=True))
            differing = [f"{key}-{text}" for key, text in texts.items() if len(values[key]) > 1]
            settings = {key: parse_yaml(text, f"--set {key}") for key, text in texts.items()}
            entries["-".join([member.named, *differing])] = {"name": member.named, **settings}
    return entries


def check_entry(entry: Entry, common: Mapping[str, Any]) -> None:
    """Check that an entry, with the settings `common` to its sampler, works as it declares."""
    settings = {**common, **entry}
    if isinstance(m := settings.get("m"), int):
        settings["m"] = min(m, N)  # the check uses small populations
    try:
        sampler = scheme(**settings)
    except InputError as error:
        raise InputError(*(line.replace("scheme.", "--set ", 1) for line in error.lines)) from None
    check_sampler(sampler)
