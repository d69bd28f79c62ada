from typing import Any

import numpy as np
import pytest

from fedsampling.datasets import FederatedDataset


def parts(**changed: Any) -> dict[str, Any]:
    """Two clients with one and three samples of two features, one test sample."""
    return {
        "name": "small",
        "x": np.ones((4, 2)),
        "y": np.ones(4),
        "start": np.array([0, 1, 4]),
        "p": np.array([0.5, 0.5]),
        "x_test": np.ones((1, 2)),
        "y_test": np.ones(1),
    } | changed


def test_client_sizes_follow_from_the_starts():
    assert FederatedDataset(**parts()).n_samples.tolist() == [1, 3]


def test_test_set_may_be_empty():
    assert len(FederatedDataset(**parts(x_test=np.empty((0, 2)), y_test=np.empty(0))).y_test) == 0


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"x": np.ones(4)}, "must be .samples, M."),
        ({"x": np.ones((4, 2), np.float32)}, "must be float64"),
        ({"y": np.ones(3)}, "must be .samples, M."),
        ({"x": np.full((4, 2), np.nan)}, "x and y must be finite"),
        ({"y_test": np.array([np.inf])}, "x_test and y_test must be finite"),
        ({"start": np.array([0, 1, 3])}, "rise strictly from 0 to 4"),
        ({"start": np.array([1, 2, 4])}, "rise strictly from 0 to 4"),
        ({"start": np.array([0, 0, 4])}, "rise strictly from 0 to 4"),
        ({"start": np.array([0.0, 1.0, 4.0])}, "int64"),
        ({"start": np.array([0])}, "an end for every client"),
        ({"p": np.array([0.5, 0.4])}, "sum to 1"),
        ({"p": np.array([1.5, -0.5])}, "non-negative"),
        ({"p": np.array([0.5, np.nan])}, "non-negative"),
        ({"p": np.array([1.0])}, r"shape \(2,\)"),
        ({"x_test": np.ones((1, 3))}, "number of features"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(changed: dict[str, Any], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        FederatedDataset(**parts(**changed))
