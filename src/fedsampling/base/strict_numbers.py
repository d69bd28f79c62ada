"""Strict numbers and booleans in records: no numbers from text, no booleans from 1.

Pydantic's strict mode would also reject a list for a tuple and text for a path.
"""

import re
from typing import Any

from pydantic_core import PydanticCustomError, core_schema

from fedsampling.base.record_errors import MAX_INTEGER

# YAML 1.1 reads 1e-3 as text, since it has no decimal point.
_POWER_OF_TEN = re.compile(r"[-+]?\d{1,20}[eE][-+]?\d{1,3}")
_NOT_SCHEMAS = ("metadata", "serialization", "default", "expected")


def with_strict_numbers(schema: Any, outermost: bool = False) -> Any:
    """Return a record's schema with strict numbers; nested records are already strict."""
    if isinstance(schema, list | tuple):
        return type(schema)(with_strict_numbers(part) for part in schema)
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "bool":
        return {**schema, "strict": True}
    if kind == "int":
        return core_schema.no_info_before_validator_function(_checked_integer, schema)
    if kind == "float":
        return core_schema.no_info_before_validator_function(_checked_float, schema)
    if kind == "model" and not outermost:
        return schema
    return {
        key: part
        if key in _NOT_SCHEMAS
        else with_strict_numbers(part, outermost and kind != "model")
        for key, part in schema.items()
    }


def _checked_integer(value: Any) -> Any:
    if isinstance(value, str | bool):
        raise PydanticCustomError("int_type", "must be a whole number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise PydanticCustomError("int_size", "must be smaller")
    return value


def _checked_float(value: Any) -> Any:
    if isinstance(value, str) and _POWER_OF_TEN.fullmatch(value):
        return float(value)
    if isinstance(value, str | bool):
        raise PydanticCustomError("float_type", "must be a number")
    return value
