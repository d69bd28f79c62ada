"""Datasets of R packages and UCI HAR: readers, splits, and the real files where they are here."""

import numpy as np
import pandas as pd
import rdata

from fedsampling.base.streams import stream
from fedsampling.data.datasets.tables import FileLayout, Letter, read, split_by_label, standardised

LAYOUT = FileLayout("Toy", label="kind", features=2, per_label=(2, 1), owner="who", owners=2)


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
