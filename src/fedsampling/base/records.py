"""Strict records for user input.

Every file that a person writes (``config.yaml``, ``papers/*/paper.yaml``) is checked as a pydantic
record derived from :class:`Strict`.  :func:`check` collects all of its errors in one InputError.
"""

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

from fedsampling.base.record_errors import as_input_error, short
from fedsampling.base.strict_numbers import with_strict_numbers

# Number types that many records share.
Positive = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Proportion = Annotated[float, Field(gt=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]  # a 32-bit word, see fedsampling.base.streams


def _in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"[{bounds[0]}, {bounds[1]}] is invalid; put the smaller value first")
    return bounds


InOrder = AfterValidator(_in_order)
Range = Annotated[tuple[PositiveFloat, PositiveFloat], InOrder]
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
        return with_strict_numbers(handler(source), outermost=True)  # type: ignore[no-any-return]


Record = TypeVar("Record", bound=Strict)


def check(model: type[Record], data: dict[str, Any], origin: str) -> Record:
    """Validate plain data as a record; `origin` starts each error line."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise as_input_error(error, model, data, origin) from None


def distinct(values: list[Any]) -> list[Any]:
    """Return `values`, or raise ValueError naming the first duplicate."""
    visited = set()
    for value in values:
        if value in visited:
            raise ValueError(f"duplicate {short(value)}; remove one")
        visited.add(value)
    return values
