import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.samples import Samples, check_counts, gather

SAMPLES = Samples(
    name="small",
    x=np.arange(10, 14, dtype=np.uint8)[:, None],
    y=np.array([0, 1, 2, 0]),
    x_test=np.array([[7], [8]], np.uint8),
    y_test=np.array([2, 1]),
    classes=3,
    unverified=True,
    inputs={"file": "hash"},
)
TRAIN = (np.array([3, 0, 2, 3]), np.array([0, 1, 4]))


def test_counts_are_checked_class_by_class():
    assert check_counts(SAMPLES, (1,), [2, 1, 1], [0, 1, 1]) == (
        "samples of shape (1,)",
        "4 training samples",
        "2 test samples",
        "training samples per class",
        "test samples per class",
    )
    with pytest.raises(InputError) as caught:
        check_counts(SAMPLES, (1,), [1, 2, 1], [1, 1, 0])
    assert [line.split(" as published")[0] for line in caught.value.lines] == [
        "small: the files do not have training samples per class",
        "small: the files do not have test samples per class",
    ]


def test_rows_follow_their_clients_and_provenance_is_kept():
    test = (np.array([1, 0]), np.array([0, 0, 2]))
    data = gather(SAMPLES, TRAIN, test, "samples")
    assert data.x.ravel().tolist() == [13, 10, 12, 13]
    assert data.y.tolist() == [0, 0, 2, 0]
    assert data.x_test.ravel().tolist() == [8, 7]
    assert data.start_test.tolist() == [0, 0, 2]
    assert data.p.tolist() == [0.25, 0.75]
    assert data.unverified
    assert data.inputs == SAMPLES.inputs


def test_without_test_shares_the_test_set_is_common():
    data = gather(SAMPLES, TRAIN, None, "equal")
    assert data.start_test is None
    assert data.y_test.tolist() == [2, 1]
    assert data.p.tolist() == [0.5, 0.5]
