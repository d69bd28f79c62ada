"""Users' arrays, tensors and lists, checked and converted to the types that datasets have.

Input that cannot be converted is rejected with a one-line error that names the argument.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.errors import InputError

IMAGE_AXES = 3  # samples, rows and columns: the fewest axes of images
MAX_LISTED_LABELS = 5  # in a message
MAX_CLASSES = 20  # whole numbers that may be labels


class Labelled(NamedTuple):
    """Samples (N, ...) and the label or target of each."""

    x: NDArray[Any]
    y: NDArray[Any]


def labelled(x: Any, y: Any, suffix: str, tokens: bool) -> Labelled:
    """Check and convert samples and their labels; errors name the arguments with `suffix`."""
    samples = _features(as_array(x, f"x{suffix}"), f"x{suffix}", tokens)
    labels = as_array(y, f"y{suffix}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if len(samples) != len(labels):
        raise InputError(
            f"x{suffix}, y{suffix}: {len(samples)} samples but {len(labels)} labels; must be equal"
        )
    if not len(samples):
        raise InputError(f"x{suffix}: no samples; pass at least one")
    if labels.ndim != 1 and not (tokens and labels.ndim == 2):
        raise InputError(
            f"y{suffix}: shape {labels.shape} is invalid; must be one label per sample"
        )
    return Labelled(samples, _targets(labels, f"y{suffix}"))


def as_array(values: Any, argument: str) -> NDArray[Any]:
    """Convert arrays, tensors, series and lists to an array whose first axis is samples."""
    if hasattr(values, "detach"):  # a tensor, perhaps on a GPU or with a gradient
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{argument}: rows differ in shape; pass arrays of one shape") from None
    if array.ndim < 1:
        raise InputError(f"{argument}: {type(values).__name__} is invalid; must be an array")
    return array


def _features(x: NDArray[Any], argument: str, tokens: bool) -> NDArray[Any]:
    """Return tokens as int64, images as uint8, and other numbers as float32."""
    if x.dtype.kind not in "iufb":
        raise InputError(f"{argument}: contains {_described(x)}; convert to numbers")
    x = x[:, None] if x.ndim == 1 else x
    if not np.isfinite(x).all():
        rows = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
        raise InputError(
            f"{argument}: {len(rows)} samples are NaN or infinite, first row {rows[0]}; remove them"
        )
    if tokens:
        if x.dtype.kind not in "iu" or x.ndim != 2 or x.min() < 0:
            raise InputError(f"{argument}: tokens must be integers from 0 up, shape (N, steps)")
        return x.astype(np.int64)
    if x.dtype.kind in "iu" and x.ndim >= IMAGE_AXES and x.min() >= 0 and x.max() <= 255:
        return x.astype(np.uint8)
    return x.astype(np.float32)


def _targets(y: NDArray[Any], argument: str) -> NDArray[Any]:
    """Return labels as integers, booleans or text, and targets as float64."""
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise InputError(f"{argument}: contains NaN or infinity; remove these samples")
        return y.astype(np.float64)
    if y.dtype.kind == "O":
        if not all(isinstance(label, str) for label in y.flat):
            raise InputError(
                f"{argument}: labels have several types; convert all to text or integers"
            )
        return y.astype(np.str_)
    if y.dtype.kind not in "iubU":
        raise InputError(f"{argument}: contains {_described(y)}; must be integers, text or numbers")
    return y


def _described(values: NDArray[Any]) -> str:
    return "text" if values.dtype.kind in "US" else f"values of type {values.dtype}"


def may_be_labels(y: NDArray[Any]) -> bool:
    """Whether floating-point targets look like labels: whole numbers with few different values."""
    return not (y % 1).any() and len(np.unique(y)) <= MAX_CLASSES


def with_numbered_labels(
    train: Labelled, test: Labelled, tokens: bool
) -> tuple[Labelled, Labelled, int | None]:
    """Replace labels by numbers from 0 in sorted order.

    Returns
    -------
    train, test : Labelled
        Their samples have the same type.
    classes : int or None
        Number of labels; None for the targets of a regression, which stay unchanged.
    """
    if train.x.shape[1:] != test.x.shape[1:]:
        raise InputError(
            f"x_test: samples have shape {test.x.shape[1:]}, but those of x {train.x.shape[1:]}"
        )
    if train.x.dtype != test.x.dtype:
        train, test = (part._replace(x=part.x.astype(np.float32)) for part in (train, test))
    is_regression, is_test_regression = (part.y.dtype.kind == "f" for part in (train, test))
    if is_regression != is_test_regression:
        raise InputError("y, y_test: one has labels, the other numbers; must be of the same kind")
    if is_regression:
        return train, test, None
    if tokens:
        largest = max(int(part.max()) for part in (*train, *test) if part.size)
        train, test = (part._replace(y=part.y.astype(np.int64)) for part in (train, test))
        return train, test, largest + 1
    labels, y = np.unique(train.y, return_inverse=True)
    if unknown := sorted({*np.unique(test.y).tolist()} - {*labels.tolist()}, key=str):
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


def owner_numbers(clients: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """Return the client of each sample as numbers from 0, in sorted order of the clients."""
    owner = as_array(clients, "clients")
    if owner.shape != (n_samples,):
        raise InputError(
            f"clients: shape {owner.shape}; must be one owner per sample, ({n_samples},)"
        )
    if owner.dtype.kind == "O":
        if any(label is None or label != label for label in owner):
            raise InputError("clients: some samples have no owner; remove them")
        owner = owner.astype(np.str_)
    if owner.dtype.kind == "f" and not np.isfinite(owner).all():
        raise InputError("clients: some samples have no owner; remove them")
    numbers: NDArray[np.int64] = np.unique(owner, return_inverse=True)[1].astype(np.int64)
    return numbers


def sha256_of(*arrays: NDArray[Any]) -> str:
    """Return the SHA-256 of the arrays' types, shapes and values."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()
