"""LIBSVM's sparse text format."""

import numpy as np

from fedsampling.base.arrays import Array

Rows = tuple[Array, Array]  # features and labels


def parse_libsvm(text: bytes, features: int) -> Rows:
    """Parse sparse LIBSVM text, ``label index:value ...`` per line, as x (rows, features) and y."""
    lines = [line for line in text.splitlines() if line.strip()]
    # Fast: Python loops over rows only, and one C call converts all numbers.
    entries = np.array([line.count(b":") for line in lines], np.int64)
    numbers = np.array(b" ".join(lines).replace(b":", b" ").split(), dtype=np.float64)
    label = np.concatenate([[0], np.cumsum(1 + 2 * entries)])
    y = numbers[label[:-1]]
    pairs = np.delete(numbers, label[:-1]).reshape(-1, 2)
    row = np.repeat(np.arange(len(lines)), entries)
    x = np.zeros((len(lines), features))
    x[row, pairs[:, 0].astype(np.int64) - 1] = pairs[:, 1]
    return x, y
