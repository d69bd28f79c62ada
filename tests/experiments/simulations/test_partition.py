"""Run tables of partitions."""

import numpy as np
from small_runs import tables

from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.partition import counts


def test_labels_are_counted_by_client():
    y = np.array([0, 2, 2, 1, 1, 1])
    dataset = FederatedDataset(
        name="small",
        x=np.zeros((6, 1)),
        y=y,
        start=np.array([0, 4, 6]),
        p=np.array([0.5, 0.5]),
        x_test=np.zeros((0, 1)),
        y_test=y[:0],
        classes=3,
    )
    table = counts(dataset).pivot(index="metric", columns="at", values="value")
    np.testing.assert_array_equal(table.loc["samples"], [4, 2])
    np.testing.assert_array_equal(table.loc["count/label=0"], [1, 0])
    np.testing.assert_array_equal(table.loc["count/label=1"], [1, 2])
    np.testing.assert_array_equal(table.loc["count/label=2"], [2, 0])


def test_every_seed_counts_the_whole_dataset():
    for table in tables("partition", seeds=(0, 1)):
        assert table["value"].sum() == 3500
