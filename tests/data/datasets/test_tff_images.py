"""Federated EMNIST digits and CIFAR-100 from settings to clients."""

from functools import partial

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.datasets import emnist_digits, tff_cifar100
from fedsampling.data.federated import share_of_largest
from fedsampling.data.formats import tff

from .loading import load
from .tff_files import archive, hdf5_of, packed, unchecked

SPLITS = ("digits_only_train", "digits_only_test")


@pytest.fixture(autouse=True)
def forget():
    def clear_caches():
        emnist_digits._digits.cache_clear()
        tff_cifar100._samples.cache_clear()

    clear_caches()
    return clear_caches


digits = partial(load, "emnist_digits", unbalance=None, importance="samples")


cifar100 = partial(load, "tff_cifar100", importance="samples")


class TestStandIns:
    def test_digits_are_as_tff_has_them(self):
        data = digits()
        assert (data.x.dtype, data.x.shape[1:], data.classes) == (np.float32, (28, 28), 10)
        assert data.n_clients == emnist_digits.WRITERS
        assert data.start_test is None
        assert np.median(data.x[:, 0, 0]) == 1  # the background is white
        assert 0 <= data.x.min() < 0.1

    def test_digits_can_be_unbalanced_as_published(self):
        even, uneven = digits(), digits(unbalance=1)
        assert uneven.n_clients == even.n_clients
        assert share_of_largest(uneven.n_samples, 0.1) == pytest.approx(0.82, abs=0.02)
        np.testing.assert_array_equal(uneven.x_test, even.x_test)

    def test_cifar100_has_clients_of_equal_size_and_unequal_taste(self):
        data = cifar100()
        assert (data.x.dtype, data.x.shape[1:], data.classes) == (np.uint8, (32, 32, 3), 100)
        assert set(data.n_samples) == {100}
        assert np.bincount(data.y_test).tolist() == [2] * 100
        # Of equal tastes a client's most frequent label would have about four of its samples.
        assert data.label_counts().max(1).mean() > 15
        assert len(np.unique(data.y)) > 90


def shade(value, label):
    return {"pixels": np.full((28, 28), value, np.float32), "label": np.array([label])}


WRITERS = {"f2": [shade(0.2, 2), shade(0.3, 3)], "f1": [shade(0.1, 1)]}
TESTS = {"f1": [shade(0.5, 5)], "f2": [shade(0.6, 6)]}


@pytest.fixture
def mirror(tmp_path, monkeypatch, request):
    """A mirror with one edition, whose counts count as published."""
    folder = tmp_path / "mirror" / "tff_emnist"
    if request.param == "sqlite":
        splits = dict(zip(SPLITS, (WRITERS, TESTS), strict=True))
        packed(folder / "emnist_all.sqlite.lzma", splits)
    else:
        pytest.importorskip("h5py", reason="writing TFF's files needs h5py")
        files = [
            hdf5_of(tmp_path / f"fed_emnist_digitsonly_{part}.h5", clients)
            for part, clients in (("train", WRITERS), ("test", TESTS))
        ]
        archive(folder / "fed_emnist_digitsonly.tar.bz2", *files)
    unchecked(
        monkeypatch, "tff_emnist/emnist_all.sqlite.lzma", "tff_emnist/fed_emnist_digitsonly.tar.bz2"
    )
    monkeypatch.setitem(tff.PUBLISHED, "tff_emnist", tff.Counts(clients=2, train=3, test=2))
    monkeypatch.setattr(tff, "SHARES", {})
    return str(tmp_path / "mirror")


@pytest.mark.parametrize("mirror", ["sqlite", "hdf5"], indirect=True)
def test_either_edition_is_read_once_and_kept(mirror, tmp_path, monkeypatch, forget):
    monkeypatch.setattr(tff, "verify", lambda samples: ())  # not all ten labels are here
    cache = tmp_path / "cache"
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
    monkeypatch.setattr(emnist_digits, "unpack_parts", None)  # nothing is unpacked again
    reread = digits("official", 0, cache, mirror)
    np.testing.assert_array_equal(reread.x, data.x)
    assert [path.name for path in cache.iterdir()] == ["tff_emnist"]  # no scratch is left


@pytest.mark.parametrize("mirror", ["sqlite"], indirect=True)
def test_contents_that_are_not_as_published_are_not_kept(mirror, tmp_path):
    with pytest.raises(InputError, match="all 10 labels"):
        digits("official", 0, tmp_path / "cache", mirror)
    assert list(tmp_path.glob("cache/**/*.npz")) == []


def test_cifar100_from_the_database(tmp_path, monkeypatch):
    image = np.random.default_rng(0).integers(256, size=(3, 32, 32, 3))
    samples = [{"image": image[k], "label": np.array([k])} for k in range(3)]
    folder = tmp_path / "mirror" / "tff_cifar100"
    splits = {"train": {"1": samples[:2], "0": samples[2:]}, "test": {"0": samples}}
    packed(folder / "cifar100.sqlite.lzma", splits)
    unchecked(monkeypatch, "tff_cifar100/cifar100.sqlite.lzma")
    monkeypatch.setattr(tff, "verify", lambda samples: ())
    data = cifar100("official", 0, tmp_path / "cache", str(tmp_path / "mirror"))
    assert data.y.tolist() == [2, 0, 1]
    assert data.n_samples.tolist() == [1, 2]
    np.testing.assert_array_equal(data.x, image[[2, 0, 1]])
    assert list(data.inputs) == ["cifar100.sqlite.lzma"]
