"""Unbalanced clients have the published shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.data.partitions.test_natural import of_sizes

from fedsampling.base.streams import stream
from fedsampling.data.federated import share_of_largest
from fedsampling.data.partitions.unbalanced import SETS, unbalance
from fedsampling.data.shares import starts


@pytest.mark.parametrize("chosen", SETS.values())
def test_published_shares_are_met(chosen):
    # As many clients and samples as Federated EMNIST's digits, about equally large.
    sizes = 101 + stream(0, "test.sizes").integers(-30, 31, 3_383)
    sizes[: 341_873 - sizes.sum()] += 1
    rng = stream(0, "test")
    _, start = unbalance(of_sizes(*sizes), chosen.s, chosen.a, chosen.b, rng)
    assert len(start) == 3_384
    assert share_of_largest(np.diff(start), chosen.s) == pytest.approx(chosen.share, abs=0.01)


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=12),
    st.floats(0, 1),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_clients_are_whole_or_cut_to_the_range(sizes, s, a, width):
    start = starts(sizes)
    index, begin = unbalance((np.arange(start[-1]), start), s, a, a + width, stream(0, "test"))
    counts = np.diff(begin)
    assert len(counts) == len(sizes)
    is_cut = (counts >= np.minimum(a, sizes)) & (counts <= a + width)
    is_whole = counts == sizes
    assert (is_whole | is_cut).all()
    assert is_whole.sum() >= round(s * len(sizes))
    client = np.searchsorted(start, index, side="right") - 1
    assert np.array_equal(client, np.repeat(np.arange(len(sizes)), counts))
    assert (np.diff(index) > 0).all()  # each row once, in the old order


def test_exactly_the_share_s_keeps_all():
    shares = of_sizes(*[100] * 100)
    counts = np.diff(unbalance(shares, 0.2, 1, 5, stream(0, "test"))[1])
    assert (counts == 100).sum() == 20
    # The others' numbers are uniform on 1 to 5; error probability 1e-4.
    assert stats.chisquare(np.bincount(counts[counts < 100])[1:]).pvalue > 1e-4


def test_samples_to_keep_are_drawn_evenly():
    indices = [unbalance(of_sizes(6), 0, 2, 2, stream(s, "test"))[0] for s in range(900)]
    # Each of 6 samples with probability 1/3: five standard deviations of 71.
    assert np.abs(np.bincount(np.concatenate(indices)) - 300).max() < 71
