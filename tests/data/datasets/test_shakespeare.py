"""None"""

import string
from functools import partial

import numpy as np
import pytest
from tests.data.datasets.loading import load

from fedsampling.base.errors import InputError
from fedsampling.data.datasets.roles import pooled
from fedsampling.data.datasets.shakespeare import encode_windows, windows

TEXTS = {
    ("B", "two"): string.ascii_letters * 2,
    ("A", "one"): "a  lot   of spaces " + "x" * 80,
    ("A", "short"): "y" * 80,
}
loaded = partial(load, "shakespeare", importance="equal")
LEAF = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"


@pytest.mark.parametrize(
    ("vocabulary", "symbols"), [("printable", string.printable), ("leaf", LEAF)]
)
def test_samples_are_80_characters_and_the_next(vocabulary, symbols):
    roles = pooled(TEXTS)
    index, start = windows(roles)
    x, y = encode_windows(roles, index, vocabulary)
    assert (x.dtype, y.dtype) == (np.int8, np.int64)
    texts = ("a lot of spaces " + "x" * 80, string.ascii_letters * 2)
    row = 0
    for text in texts:
        for i in range(len(text) - 80):
            assert "".join(symbols[code] for code in x[row]) == text[i : i + 80]
            assert symbols[y[row]] == text[i + 80]
            row += 1
    assert row == len(x) == start[-1]


def test_unknown_characters_are_named():
    roles = pooled({("A", "one"): "%" * 90})
    with pytest.raises(ValueError, match="not in the vocabulary 'leaf': '%'"):
        encode_windows(roles, np.array([0]), "leaf")


class TestEmbedded:
    def test_every_role_is_a_client_with_own_tests(self):
        dataset = loaded()
        assert dataset.n_clients == 100
        assert dataset.x.shape[1:] == (80,)
        assert dataset.classes == 100
        assert np.diff(dataset.start_test).min() >= 1

    def test_test_windows_begin_where_the_training_windows_end(self):
        dataset = loaded(clients=1)
        last, first = dataset.x[-1], dataset.x_test[0]
        # 80 steps on: the last training window's label is the first character of a test.
        assert first[0] == dataset.y[-1]
        assert not np.array_equal(last, first)

    def test_fraction_and_min_samples_limit_the_clients(self):
        assert loaded(fraction=0.3).n_clients < loaded().n_clients
        with pytest.raises(InputError, match="min_samples: 1000000 leave no client"):
            loaded(min_samples=10**6)

    def test_every_and_length_keep_some_samples_and_their_last_characters(self):
        full, part = loaded(clients=3), loaded(clients=3, every=4, length=10)
        for client in range(3):
            first, last = full.start[client : client + 2]
            rows = slice(*part.start[client : client + 2])
            assert np.array_equal(part.x[rows], full.x[first:last:4, -10:])
            assert np.array_equal(part.y[rows], full.y[first:last:4])
        assert part.x_test.shape[1:] == (10,)
