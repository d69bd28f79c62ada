"""Values that users' methods returned, as arrays and in words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_array(value: Any) -> NDArray[Any]:
    """Convert a value to an array; an array of dimension zero if this is impossible."""
    try:
        return np.asarray(None if np.ma.is_masked(value) else value)
    except (TypeError, ValueError):  # ragged
        return np.asarray(None)


def described_value(value: Any) -> str:
    """Describe a wrong value by its type, dtype and shape."""
    if value is None:
        return "None"
    array = as_array(value)
    return f"a {type(value).__name__} of {array.dtype} and shape {array.shape}"
