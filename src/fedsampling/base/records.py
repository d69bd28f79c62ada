"""Strict records for user input.

Every file that a person writes (``config.yaml``, ``papers/*/paper.yaml``) is checked as a pydantic
record derived from :class:`Strict`.  :func:`check` collects all of its errors in one InputError.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema

from fedsampling.base.strict_numbers import strict_numbers
from fedsampling.base.validation_errors import as_input_error, short

# Number types that many records share.
Positive = Annotated[int, Field(ge=1)]
Variance = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Part = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # a 32-bit word, see fedsampling.base.streams


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"[{bounds[0]}, {bounds[1]}] is invalid; put the smaller value first")
    return bounds


InOrder = AfterValidator(_in_order)
Range = Annotated[tuple[Variance, Variance], InOrder]
Counts = Annotated[tuple[Positive, Positive], InOrder]


class Strict(BaseModel):
    """An immutable record that rejects unknown keys and does not parse numbers from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = strict_numbers(handler(source))
        return schema


Record = TypeVar("Record", bound=Strict)


def check(model: type[Record], data: dict[str, Any], origin: str) -> Record:
    """Validate plain data as a record.

    `origin`: prefix of each error line, such as ``config.yaml: ``.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise as_input_error(error, model, data, origin) from None


def distinct(values: list[Any]) -> list[Any]:
    """Return `values`, or raise ValueError naming the first duplicate."""
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ValueError(f"duplicate {short(value)}; remove one")
    return values


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
        elif isinstance(old, dict) and isinstance(value, dict) and _same_name(old, value):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def _same_name(old: dict[str, Any], value: dict[str, Any]) -> bool:
    return bool(value.get("name", old.get("name")) == old.get("name"))


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
