import numpy as np
import pytest

from fedsampling.data.federated import FederatedDataset
from fedsampling.data.samples import Samples, gather


def parts(**changed):
    """Two clients with one and three samples of two features, one test sample."""
    train = {"x": np.ones((4, 2)), "y": np.ones(4), "start": np.array([0, 1, 4])}
    tests = {"x_test": np.ones((1, 2)), "y_test": np.ones(1)}
    return {"name": "small", "p": np.array([0.5, 0.5])} | train | tests | changed


def images(**changed):
    """The same clients with images of labels 0 to 2, and a test sample for the second only."""
    train = {"x": np.zeros((4, 3, 5), np.uint8), "y": np.array([2, 0, 0, 1])}
    tests = {"x_test": np.zeros((1, 3, 5), np.uint8), "y_test": np.array([1])}
    labels = {"start_test": np.array([0, 0, 1]), "classes": 3}
    return parts(**(train | tests | labels | changed))


def test_sizes_and_labels_are_counted_per_client():
    dataset = FederatedDataset(**images())
    assert dataset.n_samples.tolist() == [1, 3]
    assert dataset.label_counts().tolist() == [[0, 0, 1], [2, 1, 0]]
    FederatedDataset(**parts(x_test=np.empty((0, 2)), y_test=np.empty(0)))  # without tests


def test_sequences_have_a_label_per_step():
    steps = np.array([[0, 1], [2, 2], [0, 0], [1, 1]])
    tests = np.zeros((1, 2), np.int64)
    sequences = FederatedDataset(**images(x=steps, y=steps, x_test=tests, y_test=tests))
    assert sequences.label_counts().tolist() == [[1, 1, 0], [2, 2, 2]]


def test_description_of_labelled_clients_is_the_one_computed_by_hand():
    description = dict(FederatedDataset(**images()).describe())
    expected = {
        "median samples per client": 2.0,
        "share of the largest tenth": 0.75,
        "largest p": 0.5,
        "median labels of a client": 1.5,
        "median test samples per client": 0.5,
    }
    assert expected.items() <= description.items()


def test_description_leaves_out_labels_and_tests_that_clients_do_not_have():
    description = FederatedDataset(**parts()).describe()
    assert description["test samples"] == 1
    assert not any("label" in key or "test samples per" in key for key in description)


@pytest.mark.parametrize(
    ("make", "changed", "reason"),
    [
        (parts, {"x": np.ones(4)}, "do not fit together"),
        (parts, {"x": np.full((4, 2), "a")}, "samples must be numbers"),
        (parts, {"y": np.ones(4, np.int64)}, "targets must be float64, not int64"),
        (parts, {"x": np.full((4, 2), np.nan)}, "must be finite"),
        (parts, {"start": np.array([0, 0, 4])}, "rise strictly"),
        (parts, {"start": np.array([0])}, r"start must be int64 of shape \(3,\)"),
        (parts, {"p": np.array([0.5, 0.4])}, "sum to 1"),
        (parts, {"x_test": np.ones((1, 3))}, "differ in type or shape"),
        (images, {"y": np.array([3, 0, 0, 1])}, r"labels must lie in \[0, 3\)"),
        (images, {"y_test": np.array([[1]])}, "differ in type or shape"),
        (images, {"start_test": np.array([0, 2, 1])}, "start_test must rise from 0 to 1"),
    ],
)
def test_inconsistent_arrays_are_rejected(make, changed, reason):
    with pytest.raises(ValueError, match=reason):
        FederatedDataset(**make(**changed))


def test_rows_follow_their_clients_and_tests_are_common_by_default():
    x, x_test = np.array([[10], [11], [12], [13]]), np.array([[7], [8]])
    y, y_test = np.array([0, 1, 2, 0]), np.array([2, 1])
    inputs = {"file": "hash"}
    samples = Samples("small", x, y, x_test, y_test, 3, unverified=True, inputs=inputs)
    train = np.array([3, 0, 2, 3]), np.array([0, 1, 4])
    own = gather(samples, train, (np.array([1, 0]), np.array([0, 0, 2])), "samples")
    assert own.x.ravel().tolist() == [13, 10, 12, 13]
    assert own.y.tolist() == [0, 0, 2, 0]
    assert own.x_test.ravel().tolist() == [8, 7]
    assert own.start_test.tolist() == [0, 0, 2]
    assert own.p.tolist() == [0.25, 0.75]
    assert (own.unverified, own.inputs) == (True, inputs)
    common = gather(samples, train, None, "equal")
    assert common.start_test is None
    assert common.y_test.tolist() == [2, 1]
    assert common.p.tolist() == [0.5, 0.5]
