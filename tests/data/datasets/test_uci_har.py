"""UCI HAR: its archive's layout on a small one, and the copy where it is here."""

import io
import zipfile

import numpy as np
import pytest

from fedsampling.data.datasets.tables import (
    ARCHIVE,
    PER_ACTIVITY,
    SIGNALS,
    features,
    read_archive,
)

from .loading import load

BY_SUBJECT = {"name": "by_writer"}


@pytest.fixture
def archive(tmp_path):
    """UCI's archive with two training windows and one test window."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as file:
        for part, windows in (("train", 2), ("test", 1)):
            for number, signal in enumerate(SIGNALS):
                lines = "".join(f"  {number:.7e}" * 128 + "\n" for _ in range(windows))
                file.writestr(f"UCI HAR Dataset/{part}/Inertial Signals/{signal}_{part}.txt", lines)
            file.writestr(f"UCI HAR Dataset/{part}/y_{part}.txt", "5\n" * windows)
            file.writestr(f"UCI HAR Dataset/{part}/subject_{part}.txt", "30\n" * windows)
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w") as file:
        file.writestr("UCI HAR Dataset.zip", inner.getvalue())
        file.writestr("UCI HAR Dataset.names", "text")
    return tmp_path / ARCHIVE


def test_both_parts_of_the_archive_are_read_together(archive):
    windows = read_archive(archive)
    assert windows.x.shape == (3, 9, 128)
    assert np.array_equal(windows.x[1, :, 0], np.arange(9))
    assert windows.y.tolist() == [4, 4, 4]
    assert windows.owner.tolist() == [29, 29, 29]


def test_features_are_statistics_of_each_signal():
    signal = np.tile([0.0, 2.0], 64).astype(np.float32)
    values = features(np.stack([signal, 3 * signal, *[0 * signal] * 7])[None]).reshape(5, 9)
    assert values[:, :3].T.tolist() == [[1, 1, 0, 2, 2], [3, 3, 0, 6, 6], [0, 0, 0, 0, 0]]


def test_the_stand_in_has_all_subjects_and_activities():
    data = load("uci_har", partition=BY_SUBJECT)
    assert (len(data.p), data.x.shape[1], data.classes) == (30, 45, 6)


def test_the_copy_has_the_published_counts(mirror, tmp_path):
    data = load("uci_har", "official", 0, tmp_path, mirror, partition=BY_SUBJECT)
    counts = np.bincount(data.y) + np.bincount(data.y_test)
    assert counts.tolist() == list(PER_ACTIVITY)
    assert len(data.p) == 30
    assert data.unverified
    assert abs(data.x.mean()) < 0.02
    assert np.abs(data.x).max() <= 5
