"""Run tables of partitions."""

import numpy as np

from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.label_counts import counts


def test_labels_are_counted_by_client():
    x, y, p = np.zeros((6, 1)), np.array([0, 2, 2, 1, 1, 1]), np.array([0.5, 0.5])
    tests = {"x_test": x[:0], "y_test": y[:0], "classes": 3}
    dataset = FederatedDataset(name="small", x=x, y=y, start=np.array([0, 4, 6]), p=p, **tests)
    table = counts(dataset)
    assert {metric: rows["value"].tolist() for metric, rows in table.groupby("metric")} == {
        "samples": [4, 2],
        "count/label=0": [1, 0],
        "count/label=1": [1, 2],
        "count/label=2": [2, 0],
    }
