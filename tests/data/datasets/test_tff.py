"""TFF's files, and the unbalanced sets: from files or stand-ins to clients."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.data.datasets.loading import load
from tests.data.datasets.tff_files import archive_of, hdf5_of, unchecked

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import cookup, dataset, emnist_digits, tff
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
    assert file.name == f"digits-{digest[:16]}-{emnist_digits.CONVERSION}.npz"
    forget()
    monkeypatch.setattr(tff, "unpacked_parts", None)  # nothing is unpacked again
    reread = digits("official", 0, cache, mirror)
    np.testing.assert_array_equal(reread.x, data.x)
    assert [path.name for path in cache.iterdir()] == ["tff_emnist"]  # no scratch is left


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
