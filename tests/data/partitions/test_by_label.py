"""Dirichlet label skew for clients of fixed sizes, and random client sizes."""

import numpy as np
import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.partitions.by_label import by_digit

# Of every digit as many samples as MNIST has.
STOCK = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
STOCK_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
LABELS, LABELS_TEST = (
    stream(0, "test").permutation(np.repeat(np.arange(10), stock)) for stock in (STOCK, STOCK_TEST)
)


def digits(variant, order="label"):
    """Training and test shares of 100 clients of one digit each."""
    return by_digit(LABELS, LABELS_TEST, 10, variant, stream(0, "test"), order)


def dataset(settings):
    return check(Dataset, settings, "")


@pytest.mark.parametrize("variant", ["text", "code"])
def test_each_client_has_500_samples_of_its_digit_and_none_is_used_twice(variant):
    (index, start), (index_test, start_test) = digits(variant)
    assert np.diff(start).tolist() == [500] * 100
    digit = np.arange(100) // 10
    assert np.array_equal(LABELS[index], np.repeat(digit, 500))
    assert np.array_equal(LABELS_TEST[index_test], np.repeat(digit, np.diff(start_test)))
    assert len(set(index.tolist())) == 50_000
    assert len(set(index_test.tolist())) == len(index_test)


def test_text_uses_all_tests_of_a_digit_that_has_fewer_than_1000():
    _, (_, start) = digits("text")
    tests = np.diff(start).reshape(10, 10)
    assert tests.sum(1).tolist() == [min(1_000, stock) for stock in STOCK_TEST]
    assert (np.ptp(tests, axis=1) <= 1).all()


def test_code_takes_file_order_and_80_tests():
    (index, _), (index_test, start_test) = digits("code")
    assert np.diff(start_test).tolist() == [80] * 100
    assert np.array_equal(index[:5_000], np.flatnonzero(LABELS == 0)[:5_000])
    assert np.array_equal(index_test[-800:], np.flatnonzero(LABELS_TEST == 9)[:800])


@pytest.mark.parametrize("n", [0, 3])
def test_more_clients_than_samples_are_rejected(n):
    with pytest.raises(InputError, match=f"{n} clients cannot .* use 1 to 2"):
        by_digit([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1], n, "text", stream(0, "test"))


def test_the_number_of_clients_is_bounded_only_where_the_labels_are_known(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"not read")
    partition = {"name": "by_digit", "clients_per_label": 5}
    known = {"mnist": 50, "uci_har": 30, "femnist_255": None}
    for name, clients in known.items():
        assert dataset({"name": name, "partition": partition}).max_clients == clients
    file = {"name": "files", "path": str(tmp_path / "a.npz"), "partition": partition}
    assert dataset(file).max_clients is None


@pytest.mark.parametrize("variant", ["text", "code"])
def test_shuffled_clients_are_the_same_under_other_numbers(variant):
    def clients(order):
        cut = [np.split(index, start[1:-1]) for index, start in digits(variant, order)]
        return [tuple(map(bytes, pair)) for pair in zip(*cut, strict=True)]

    by_label, shuffled = clients("label"), clients("shuffled")
    assert set(by_label) == set(shuffled)
    assert by_label != shuffled
