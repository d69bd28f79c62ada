"""Users' arrays, tensors and lists, checked and converted to the types that datasets have.

Nothing is guessed: values that are missing, of several types or on several scales are refused, so
that no two labels or owners become one.  Each error is one line that names the argument.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Bools, Ints
from fedsampling.base.errors import InputError, described
from fedsampling.base.lazy import pd
from fedsampling.data.user_layout import check_rows, is_image, pixels

IMAGE_AXES = 3  # samples, rows and columns: the fewest axes of images
MAX_BYTE = 255
MAX_TOKEN = 2**31 - 1
MAX_INTEGER = 2**63 - 1
MAX_LISTED_LABELS = 5  # in a message
MAX_CLASSES = 20  # whole numbers that may be labels


class Labelled(NamedTuple):
    """Samples (N, ...) and the label or target of each."""

    x: NDArray[Any]
    y: NDArray[Any]


def labelled(x: Any, y: Any, suffix: str, tokens: bool) -> Labelled:
    """Check and convert samples and their labels; errors name the arguments with `suffix`."""
    samples = _features(numbers(x, f"x{suffix}"), f"x{suffix}", tokens)
    labels = one_type(y, f"y{suffix}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(samples) != len(labels):
        raise InputError(
            f"x{suffix}, y{suffix}: {len(samples)} samples but {len(labels)} labels; must be equal"
        )
    if labels.ndim != 1 and not (tokens and labels.shape == samples.shape):
        raise InputError(
            f"y{suffix}: shape {labels.shape} is invalid; must be one label per sample"
        )
    if tokens and (labels.dtype.kind != "f" or labels.ndim > 1):
        if (kind := kind_of(labels)) in ("text", "floating-point numbers"):
            raise InputError(f"y{suffix}: contains {kind}; with tokens=True it must be integers")
        labels = _checked_tokens(labels, f"y{suffix}")
    if labels.dtype.kind == "f":
        as_single(labels, f"y{suffix}")
    return Labelled(samples, labels)


def as_array(values: Any, argument: str, typed: bool = False) -> NDArray[Any]:
    """Convert arrays, tensors, series and lists to an array whose first axis is samples.

    With `typed`, the elements of lists keep their types, which NumPy would replace by a common one.
    """
    if isinstance(values, list | tuple):
        values = _list_of(values, argument)
    elif hasattr(values, "detach"):
        values = _of_tensor(values, argument)
    if np.ma.isMaskedArray(values):
        refuse_missing(np.ma.getmaskarray(values), argument)
    try:
        in_list = typed and isinstance(values, list | tuple)
        array = np.asarray(values, object) if in_list else np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(_shape_fault(values, argument)) from None
    if array.ndim < 1:
        raise InputError(f"{argument}: {type(values).__name__} is invalid; must be an array")
    if not len(array):
        raise InputError(f"{argument}: no samples; pass at least one")
    return array


def _list_of(values: Sequence[Any], argument: str) -> Sequence[Any]:
    """Return a list with its images and tensors as arrays; refuse samples that are missing."""
    if {*map(type, values)} <= SCALARS:
        return values
    if any(map(is_image, values)):
        return pixels(values, argument)
    if any(hasattr(value, "detach") for value in values):
        values = [
            _of_tensor(value, argument)[()] if hasattr(value, "detach") else value
            for value in values
        ]
    if any(np.ndim(value) for value in values if not isinstance(value, str | Mapping)):
        refuse_missing(np.array([value is None for value in values]), argument)
        check_rows(values, argument)
    if values and isinstance(values[0], Mapping):
        fields = ", ".join(map(repr, values[0]))
        raise InputError(f"{argument}: dicts with the fields {fields}; pass a list of one field")
    return values


def _of_tensor(tensor: Any, argument: str) -> NDArray[Any]:
    """Return a tensor's numbers, from any device and with any gradient."""
    if fix := next((fix for is_kind, fix in UNREADABLE.items() if is_kind(tensor)), ""):
        raise InputError(f"{argument}: {fix}")
    try:
        values = tensor.detach().cpu().resolve_conj().resolve_neg()
        if values.is_floating_point() and values.element_size() < 4:
            values = values.float()  # bfloat16 and float8, which NumPy does not have; exact
        return np.asarray(values.numpy())
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{argument}: a tensor of {tensor.dtype}: {described(error)}") from None


SCALARS = {bool, int, float, str}
# Tensors without numbers in memory, and what to pass instead.
UNREADABLE: dict[Callable[[Any], bool], str] = {
    lambda t: bool(t.is_meta): "a meta tensor has no values; pass one with values",
    lambda t: bool(t.is_nested): "a nested tensor has rows of several lengths; pad it",
    lambda t: bool(t.is_quantized): "a quantised tensor; pass tensor.dequantize()",
    lambda t: "strided" not in str(t.layout): "a sparse tensor; pass tensor.to_dense()",
}


def _shape_fault(values: Any, argument: str) -> str:
    shapes = [np.shape(value) for value in values]
    other = next((row for row, shape in enumerate(shapes) if shape != shapes[0]), None)
    if other is None:
        return f"{argument}: rows differ in shape; pass arrays of one shape"
    return (
        f"{argument}: rows differ in shape, such as {shapes[0]} in row 0 and {shapes[other]} in "
        f"row {other}; pass arrays of one shape"
    )


def copied(values: Any) -> Any:
    """Copy an array or a tensor whose source may use its memory again."""
    copy = getattr(values, "clone", None) or getattr(values, "copy", None)
    return copy() if callable(copy) else values


def numbers(values: Any, argument: str) -> NDArray[Any]:
    """Convert samples to an array of numbers."""
    array = as_array(values, argument)
    if array.dtype.kind == "O":
        array = _of_one_type(array, argument)
    if array.dtype.kind not in "iufb":
        raise InputError(f"{argument}: contains {_described(array)}; convert to numbers")
    return array


def one_type(values: Any, argument: str) -> NDArray[Any]:
    """Convert labels, targets or owners, all of one type and none missing."""
    array = as_array(values, argument, typed=True)
    if array.dtype.kind == "O":
        array = _of_one_type(array, argument)
    elif array.dtype.kind == "f":
        refuse_missing(np.isnan(array), argument)
    if array.dtype.kind == "f":
        _check_finite(array, argument, "are infinite", "remove them")
        return array.astype(np.float64)
    if array.dtype.kind in "iu":
        if array.max(initial=0) > MAX_INTEGER:
            raise InputError(f"{argument}: integers beyond 2^63; pass text")
        return array.astype(np.int64)
    if array.dtype.kind not in "bU":
        raise InputError(
            f"{argument}: contains {_described(array)}; must be integers, text or numbers"
        )
    return array


def kind_of(values: NDArray[Any]) -> str:
    """Name the type of a result of :func:`one_type`."""
    return {"b": "booleans", "i": "integers", "f": "floating-point numbers", "U": "text"}[
        values.dtype.kind
    ]


def may_be_labels(y: NDArray[Any]) -> bool:
    """Whether floating-point targets look like labels: whole numbers with few different values."""
    return not (y % 1).any() and len(np.unique(y)) <= MAX_CLASSES


def with_numbered_labels(
    train: Labelled, test: Labelled, tokens: bool
) -> tuple[Labelled, Labelled, int | None]:
    """Replace labels by numbers from 0 in sorted order; targets of a regression stay unchanged."""
    if train.x.shape[1:] != test.x.shape[1:]:
        raise InputError(
            f"x_test: samples have shape {test.x.shape[1:]}, but those of x {train.x.shape[1:]}"
        )
    if train.x.dtype != test.x.dtype:
        train, test = (part._replace(x=part.x.astype(np.float32)) for part in (train, test))
    kind = kind_of(train.y)
    if len(test.y) and kind_of(test.y) != kind:
        raise InputError(f"y, y_test: {kind} and {kind_of(test.y)}; convert both to the same type")
    if train.y.shape[1:] != test.y.shape[1:]:
        raise InputError(f"y_test: shape {test.y.shape} does not fit that of y, {train.y.shape}")
    if kind == "floating-point numbers":
        return train, test, None
    if tokens:
        largest = max(int(part.max()) for part in (*train, *test) if part.size)
        train, test = (part._replace(y=part.y.astype(np.int64)) for part in (train, test))
        return train, test, largest + 1
    labels, y = np.unique(train.y, return_inverse=True)
    if unknown := sorted({*np.unique(test.y).tolist()} - {*labels.tolist()}):
        listed = ", ".join(map(repr, unknown[:MAX_LISTED_LABELS]))
        raise InputError(
            f"y_test: no training sample has label {listed}; remove these test samples"
        )
    y_test = np.searchsorted(labels, test.y)
    return (
        train._replace(y=y.reshape(train.y.shape).astype(np.int64)),
        test._replace(y=y_test.astype(np.int64)),
        len(labels),
    )


def owners(clients: Any, n_samples: int, argument: str = "clients") -> NDArray[Any]:
    """Return the owner of each sample, all of one type."""
    owner = one_type(clients, argument)
    if owner.shape != (n_samples,):
        raise InputError(
            f"{argument}: shape {owner.shape}; must be one owner per sample, ({n_samples},)"
        )
    return owner


def places(names: NDArray[Any], clients: NDArray[Any], argument: str) -> Ints:
    """Return the place of each name among those of the clients; refuse unknown ones."""
    if len(names) and kind_of(names) != kind_of(clients):
        raise InputError(
            f"{argument}: contains {kind_of(names)}, but the clients are {kind_of(clients)}"
        )
    if unknown := {*names.tolist()} - {*clients.tolist()}:
        raise InputError(f"{argument}: no training sample of client {min(unknown)!r}; remove it")
    order = np.argsort(clients)
    return order[np.searchsorted(clients, names, sorter=order)].astype(np.int64)


def sha256_of(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the arrays' types, shapes and values."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def refuse_missing(is_missing: Bools, argument: str, fix: str = "remove these samples") -> None:
    """Raise an error with number and row if the mask, shape (N, ...), has any true value."""
    rows = np.flatnonzero(is_missing.reshape(len(is_missing), -1).any(1))
    if len(rows):
        raise InputError(
            f"{argument}: missing in {len(rows)} of {len(is_missing)} samples, first in row "
            f"{rows[0]}; {fix}"
        )


def _features(x: NDArray[Any], argument: str, tokens: bool) -> NDArray[Any]:
    """Return tokens as int64, images as uint8, and other numbers as float32."""
    x = x[:, None] if x.ndim == 1 else x
    if not x[0].size:
        raise InputError(f"{argument}: no features in samples of shape {x.shape[1:]}; add them")
    if tokens:
        if x.dtype.kind not in "iu" or x.ndim != 2:
            raise InputError(f"{argument}: tokens must be integers from 0 up, shape (N, steps)")
        return _checked_tokens(x, argument)
    if x.dtype.kind in "iu" and x.ndim >= IMAGE_AXES and x.min() >= 0 and x.max() <= MAX_BYTE:
        return x.astype(np.uint8)
    _check_finite(x, argument, "are NaN or infinite", "remove them")
    return as_single(x, argument)


def as_single(x: NDArray[Any], argument: str) -> NDArray[np.float32]:
    """Convert to float32, in which networks train; larger numbers would become infinite."""
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    _check_finite(single, argument, f"exceed {np.finfo(np.float32).max:.1e}", "scale them")
    return single


def _check_finite(x: NDArray[Any], argument: str, fault: str, fix: str) -> None:
    if not np.isfinite(x).all():
        rows = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
        raise InputError(f"{argument}: {len(rows)} samples {fault}, first row {rows[0]}; {fix}")


def _checked_tokens(tokens: NDArray[Any], argument: str) -> Ints:
    if tokens.min() < 0 or tokens.max() > MAX_TOKEN:
        raise InputError(
            f"{argument}: tokens {tokens.min()}…{tokens.max()}; must be integers from 0 to "
            f"{MAX_TOKEN}"
        )
    return tokens.astype(np.int64)


def _of_one_type(array: NDArray[Any], argument: str) -> NDArray[Any]:
    """Convert Python's objects to an array of their only type."""
    refuse_missing(np.asarray(pd.isna(array)), argument)
    values = array.ravel().tolist()
    kinds = sorted({_kind(kind) for kind in {*map(type, values)}})
    if kinds == ["floating-point numbers", "integers"]:
        converted = array.astype(np.float64)
        if (converted == array).all():  # no integer is rounded
            return converted
    if len(kinds) > 1:
        raise InputError(f"{argument}: contains {' and '.join(kinds)}; convert all to one type")
    if kinds == ["integers"] and not all(-MAX_INTEGER <= value <= MAX_INTEGER for value in values):
        raise InputError(f"{argument}: integers beyond 2^63; pass text")
    if kinds == ["text"] and any(value.endswith("\0") for value in values):
        raise InputError(f"{argument}: text ends in NUL, which NumPy removes; remove it")
    types = {
        "booleans": np.bool_,
        "floating-point numbers": np.float64,
        "integers": np.int64,
        "text": np.str_,
    }
    if kinds[0] not in types:
        raise InputError(f"{argument}: contains {kinds[0]}; convert to integers, text or numbers")
    return array.astype(types[kinds[0]])


def _kind(kind: type) -> str:
    """Name a type as :func:`kind_of` does."""
    names: dict[str, tuple[type, ...]] = {
        "booleans": (bool, np.bool_),
        "integers": (int, np.integer),
        "floating-point numbers": (float, np.floating),
        "text": (str,),
    }
    known = [name for name, types in names.items() if issubclass(kind, types)]
    return known[0] if known else f"values of type {kind.__name__}"


def _described(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind == "U" else f"values of type {values.dtype}"
