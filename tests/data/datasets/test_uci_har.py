"""UCI HAR: its archive's layout on a small one, and its features."""

import numpy as np
from tests.data.packing import pack

from fedsampling.data.datasets.uci_har import ARCHIVE, SIGNALS, features, read_archive


def test_both_parts_of_the_archive_are_read_together(tmp_path):
    members = {}
    for part, windows in (("train", 2), ("test", 1)):
        folder = f"UCI HAR Dataset/{part}"
        for number, signal in enumerate(SIGNALS):
            lines = (f"  {number:.7e}" * 128 + "\n") * windows
            members[f"{folder}/Inertial Signals/{signal}_{part}.txt"] = lines.encode()
        members[f"{folder}/y_{part}.txt"] = b"5\n" * windows
        members[f"{folder}/subject_{part}.txt"] = b"30\n" * windows
    inner = pack(tmp_path / "inner.zip", members).read_bytes()
    files = {"UCI HAR Dataset.zip": inner, "UCI HAR Dataset.names": b"text"}
    windows = read_archive(pack(tmp_path / ARCHIVE, files))
    assert windows.x.shape == (3, 9, 128)
    assert np.array_equal(windows.x[1, :, 0], np.arange(9))
    assert windows.y.tolist() == [4, 4, 4]
    assert windows.owner.tolist() == [29, 29, 29]


def test_features_are_statistics_of_each_signal():
    signal = np.tile([0.0, 2.0], 64).astype(np.float32)
    values = features(np.stack([signal, 3 * signal, *[0 * signal] * 7])[None]).reshape(5, 9)
    assert values[:, :3].T.tolist() == [[1, 1, 0, 2, 2], [3, 3, 0, 6, 6], [0, 0, 0, 0, 0]]
