"""Datasets of R packages and UCI HAR: readers, splits, and the real files where they are here."""

import numpy as np
import pandas as pd
import rdata
from tests.data.packing import pack

from fedsampling.base.streams import stream
from fedsampling.data.datasets.tables import Layout, Letter, read, split_by_label, standardised
from fedsampling.data.datasets.uci_har import ARCHIVE, SIGNALS, features, read_archive

LAYOUT = Layout("Toy", label="kind", features=2, per_label=(2, 1), owner="who", owners=2)


def test_columns_become_features_labels_and_owners(tmp_path):
    columns = {
        "who": pd.Categorical([*"bab"]),
        "first": [1.0, 2.0, 3.0],
        "bit": pd.Categorical([*"011"]),
        "kind": pd.Categorical([*"xyx"]),
    }
    rdata.write_rda(tmp_path / "Toy.rda", {"Toy": pd.DataFrame(columns)})
    table = read(tmp_path / "Toy.rda", LAYOUT)
    assert table.x.tolist() == [[1, 0], [2, 1], [3, 1]]
    assert table.y.tolist() == [0, 1, 0]
    assert table.owner.tolist() == [1, 0, 1]


def test_a_fifth_of_each_label_rounded_up_is_for_tests():
    y = np.repeat([0, 1, 2], [100, 10, 1])
    test = split_by_label(y, stream(0, "test"))
    assert [int(test[y == label].sum()) for label in range(3)] == [20, 2, 1]


def test_features_are_standardised_by_the_training_samples_and_cut():
    x = np.array([[1.0, 7.0], [3.0, 7.0], [1000.0, 7.0]])
    scaled = standardised(x, np.array([True, True, False]))
    assert scaled.tolist() == [[-1, 0], [1, 0], [5, 0]]


def test_one_label_per_client_counts_the_labels_of_the_table():
    assert Letter(name="letter", partition={"name": "by_digit"}).max_clients == 260


# UCI HAR: its archive's layout on a small one, and its features.


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
