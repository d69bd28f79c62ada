import string
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import shakespeare
from fedsampling.data.datasets.shakespeare import encode_windows, windows
from fedsampling.data.formats.shakespeare_roles import pooled
from fedsampling.data.partitions.natural import split

from .loading import load

SETTINGS = {
    "clients": None,
    "fraction": 1.0,
    "min_samples": 1,
    "train": 0.8,
    "vocabulary": "printable",
    "importance": "equal",
}

TEXTS = {
    ("B", "two"): string.ascii_letters * 2,
    ("A", "one"): "a  lot   of spaces " + "x" * 80,
    ("A", "short"): "y" * 80,
}


loaded = partial(load, "shakespeare", **SETTINGS)


def test_roles_are_sorted_and_have_a_window_per_character_from_the_81st_on():
    roles = pooled(TEXTS)
    assert roles.user == ("A_one", "B_two")
    assert np.diff(windows(roles)[1]).tolist() == [len("a lot of spaces ") + 80 - 80, 104 - 80]


@pytest.mark.parametrize(
    ("vocabulary", "symbols"),
    [
        ("printable", string.printable),
        (
            "leaf",
            "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}",
        ),
    ],
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

    def test_smaller_numbers_of_clients_are_prefixes(self):
        ten, twenty = loaded(clients=10), loaded(clients=20)
        assert np.array_equal(ten.x, twenty.x[: len(ten.x)])
        assert np.array_equal(ten.x_test, twenty.x_test[: len(ten.x_test)])
        assert np.array_equal(ten.start, twenty.start[:11])

    def test_seed_decides_the_roles(self):
        assert np.array_equal(loaded(seed=3, clients=5).x, loaded(seed=3, clients=5).x)
        assert loaded(seed=3, clients=5).start.tolist() != loaded(seed=4, clients=5).start.tolist()

    def test_test_windows_begin_where_the_training_windows_end(self):
        dataset = loaded(clients=1)
        last, first = dataset.x[-1], dataset.x_test[0]
        # 80 steps on: the last training window's label is the first character of a test.
        assert first[0] == dataset.y[-1]
        assert not np.array_equal(last, first)

    def test_fraction_limits_the_samples(self):
        full, part = loaded().describe(), loaded(fraction=0.3).describe()
        assert part["clients"] < full["clients"]

    def test_every_and_length_keep_some_samples_of_a_role_and_their_last_characters(self):
        full, part = loaded(clients=3), loaded(clients=3, every=4, length=10)
        for client in range(3):
            first, last = full.start[client : client + 2]
            rows = slice(*part.start[client : client + 2])
            assert np.array_equal(part.x[rows], full.x[first:last:4, -10:])
            assert np.array_equal(part.y[rows], full.y[first:last:4])
        assert part.x_test.shape[1:] == (10,)

    @pytest.mark.parametrize(
        ("changed", "line"),
        [
            ({"clients": 101}, "clients: only 100 have .* must be 1 to 100"),
            ({"min_samples": 10**6}, "min_samples: 1000000 leave no client"),
        ],
    )
    def test_too_many_clients_or_samples_are_rejected(self, changed, line):
        with pytest.raises(InputError, match=line):
            loaded(**changed)


class TestOfficial:
    @pytest.mark.parametrize(("train", "count"), [(0.8, 799), (0.9, 660)])
    def test_as_many_roles_are_left_as_leafs_rule_leaves(self, train, count, mirror, tmp_path):
        # 660 is what LEAF's page reports, which is of its default split.
        roles, _, _ = shakespeare._official(tmp_path, mirror)
        assert len(split(windows(roles), train, shakespeare.GAP)[0][1]) - 1 == count

    def test_a_papers_clients_have_samples_of_both_kinds(self, mirror, tmp_path):
        if not Path(mirror, "shakespeare").is_dir():
            pytest.skip(f"no real data: {mirror} does not hold shakespeare/")
        data = loaded("official", 0, tmp_path, mirror, clients=80, vocabulary="leaf")
        assert (data.n_clients, data.classes) == (80, 80)
        assert list(data.inputs) == ["t8.shakespeare.txt"]
        assert np.diff(data.start_test).min() >= 1
