"""TFF's files, and the unbalanced sets: from files or stand-ins to clients."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.datasets.loading import load
from tests.data.datasets.tff_files import archive_of, hdf5_of, unchecked

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import cookup, dataset, emnist_digits, tff
from fedsampling.data.datasets.characters import VOCABULARIES, encode
from fedsampling.data.datasets.tff_shakespeare import sequences
from fedsampling.data.federated import share_of_largest
from fedsampling.data.samples import Samples


def digit(shade, label):
    return {"pixels": np.full((28, 28), shade, np.float32), "label": np.array([label])}


def test_cifar100_takes_fine_labels_and_no_owners_of_the_test_part(tmp_path):
    images = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 32, 32, 3)
    client = [
        {"image": image, "label": np.array([fine]), "coarse_label": np.array([coarse])}
        for image, fine, coarse in zip(images, (99, 7), (3, 4), strict=True)
    ]
    samples = tff.read_cifar100(
        hdf5_of(tmp_path / "train.h5", {"10": client, "9": client}),
        hdf5_of(tmp_path / "test.h5", {"0": client}),
    )
    assert samples.x.dtype == np.uint8
    assert np.array_equal(samples.x, np.concatenate([images, images]))
    assert samples.y.tolist() == [99, 7, 99, 7]
    assert samples.writer.tolist() == [0, 0, 1, 1]
    assert samples.writer_test is None


@pytest.mark.parametrize(("share", "fits"), [(0.82, True), (0.90, False), (0.74, False)])
def test_unbalanced_set_must_hold_its_published_share(share, fits):
    # 10 of 100 clients share 820 (or 900, or 740) of 1,000 samples, the others the rest.
    large = round(1000 * share)
    writer = np.concatenate([np.arange(large) % 10, 10 + np.arange(1000 - large) % 90])
    y, y_test = np.arange(1000) % 10, np.zeros(40_832, np.int64)
    x, x_test = np.zeros((1000, 28, 28), np.float32), np.zeros((40_832, 0), np.float32)
    samples = Samples("cookup_1", x, y, x_test, y_test, 10, writer)
    if fits:
        cookup.check_unbalanced(samples, 1)
        samples = replace(samples, y_test=y_test[1:])
    reason = "40,832 test samples" if fits else "about 82% of the samples"
    with pytest.raises(InputError, match=reason):
        cookup.check_unbalanced(samples, 1)


# TFF's Shakespeare: chunks of six characters, one label per step.


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


# Federated EMNIST digits and CIFAR-100 from settings to clients.


@pytest.fixture(autouse=True)
def forget():
    dataset._samples.cache_clear()
    return dataset._samples.cache_clear


digits = partial(load, "emnist_digits")


def test_cifar100s_stand_in_has_clients_of_equal_size_and_unequal_taste():
    data = load("tff_cifar100")
    assert (data.x.dtype, data.x.shape[1:], data.classes) == (np.uint8, (32, 32, 3), 100)
    assert set(data.n_samples) == {100}
    assert np.bincount(data.y_test).tolist() == [2] * 100
    # Of equal tastes a client's most frequent label would have about four of its samples.
    assert data.label_counts().max(1).mean() > 15


def test_the_archive_of_digits_is_read_once_and_kept(tmp_path, monkeypatch, forget):
    files = {
        "fed_emnist_digitsonly_train.h5": {
            "f2": [digit(0.2, 2), digit(0.3, 3)],
            "f1": [digit(0.1, 1)],
        },
        "fed_emnist_digitsonly_test.h5": {"f1": [digit(0.5, 5)], "f2": [digit(0.6, 6)]},
    }
    archive_of(tmp_path / "mirror/tff_emnist/fed_emnist_digitsonly.tar.bz2", files)
    unchecked(monkeypatch, "tff_emnist/fed_emnist_digitsonly.tar.bz2")
    cache, mirror = tmp_path / "cache", str(tmp_path / "mirror")
    data = digits("official", 0, cache, mirror)
    assert data.n_samples.tolist() == [1, 2]
    assert data.y.tolist() == [1, 2, 3]
    assert data.x[:, 0, 0] == pytest.approx([0.1, 0.2, 0.3])
    assert data.y_test.tolist() == [5, 6]
    assert data.unverified  # as here no checksum is known
    ((_, digest),) = data.inputs.items()
    (file,) = (cache / "tff_emnist").glob("*.npz")
    assert file.name == f"digits-{digest[:16]}.npz"
    forget()
    monkeypatch.setattr(tff, "unpacked_parts", None)  # nothing is unpacked again
    reread = digits("official", 0, cache, mirror)
    np.testing.assert_array_equal(reread.x, data.x)
    assert [path.name for path in cache.iterdir()] == ["tff_emnist"]  # no scratch is left


# The unbalanced sets: their stand-in, and files of the published layout.


@pytest.mark.parametrize(
    ("name", "settings", "top", "share"),
    [
        ("cookup", {"set": 1}, 0.1, 0.82),
        ("cookup", {"set": 2}, 0.2, 0.90),
        ("cookup", {"set": 3}, 0.5, 0.98),
        ("emnist_digits", {"unbalance": 1}, 0.1, 0.82),
    ],
)
def test_the_unbalanced_stand_in_has_the_published_imbalance(name, settings, top, share):
    data = load(name, **settings)
    assert data.n_clients == emnist_digits.WRITERS
    assert share_of_largest(data.n_samples, top) == pytest.approx(share, abs=0.02)
    np.testing.assert_allclose(data.p, data.n_samples / len(data.x))


def test_unbalanced_files_are_read_from_dataverses_archive(tmp_path, monkeypatch):
    monkeypatch.setattr(cookup, "check_unbalanced", lambda *_: None)  # of two writers, not 3,383
    clients = {name: [digit(0.5, k % 10) for k in range(n)] for name, n in (("b", 20), ("a", 4))}
    names = ("cookup_train_1.h5", "cookup_train_2.h5", "cookup_train_3.h5", "test.h5")
    archive = tmp_path / "mirror/cookup/dataverse_files.zip"
    archive_of(archive, dict.fromkeys(names, clients), within="data/")
    cache = tmp_path / "cache"
    data = load("cookup", "official", 0, cache, str(tmp_path / "mirror"), set=2)
    assert data.n_samples.tolist() == [4, 20]
    assert (data.name, data.unverified) == ("cookup_2", True)
    assert sorted(data.inputs) == ["cookup_train_2.h5", "test.h5"]
    assert [path.name for path in cache.iterdir()] == ["cookup"]  # nothing unpacked is left
