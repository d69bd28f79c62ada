"""Samples, labels and owners for tests of hostile data, and how data are compared."""

import warnings

import numpy as np

import fedsampling as fs

N = 8
LABELS = [*"abababab"]
OWNERS = [*"ppppqqqq"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
BYTES = RNG.integers(1, 255, (N, 6))
BYTES[:, 0], BYTES[:, 1] = 0, 255


def refused_or_data(call):
    """Return the data, or None if the call is refused in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of whole numbers as targets
        try:
            return call()
        except fs.InputError as error:
            lines = str(error).splitlines()
    assert len(lines) == 1
    assert len(lines[0]) < 250
    return None


def assert_same(data, twin):
    for name in ("x", "y", "start", "p", "x_test", "y_test"):
        np.testing.assert_array_equal(getattr(data, name), getattr(twin, name))
        assert getattr(data, name).dtype == getattr(twin, name).dtype
    assert data.classes == twin.classes


class Columns:
    """A stand-in of ``datasets.Dataset``: named columns, each a list of values."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = [*columns]

    def __getitem__(self, name):
        return self.columns[name]
