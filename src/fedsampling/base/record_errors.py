"""Pydantic's errors as lines for users: key, value and fix."""

import math
import re
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, PydanticUserError, ValidationError
from pydantic.fields import FieldInfo

from fedsampling.base.errors import InputError, nearest

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
    "tuple": "a list",
    "pair": "a pair [low, high]",
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
    """Return one line that says why an attribute of a class cannot become a setting."""
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
    if kind == "tuple_type" and path and _is_pair(_fields(model, data, path[:-1]).get(path[-1])):
        kind = "pair"
    expected = _EXPECTED.get(kind.split("_")[0])
    fix = f"must be {expected}" if expected else item["msg"][0].lower() + item["msg"][1:]
    hint = _yaml_hint(value) if expected == "text" else ""
    return f"{start}{short(value)} is invalid; {fix}{hint}"


def _is_pair(about: FieldInfo | None) -> bool:
    """Whether a setting is a tuple of two values, not of any number."""
    types = get_args(_record(about.annotation)) if about else ()
    return len(types) == 2 and types[-1] is not Ellipsis


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


def check_mapping(value: Any, key: str) -> None:
    """Raise an InputError if the value of a key is no mapping, before code reads keys in it."""
    if not isinstance(value, Mapping):
        raise InputError(f"{key}: {short(value)} is invalid; must be {_EXPECTED['dict']}")


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
MAX_INTEGER = 2**63 - 1  # largest int64, the integer type of tables
