"""Hostile samples and targets give the numbers of their clean twin, or one line."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsampling as fs

from .hostile import BYTES, LABELS, OWNERS, Columns, N, X, assert_same, refused_or_data


def changed(array, row, value):
    array = np.array(array)
    array[row] = value
    return array


MASKED = np.ma.masked_array(X, X > 1)
SAMPLES = {  # x, and the same numbers as a plain array; None if it must be refused
    "with gradient": (torch.tensor(X, requires_grad=True), X),
    "list of tensors": ([*torch.tensor(X)], X),
    "objects": (X.astype(object), X),
    "big endian": (X.astype(">f8"), X),
    "negative strides": (X[::-1][::-1], X),
    "one feature": (X[:, 0], X[:, :1]),
    "booleans": (X > 0, (X > 0).astype(float)),
    "float32's largest": (changed(X, 2, 3.4e38), changed(X, 2, 3.4e38)),
    "negative images": (BYTES.reshape(N, 2, 3) - 1, (BYTES.reshape(N, 2, 3) - 1).astype(float)),
    "too large": (changed(X, 2, 1e300), None),
    "masked": (MASKED, None),
    "missing object": (changed(X.astype(object), (2, 1), None), None),
    "text in a list": ([[1, "2", 3]] * N, None),
    "mixed objects": (changed(X.astype(object), (2, 1), True), None),
    "dates": (BYTES.astype("M8[s]"), None),
    "complex": (X + 1j, None),
    "zero features": (X[:, :0], None),
    "zero rows": (X[:0], None),
    "ragged": ([[1.0]] * (N - 1) + [[1.0, 2.0]], None),
    "text": ("data", None),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_keep_their_numbers_or_are_refused(name, tmp_path):
    x, plain = SAMPLES[name]
    data = refused_or_data(lambda: fs.federated(x, LABELS, clients=OWNERS))
    assert (data is None) == (plain is None)
    if plain is not None:
        assert_same(data, fs.federated(plain, LABELS, clients=OWNERS))
        halves = [(x[:4], LABELS[:4]), (x[4:], LABELS[4:])]
        assert_same(fs.from_clients(halves), data)
        if not isinstance(x, np.ndarray) or x.dtype == object:
            return
        np.savez(tmp_path / "data.npz", x=x, y=LABELS, client=OWNERS, x_test=x, y_test=LABELS)
        file = fs.load("files", path=str(tmp_path / "data.npz"))
        assert_same(file, fs.federated(plain, LABELS, clients=OWNERS, x_test=plain, y_test=LABELS))


TARGETS = {  # y of floats or sequences; None if it must be refused
    "column": (X[:, :1], X[:, 0]),
    "float32": (torch.tensor(X[:, 0]).float(), X[:, 0].astype(np.float32).astype(float)),
    "two columns": (X[:, :2], None),
    "NaN": (changed(X[:, 0], 3, np.nan), None),
    "too large": (changed(X[:, 0], 3, 1e300), None),
    "dates": (BYTES[:, 0].astype("M8[s]"), None),
    "category": (pd.Categorical(LABELS), LABELS),
    "nullable": (pd.array(BYTES[:, 0], "Int64"), BYTES[:, 0]),
    "missing nullable": (pd.array([*range(7), None], "Int64"), None),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets_keep_their_numbers_or_are_refused(name):
    y, plain = TARGETS[name]
    data = refused_or_data(lambda: fs.federated(X, y, clients=OWNERS))
    assert (data is None) == (plain is None)
    if plain is not None:
        assert_same(data, fs.federated(X, plain, clients=OWNERS))
        assert_same(
            fs.from_frame(pd.DataFrame(X).assign(y=y, c=OWNERS), target="y", client="c"), data
        )


TOKENS = np.abs(BYTES)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (TOKENS - 300, TOKENS),
        (TOKENS / 2, TOKENS),
        (TOKENS.astype(np.uint64) + 2**63, TOKENS),
        (TOKENS, TOKENS.astype(str)),
        (TOKENS, TOKENS - 300),
        (TOKENS, TOKENS[:, :4]),
        (TOKENS.reshape(N, 2, 3), TOKENS[:, 0]),
    ],
)
def test_wrong_tokens_are_refused(x, y):
    assert refused_or_data(lambda: fs.federated(x, y, clients=OWNERS, tokens=True)) is None


UNIT = BYTES / 255
SCALED = [UNIT, UNIT.astype(np.float32), (UNIT - 0.5) / 0.5]
STORED = [BYTES, BYTES.astype(np.uint8), BYTES.astype(float)]


@pytest.mark.parametrize("scaled", SCALED, ids=["unit", "single", "centred"])
@pytest.mark.parametrize("stored", STORED, ids=["integers", "bytes", "floats"])
@pytest.mark.parametrize("shape", [(6,), (2, 3)], ids=["table", "images"])
def test_bytes_beside_fractions_are_refused(scaled, stored, shape):
    parts = [(part.reshape(N, *shape), LABELS) for part in (stored, scaled)]
    for (x, y), (x_test, y_test) in (parts, parts[::-1]):
        call = {"clients": OWNERS, "x_test": x_test, "y_test": y_test}
        assert refused_or_data(lambda: fs.federated(x, y, **call)) is None  # noqa: B023
        assert refused_or_data(lambda: fs.from_clients([(x, y), (x_test, y_test)])) is None  # noqa: B023
    with pytest.raises(
        fs.InputError, match=r"client 0 has whole numbers 0…255, client 1 fractions (0|-1)…1;"
    ):
        fs.from_clients(parts)


@pytest.mark.parametrize(
    "count", [50, pytest.param(2000, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_measurements_of_different_size_are_no_false_alarm(count):
    sizes = st.lists(st.floats(-6, 6), min_size=3, max_size=3)

    @settings(max_examples=count)
    @given(st.integers(0, 2**32 - 1), sizes, st.sampled_from([0, 1, 2, 5]))
    def check(seed, sizes, decimals):
        rng = np.random.default_rng(seed)
        parts = [np.round(rng.lognormal(size, 2, (20, 2)), decimals) for size in sizes]
        first, second, test = ((part, np.arange(20) % 2) for part in parts)
        tests = dict(zip(("x_test", "y_test"), test, strict=True))
        assert fs.from_clients([first, second], **tests).n_clients == 2

    check()


class Reused:
    """Arrays, one for each row or client, that share their memory."""

    def __init__(self, arrays, labels=None):
        self.arrays, self.labels = arrays, labels
        self.memory = np.zeros_like(arrays[0])

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, row):
        self.memory[:] = self.arrays[row]
        return self.memory if self.labels is None else (self.memory, self.labels[row])

    def __iter__(self):
        return map(self.__getitem__, range(len(self)))


def test_sources_may_reuse_their_memory():
    twin = fs.federated(X, LABELS, clients=OWNERS)
    assert_same(fs.federated(Reused(X, LABELS), clients=OWNERS), twin)
    columns = Columns({"x": iter(Reused(X)), "y": LABELS, "c": OWNERS})
    assert_same(fs.from_huggingface(columns, target="y", client="c", features="x"), twin)
    parts = iter(Reused([X[:4], X[4:]], [LABELS[:4], LABELS[4:]]))
    assert_same(fs.from_clients(parts), twin)


def test_data_do_not_share_memory_with_their_source():
    x, y, owner = X.astype(np.float32), X[:, 0].copy(), np.array([0, 1] * 4)
    data = fs.federated(x, y, clients=owner, x_test=x, y_test=y)
    twin = fs.federated(x.copy(), y.copy(), clients=owner, x_test=x.copy(), y_test=y.copy())
    x[:], y[:] = 0, 0
    assert_same(data, twin)
