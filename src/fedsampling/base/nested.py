"""Nested mappings: merged, compared, and flattened to dotted keys."""

from collections.abc import Mapping
from typing import Any


def merge(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return `base` updated with `changes`; nested mappings are merged key by key.

    A mapping with another ``name`` replaces the old mapping as a whole: the settings of one
    dataset, model or sampler do not apply to another.  Null in place of a mapping removes it.
    """
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(old, dict) and value is None:
            del merged[key]
        elif (
            isinstance(old, dict)
            and isinstance(value, dict)
            and value.get("name", old.get("name")) == old.get("name")
        ):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """List the settings in which two resolved experiments differ: ``key value (other's value)``."""
    first_values, second_values = flat(first), flat(second)
    return [
        f"{key.removeprefix('settings.')} {_text(first_values, key)} ({_text(second_values, key)})"
        for key in {**second_values, **first_values}
        if first_values.get(key) != second_values.get(key)
    ]


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by dotted key."""
    values: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping) and value:
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[f"{prefix}{key}"] = value
    return values


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "none")
    if isinstance(value, list) and len(value) > 3:
        return f"{len(value)} values"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
