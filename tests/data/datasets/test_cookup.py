"""The unbalanced sets: their stand-in, and files of the published layout."""

import zipfile

import numpy as np
import pytest

from fedsampling.data.datasets import tff
from fedsampling.data.federated import share_of_largest

from .loading import load
from .tff_files import hdf5


@pytest.mark.parametrize(
    ("number", "top", "share"), [(1, 0.1, 0.82), (2, 0.2, 0.90), (3, 0.5, 0.98)]
)
def test_the_stand_in_has_the_published_imbalance(number, top, share):
    data = load("cookup", set=number)
    assert data.n_clients == tff.WRITERS
    assert share_of_largest(data.n_samples, top) == pytest.approx(share, abs=0.02)
    np.testing.assert_allclose(data.p, data.n_samples / len(data.x))


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A mirror with small files of the right layout, whose counts count as published."""
    pytest.importorskip("h5py", reason="writing TFF's files needs h5py")
    folder = tmp_path / "mirror" / "cookup"
    folder.mkdir(parents=True)
    clients = {
        name: {"pixels": np.full((count, 28, 28), 0.5, np.float32), "label": np.arange(count) % 10}
        for name, count in {"b": 20, "a": 4}.items()
    }
    for file in ("cookup_train_1.h5", "cookup_train_2.h5", "cookup_train_3.h5", "test.h5"):
        hdf5(folder / file, clients)
    counts = (24, 2, 24)
    monkeypatch.setattr(tff, "PUBLISHED", {"cookup_2": counts})
    monkeypatch.setattr(tff, "SHARES", {})
    return folder


@pytest.mark.parametrize("packed", [False, True], ids=["files", "archive"])
def test_published_files_are_read_one_by_one_or_from_dataverses_archive(
    published, tmp_path, packed
):
    if packed:
        with zipfile.ZipFile(published / "dataverse_files.zip", "w") as archive:
            for path in list(published.glob("*.h5")):
                archive.write(path, f"data/{path.name}")
                path.unlink()
    mirror, cache = str(published.parent), tmp_path / "cache"
    data = load("cookup", "official", 0, cache, mirror, set=2)
    assert data.n_samples.tolist() == [4, 20]
    assert data.name == "cookup_2"
    assert data.unverified
    assert sorted(data.inputs) == ["cookup_train_2.h5", "test.h5"]
    assert sorted(path.name for path in cache.iterdir()) == ["cookup"]  # nothing unpacked is left
