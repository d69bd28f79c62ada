"""Dirichlet label skew for clients of fixed sizes, and random client sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.by_label import by_digit
from fedsampling.data.partitions.label_skew import label_skew, sizes
from fedsampling.data.shares import starts

# Of every digit as many samples as MNIST has.
STOCK = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
STOCK_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
LABELS, LABELS_TEST = (
    stream(0, "test").permutation(np.repeat(np.arange(10), stock)) for stock in (STOCK, STOCK_TEST)
)


def digits(variant, order="label"):
    """Training and test shares of 100 clients of one digit each."""
    return by_digit(LABELS, LABELS_TEST, 10, variant, stream(0, "test"), order)


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


@pytest.mark.parametrize("variant", ["text", "code"])
def test_shuffled_clients_are_the_same_under_other_numbers(variant):
    def clients(order):
        cut = [np.split(index, start[1:-1]) for index, start in digits(variant, order)]
        return [tuple(map(bytes, pair)) for pair in zip(*cut, strict=True)]

    by_label, shuffled = clients("label"), clients("shuffled")
    assert set(by_label) == set(shuffled)
    assert by_label != shuffled


SKEWED_LABELS = np.where(np.arange(35_000) % 10 == 0, 1.0, -1.0)  # a tenth is positive
SIZES = np.full(100, 350)


def drawn_shares(sizes, alpha):
    """Share of positive labels of each client, with 200 seeds."""
    rows = [label_skew(SKEWED_LABELS, sizes, alpha, stream(seed, "test")) for seed in range(200)]
    is_positive = (SKEWED_LABELS[np.stack(rows)] > 0).astype(float)
    return np.add.reduceat(is_positive, starts(sizes)[:-1], axis=1) / sizes


@given(
    st.lists(st.integers(0, 4), min_size=40, max_size=60),
    st.lists(st.integers(1, 20), min_size=1, max_size=2),
    st.sampled_from([1e-6, 0.1, 1.0, 1e6]),
)
def test_no_sample_is_used_twice(labels, sizes, alpha):
    index = label_skew(labels, sizes, alpha, stream(0, "test"))
    assert len(index) == len(set(index.tolist())) == sum(sizes)
    assert set(index.tolist()) <= set(range(len(labels)))


def test_small_alpha_gives_each_client_one_label():
    sizes = np.full(10, 350)  # a tenth of the stock, so that no label runs out
    positive = drawn_shares(sizes, 1e-9)
    assert np.isin(positive, (0.0, 1.0)).all()
    # Each of 2,000 clients is positive with probability 0.1; error probability 1e-4.
    low, high = stats.binom.interval(1 - 1e-4, 2_000, 0.1)
    assert low <= positive.sum() <= high


def test_shares_follow_the_dirichlet_law_while_no_label_runs_out():
    sizes = np.full(5, 400)
    positives = (400 * drawn_shares(sizes, 3.0).ravel()).round()
    # Dirichlet(3 * (0.9, 0.1)) then multinomial is beta-binomial; chi-square over ten classes of
    # about equal probability, error probability 1e-4.
    law = stats.betabinom(400, 0.3, 2.7)
    edges = np.unique([law.ppf(q) for q in np.linspace(0.1, 0.9, 9)])
    expected = 1_000 * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    observed = np.bincount(np.searchsorted(edges, positives), minlength=len(edges) + 1)
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_exhausted_labels_change_the_law_for_all_clients_alike():
    share = drawn_shares(SIZES, 100.0)
    # Dirichlet(90, 10) has standard deviation 0.030, the draw of 350 samples 0.016: 0.034
    # together.  No client is left with a residue, neither in one run nor on average.
    assert share.std() == pytest.approx(0.034, abs=0.002)
    assert share.max() < 0.1 + 8 * 0.034
    assert np.abs(share.mean(0) - 0.1).max() < 5 * 0.034 / np.sqrt(200)


def exists(total, K, low, high):
    """Return whether such sizes exist, by enumerating the sums of K sizes."""
    if low < 1 or low > high:
        return False
    between = range(low, high + 1)
    sums = {(0, False, False)}  # sum, low met, high met
    for _ in range(K):
        sums = {(s + v, a or v == low, b or v == high) for s, a, b in sums for v in between}
    return (total, True, True) in sums


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_exactly_the_feasible_requests_are_met(K):
    for low in range(4):
        for high in range(5):
            for total in range(18):
                request = (total, K, low, high)
                if exists(*request):
                    N = sizes(*request, stream(0, "test"))
                    assert (N.sum(), N.min(), N.max()) == (total, low, high)
                else:
                    with pytest.raises(InputError):
                        sizes(*request, stream(0, "test"))


def test_the_papers_sizes_are_exact_spread_and_equal_on_average():
    N = np.stack([sizes(35_000, 100, 79, 688, stream(seed, "test")) for seed in range(400)])
    assert N.shape == (400, 100)
    assert {*N.sum(1), *N.min(1), *N.max(1)} == {35_000, 79, 688}
    assert np.histogram(N[0], [79, 200, 300, 400, 500, 689])[0].min() >= 5
    # Mean over 400 draws, standard deviation about 161: five standard errors for 100 clients
    # miss with probability below 1e-4.
    assert np.abs(N.mean(0) - 350).max() < 5 * 165 / np.sqrt(400)
