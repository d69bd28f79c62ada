"""The entries of ``fedsampling compare``: users' samplers with the settings of ``--set``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.samplers.checking.check import check_sampler
from fedsampling.samplers.checking.rounds import N
from fedsampling.samplers.scheme import Scheme, scheme


@dataclass(frozen=True)
class Entry:
    """A sampler with settings, as one competitor of a comparison."""

    sampler: str
    settings: dict[str, Any]


def all_entries(members: Sequence[type[Scheme]], words: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of some samplers by label.

    `words`: settings, ``key=value`` or ``key=value,value``; several values give several entries.  A
    setting applies to all samplers that have it.
    """
    entries = {}
    fields = {key for member in members for key in member.model_fields}
    for member in members:
        # A setting that no sampler has goes to all of them, which reject it.
        its_words = [
            word
            for word in words
            if (key := word.partition("=")[0]) in member.model_fields or key not in fields
        ]
        for label, settings in _entries(member.named, its_words).items():
            entries[label] = Entry(member.named, settings)
    return entries


def check_entry(entry: Entry, common: Mapping[str, Any]) -> None:
    """Check that an entry works as its sampler declares.

    `common`: settings that all entries of a sampler share; those of the entry have precedence.
    """
    settings = {**common, **entry.settings}
    options = {key: value for key, value in settings.items() if key != "name"}
    if isinstance(m := options.get("m"), int):
        options["m"] = min(m, N)  # the check uses small populations
    try:
        sampler = scheme(entry.sampler, **options)
    except InputError as error:
        raise InputError(*(line.replace("scheme.", "--set ", 1) for line in error.lines)) from None
    check_sampler(sampler)


def _entries(name: str, words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each entry's settings by its label: the sampler's name and the values that differ."""
    values: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: not a setting; write it as key=value")
        parts = [value] if value[:1] in ("[", "{") else value.split(",")
        values.setdefault(key, []).extend(part.strip() for part in parts)
    entries = {}
    for combination in product(*values.values()):
        settings = dict(zip(values, combination, strict=True))
        differs = [f"{key}-{settings[key]}" for key in values if len(values[key]) > 1]
        label = "-".join([name, *differs])
        entries[label] = {key: parse_yaml(value, f"--set {key}") for key, value in settings.items()}
    return entries
