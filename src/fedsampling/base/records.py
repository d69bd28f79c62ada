"""Strict records for user input.

Every file that a person writes (``config.yaml``, ``papers/*/paper.yaml``) is checked as a pydantic
record derived from :class:`Strict`.  :func:`check` collects all of its errors in one InputError.
"""

import math
import re
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PydanticUserError,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedsampling.base.errors import InputError, nearest

# Pydantic's errors as lines for users: key, value and fix.


_RANGES = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "tuple": "a pair [low, high]",
    "dict": "'key: value' lines",
    "model": "'key: value' lines",
}


def as_input_error(
    error: ValidationError, model: type[BaseModel], data: dict[str, Any], origin: str
) -> InputError:
    """Convert the errors of validating `data` as `model`; `origin` is the prefix of each line."""
    lines = (_line(dict(item), model, data) for item in error.errors(include_url=False))
    return InputError(*(origin + line for line in lines))


def class_error(error: PydanticUserError, namespace: Mapping[str, Any]) -> str:
    """Describe, in one line, an attribute of a class that cannot become a setting."""
    if error.code == "model-field-missing-annotation":
        for key, value in namespace.items():
            if f"`{key} = " in error.message:
                typed = f"{key}: {type(value).__name__} = {value!r:.40}"
                return f"'{key}' has no type; write '{typed}' to make it a setting"
    kind = re.search(r"<class '(.+?)'>", error.message)
    if error.code == "schema-for-unknown-type" and kind:
        return f"no setting can hold a {kind[1]}; use numbers, text or lists"
    return error.message.splitlines()[0].partition(". ")[0]


def _line(item: dict[str, Any], model: type[BaseModel], data: Any) -> str:
    """Format one error of pydantic as ``key: value is invalid; fix``."""
    path = _keys(item["loc"], data)
    value, context, kind = item["input"], item.get("ctx", {}), item["type"]
    start = f"{'.'.join(path)}: " if path else ""
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{start}unknown key; {nearest(path[-1], _fields(model, data, path[:-1]))}"
    if kind == "missing":
        about = _fields(model, data, path[:-1]).get(path[-1])
        meaning = f" ({about.description})" if about and about.description else ""
        return f"{start}missing; add it{meaning}"
    if kind == "literal_error":
        options = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return (
            f"{start}{short(value)} is unknown; {nearest(str(value), options)}{_yaml_hint(value)}"
        )
    if kind == "value_error":
        return f"{start}{context['error']}"
    if kind == "int_size":
        return f"{start}{short(value)} is out of range; must be within ±{MAX_INTEGER}"
    if kind in _RANGES:
        bound, words = _RANGES[kind]
        return f"{start}{short(value)} is out of range; must be {words} {context[bound]}"
    if kind == "string_too_long":
        limit = context["max_length"]
        return f"{start}{short(value)} is too long; must have at most {limit} characters"
    if kind == "string_pattern_mismatch":
        return f"{start}{short(value)} is invalid; must match {context['pattern']}"
    expected = _EXPECTED.get(kind.split("_")[0])
    fix = f"must be {expected}" if expected else item["msg"][0].lower() + item["msg"][1:]
    hint = _yaml_hint(value) if expected == "text" else ""
    return f"{start}{short(value)} is invalid; {fix}{hint}"


def _yaml_hint(value: Any) -> str:
    """Explain that YAML reads some unquoted words as true or false."""
    if not isinstance(value, bool):
        return ""
    words = "yes, on and true" if value else "no, off and false"
    return f" (YAML reads {words} as {short(value)}; quote a text)"


def _keys(loc: tuple[int | str, ...], data: Any) -> list[str]:
    """Return the keys that lead to an error, without pydantic's labels for keys and unions."""
    keys: list[str] = []
    for position, part in enumerate(loc):
        last = position == len(loc) - 1
        inside = isinstance(data, Mapping) and part in data
        if isinstance(data, list | tuple) and isinstance(part, int):
            data = data[part] if part < len(data) else None
        elif inside:
            data = data[part]
        elif not (last and isinstance(data, Mapping)) or part == "[key]":
            continue
        keys.append(str(part))
    return keys


def _fields(annotation: Any, data: Any, path: list[str]) -> dict[str, FieldInfo]:
    """Return the settings of the record at `path`; names in `data` select family members."""
    model = _record(annotation)
    if isinstance(data, Mapping) and hasattr(model, "class_for"):  # a family of records
        model = model.class_for(data)
    fields: dict[str, FieldInfo] = getattr(model, "model_fields", {})
    if not path:
        return fields
    key, *below = path
    inner = fields[key].annotation if key in fields else (get_args(model) or (None,))[-1]
    if isinstance(data, list):
        value = data[int(key)]
    else:
        value = data.get(key) if isinstance(data, Mapping) else None
    return _fields(inner, value, below)


def _record(annotation: Any) -> Any:
    """Extract the record, mapping or list from an annotation such as ``Model | None``."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (dict, list, tuple) or isinstance(annotation, type):
        return annotation
    inside = [_record(part) for part in get_args(annotation) if part is not type(None)]
    return inside[0] if inside else annotation


def short(value: Any) -> str:
    """Format a value for a message: short, and as YAML writes true, false and null."""
    words = {True: "true", False: "false", None: "null"}
    if value is None or isinstance(value, bool):
        return words[value]
    return _SHORT.repr(value)


class _Short(reprlib.Repr):
    """Short representations that fit into one line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 60
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 2, 4, 4, 3

    def repr_int(self, x: int, level: int) -> str:
        """Replace numbers that are too long for Python to print by their length."""
        digits = int(x.bit_length() * math.log10(2)) + 1
        return repr(x) if digits < self.maxlong else f"a number of about {digits} digits"


_SHORT = _Short()


# Strict numbers and booleans in records: no numbers from text, no booleans from 1.
#
# Pydantic's strict mode would also reject a list for a tuple and text for a path.


MAX_INTEGER = 2**63 - 1  # largest int64, the integer type of tables

# YAML 1.1 reads 1e-3 as text, since it has no decimal point.
_POWER_OF_TEN = re.compile(r"[-+]?\d{1,20}[eE][-+]?\d{1,3}")
_NOT_SCHEMAS = ("metadata", "serialization", "default", "expected")


def _strict(schema: Any, outermost: bool = False) -> Any:
    """Return a record's schema with strict numbers; nested records are already strict."""
    if isinstance(schema, list | tuple):
        return type(schema)(_strict(part) for part in schema)
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
        key: part if key in _NOT_SCHEMAS else _strict(part, outermost and kind != "model")
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


def hashed_if_set(default: Any, description: str, **limits: Any) -> Any:
    """Return a field of settings whose default is not part of hashes, as older runs lack it."""
    return Field(
        default, description=description, exclude_if=lambda value: value == default, **limits
    )


class Strict(BaseModel):
    """An immutable record that rejects unknown keys and does not parse numbers from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _strict(handler(source), outermost=True)  # type: ignore[no-any-return]


Record = TypeVar("Record", bound=Strict)


def check(model: type[Record], data: dict[str, Any], origin: str) -> Record:
    """Validate plain data as a record; `origin` starts each error line."""
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
