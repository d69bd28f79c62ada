"""Clients of unequal size whose label shares differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.label_skew import label_skew, sizes
from fedsampling.data.shares import starts

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
