"""TFF's Shakespeare: chunks of six characters, one label per step."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.data.datasets.loading import load
from tests.data.datasets.tff_files import archive_of, unchecked

from fedsampling.data.datasets.characters import VOCABULARIES, encode
from fedsampling.data.datasets.tff_shakespeare import sequences

loaded = partial(load, "tff_shakespeare")


def read(codes):
    return "".join(VOCABULARIES["tff"][code] for code in codes.ravel())


def test_the_table_has_86_symbols_and_takes_the_unknown_for_its_first():
    assert len(VOCABULARIES["tff"]) == len(set(VOCABULARIES["tff"])) == 86
    codes = encode(np.frombuffer(b"dhl\r}\xc3\xb6", np.uint8), "tff")
    assert codes.tolist() == [0, 1, 2, 85, 0, 0, 0]


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


def test_the_published_archive(tmp_path, monkeypatch):
    files = {
        "shakespeare_train.h5": {
            "PLAY_B": [{"snippets": np.bytes_("To be, or")}, {"snippets": np.bytes_(" not")}],
            "PLAY_A": [{"snippets": np.bytes_("Enter")}],
        },
        "shakespeare_test.h5": {
            "PLAY_A": [{"snippets": np.bytes_("Exeunt")}],
            "PLAY_B": [{"snippets": np.bytes_("Begone")}],
        },
    }
    archive_of(tmp_path / "mirror/tff_shakespeare/shakespeare.tar.bz2", files)
    unchecked(monkeypatch, "tff_shakespeare/shakespeare.tar.bz2")
    data = loaded("official", 0, tmp_path / "cache", str(tmp_path / "mirror"))
    assert read(data.x) == "To be or n"
    assert read(data.y) == "o be,or no"
    assert read(data.x_test) == "ExeunBegon"
    assert data.n_samples.tolist() == [2]  # a role without six characters is nobody
    assert (data.name, data.unverified) == ("tff_shakespeare", True)
    assert list(data.inputs) == ["shakespeare.tar.bz2"]
