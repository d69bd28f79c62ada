"""TFF's Shakespeare: chunks of six characters, one label per step."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.data.datasets.tff_shakespeare import sequences
from fedsampling.data.formats import tff
from fedsampling.data.formats.shakespeare_roles import VOCABULARIES, encode

from .loading import load
from .tff_files import packed, unchecked

loaded = partial(load, "tff_shakespeare", min_samples=1, importance="samples")


def read(codes):
    return "".join(VOCABULARIES["tff"][code] for code in codes.ravel())


def test_the_table_has_86_symbols_and_takes_the_unknown_for_its_first():
    assert len(VOCABULARIES["tff"]) == len(set(VOCABULARIES["tff"])) == 86
    codes = encode(np.frombuffer(b"dhl\r}\xc3\xb6", np.uint8), "tff")
    assert codes.tolist() == [0, 1, 2, 85, 0, 0, 0]


def test_snippets_are_joined_and_cut_and_the_rest_dropped():
    codes, role = sequences({"a": (b"To be,", b" or no"), "b": (b"Exit",), "c": (b"Enter me!",)})
    assert [read(chunk) for chunk in codes] == ["To be,", " or no", "Enter "]
    assert role.tolist() == [0, 0, 2]


@given(st.lists(st.lists(st.binary(max_size=30), max_size=4), min_size=1, max_size=5))
def test_no_sequence_mixes_two_roles(lines):
    codes, role = sequences({str(k): tuple(parts) for k, parts in enumerate(lines)})
    for k, parts in enumerate(lines):
        text = b"".join(parts)
        expected = encode(np.frombuffer(text, np.uint8), "tff")
        np.testing.assert_array_equal(codes[role == k].ravel(), expected[: len(text) // 6 * 6])


def test_the_stand_in_has_five_steps_and_as_many_labels():
    data = loaded()
    assert (data.x.dtype, data.y.dtype) == (np.int8, np.int64)
    assert data.x.shape == data.y.shape == (len(data.x), 5)
    assert (data.n_clients, data.classes, data.start_test) == (100, 86, None)
    np.testing.assert_array_equal(data.x[:, 1:], data.y[:, :-1])  # what follows is the label
    assert data.n_samples.max() > 3 * data.n_samples.min()
    assert 0.1 < len(data.x_test) / len(data.x) < 0.15
    np.testing.assert_array_equal(data.x, loaded().x)


def test_small_roles_can_be_left_out():
    full = loaded()
    minimum = int(np.sort(full.n_samples)[10])
    data = loaded(min_samples=minimum)
    assert data.n_samples.min() == minimum
    assert data.n_clients == (full.n_samples >= minimum).sum()
    np.testing.assert_array_equal(data.x_test, full.x_test)
    with pytest.raises(InputError, match="min_samples: 100000 leave no client"):
        loaded(min_samples=100_000)


def test_the_published_database(tmp_path, monkeypatch):
    splits = {
        "train": {
            "PLAY_B": [{"snippets": [b"To be, or"]}, {"snippets": [b" not"]}],
            "PLAY_A": [{"snippets": [b"Enter"]}],
        },
        "test": {"PLAY_A": [{"snippets": [b"Exeunt"]}], "PLAY_B": [{"snippets": [b"Begone"]}]},
    }
    packed(tmp_path / "mirror/tff_shakespeare/shakespeare.sqlite.lzma", splits)
    unchecked(monkeypatch, "tff_shakespeare/shakespeare.sqlite.lzma")
    counts = tff.Counts(clients=2, train=3, test=2)
    monkeypatch.setitem(tff.PUBLISHED, "tff_shakespeare", counts)
    data = loaded("official", 0, tmp_path / "cache", str(tmp_path / "mirror"))
    assert read(data.x) == "To be or n"
    assert read(data.y) == "o be,or no"
    assert read(data.x_test) == "ExeunBegon"
    assert data.n_samples.tolist() == [2]  # a role without six characters is nobody
    assert (data.name, data.unverified) == ("tff_shakespeare", True)
    assert list(data.inputs) == ["shakespeare.sqlite.lzma"]
