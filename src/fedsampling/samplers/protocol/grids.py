"""The settings that tuning in the benchmark tries: draws from a sampler's ``grid``."""

from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.record_errors import short
from fedsampling.base.streams import stream
from fedsampling.samplers.protocol.base import Scheme

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
