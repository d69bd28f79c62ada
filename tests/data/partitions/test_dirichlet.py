import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy import stats

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.by_label import (
    Dirichlet,
    all_by_dirichlet,
    dirichlet,
    grouped_sizes,
)
from fedsampling.data.shares import rounded

LABELS, LABELS_TEST = np.arange(50_000) % 10, np.arange(10_000) % 10  # CIFAR-10's counts
SIZES = grouped_sizes(Dirichlet(alpha=1.0).groups)


def counts(labels, shares):
    """Number of each client's samples of each label."""
    index, start = shares
    client = np.repeat(np.arange(len(start) - 1), np.diff(start))
    table = np.zeros((len(start) - 1, labels.max() + 1), np.int64)
    np.add.at(table, (client, labels[index]), 1)
    return table


def train_and_test(alpha, variant, seed=0):
    return dirichlet(LABELS, LABELS_TEST, SIZES, SIZES // 5, alpha, variant, stream(seed, "test"))


@pytest.mark.parametrize("variant", ["text", "code"])
@pytest.mark.parametrize("alpha", [10.0, 0.001])
def test_sizes_are_exact_and_rows_exist(variant, alpha):
    train, test = train_and_test(alpha, variant)
    for (index, start), expected, total in ((train, SIZES, 50_000), (test, SIZES // 5, 10_000)):
        assert np.array_equal(np.diff(start), expected)
        assert 0 <= index.min() <= index.max() < total


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
    st.sampled_from([0.01, 0.5, 1e3]),
    st.integers(1, 5),
)
def test_text_uses_all_of_a_labels_rows_equally_often(sizes, alpha, C):
    labels = np.tile(np.arange(C), 11)
    index, start = dirichlet(labels, labels, sizes, sizes, alpha, "text", stream(0, "test"))[0]
    assert np.diff(start).tolist() == sizes
    used = np.bincount(index, minlength=len(labels)).reshape(11, C)
    assert (np.ptp(used, axis=0) <= 1).all()
    for k, table in enumerate(counts(labels, (index, start))):
        rows = index[start[k] : start[k + 1]]
        assert np.unique(rows, return_counts=True)[1].max() <= -(-table.max() // 11)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_label_shares_follow_the_dirichlet_law(alpha):
    sizes = np.full(1_000, 4_000)  # so that rounding does not show
    shares = dirichlet(LABELS, LABELS_TEST, sizes, sizes, alpha, "text", stream(0, "test"))[0]
    table = counts(LABELS, shares)
    # A label's share is Beta(alpha, 9 alpha), a sum of two Beta(2 alpha, 8 alpha); each test
    # errs with probability 1e-4.  Shares below one sample are zero after rounding.
    for labels in ([0], [9], [3, 4]):
        share = table[:, labels].sum(1) / 4_000
        law = stats.beta(len(labels) * alpha, (10 - len(labels)) * alpha)
        edges = law.ppf([0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
        observed = np.bincount(np.searchsorted(edges, share), minlength=7)
        expected = 1_000 * np.array([0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
        assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_training_and_tests_have_the_same_shares():
    train, test = train_and_test(0.1, "text")
    table, table_test = counts(LABELS, train), counts(LABELS_TEST, test)
    difference = (table - 5 * table_test) / SIZES[:, None]
    assert np.abs(difference).max() < 0.06  # 1/20 + 1/100


def test_code_gives_the_last_label_the_remainder():
    seen = np.mean(
        [counts(LABELS, train_and_test(10.0, "code", seed)[0]).sum(0) for seed in range(40)], axis=0
    )
    # Each of 100 clients loses half a sample on average in each of nine labels, which is 450
    # more for the last.  Dirichlet spread of a label's total: 0.03 * sqrt(sum N²) = 168.
    assert seen[:9] == pytest.approx(np.full(9, 4_850 - 50), abs=5 * 168 / np.sqrt(40))
    assert seen[9] == pytest.approx(4_850 + 450, abs=5 * 168 / np.sqrt(40))


def test_code_draws_with_replacement():
    index = train_and_test(10.0, "code")[0][0]
    # Of 5,000 images drawn D times, 5,000 (1 - e^(-D/5,000)) differ; standard deviation < 100.
    drawn = np.bincount(LABELS[index])
    expected = (5_000 * -np.expm1(-drawn / 5_000)).sum()
    assert len(np.unique(index)) == pytest.approx(expected, abs=500)


@given(
    st.lists(st.integers(0, 4), min_size=12, max_size=60),
    st.integers(1, 6),
    st.sampled_from([0.5, 2.0, 1e6]),
)
def test_all_by_dirichlet_uses_every_sample_once(labels, n, alpha):
    y = np.unique(labels, return_inverse=True)[1]
    try:
        index, start = all_by_dirichlet(y, n, alpha, stream(0, "test"))
    except InputError:  # a client without samples; see the last test
        reject()
    assert np.array_equal(np.sort(index), np.arange(len(y)))
    assert len(start) == n + 1
    assert (np.diff(start) > 0).all()


def test_all_by_dirichlet_follows_the_law():
    labels = np.arange(400_000) % 10
    table = counts(labels, all_by_dirichlet(labels, 1_000, 2.0, stream(0, "test")))
    # The factor per label is 1 within 2 %: far below what 1,000 clients can tell.
    for label in (0, 9):
        share = table[:, label] / table.sum(1)
        assert stats.kstest(share, stats.beta(2, 18).cdf).pvalue > 1e-4
    assert np.abs(table.sum(1) - 400).std() < 15


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=7), st.integers(0, 1_000))
def test_rounding_keeps_the_total_and_moves_no_count_by_one(weights, total):
    share = np.array(weights) / np.sum(weights)
    result = rounded(share * total, total)
    assert result.sum() == total
    assert np.abs(result - share * total).max() < 1


@pytest.mark.parametrize(
    ("labels", "clients", "alpha", "reason"),
    [
        ([0, 2, 2], 1, 1.0, r"no sample has label \[1\]"),
        (np.arange(20) % 2, 30, 1e-3, "larger alpha or fewer clients"),
    ],
)
def test_labels_with_a_gap_and_clients_without_samples_are_rejected(labels, clients, alpha, reason):
    with pytest.raises(InputError, match=reason):
        all_by_dirichlet(labels, clients, alpha, stream(0, "test"))
