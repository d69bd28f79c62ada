"""LIBSVM's sparse text format."""

import numpy as np

from fedsampling.base.arrays import Array

Rows = tuple[Array, Array]  # features and labels


def parse_libsvm(text: bytes, features: int) -> Rows:
    """Parse sparse LIBSVM text: ``label index:value ...`` per line, indices rising from 1.

    `text`: lines may also end with a carriage return; empty lines are skipped. `features`: number
    of columns; a larger index is an error. Returns `x`, shape (rows, features); `y`, shape (rows,).
    """
    lines = [line for line in text.splitlines() if line.strip()]
    # Fast: Python loops over rows only, and one C call converts all numbers.
    entries = np.array([line.count(b":") for line in lines], np.int64)
    numbers = np.array(b" ".join(lines).replace(b":", b" ").split(), dtype=np.float64)
    label = np.concatenate([[0], np.cumsum(1 + 2 * entries)])
    if len(numbers) != label[-1]:
        raise ValueError("not LIBSVM text: some line is not 'label index:value ...'")
    y = numbers[label[:-1]]
    pairs = np.delete(numbers, label[:-1]).reshape(-1, 2)
    row = np.repeat(np.arange(len(lines)), entries)
    column = pairs[:, 0].astype(np.int64)
    if (column != pairs[:, 0]).any() or (column < 1).any() or (column > features).any():
        raise ValueError(f"not LIBSVM text: an index is not a whole number in 1..{features}")
    if (np.diff(row * (features + 1) + column) <= 0).any():
        raise ValueError("not LIBSVM text: the indices of some line do not rise")
    x = np.zeros((len(lines), features))
    x[row, column - 1] = pairs[:, 1]
    return x, y
