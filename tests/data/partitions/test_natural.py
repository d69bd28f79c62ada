"""Natural partitions by owner: filters, draws, splits, and unequal sizes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.federated import share_of_largest
from fedsampling.data.partitions.partition import at_least, by_owner, sample_clients, split
from fedsampling.data.partitions.unbalanced import SETS, unbalance
from fedsampling.data.shares import starts

owners = st.lists(st.integers(0, 9), min_size=1, max_size=80)


def of_sizes(*sizes):
    return np.arange(sum(sizes)), starts(sizes)


def rows(shares):
    index, start = shares
    return [index[a:b].tolist() for a, b in pairwise(start)]


@given(owners)
def test_owners_have_their_rows_in_file_order(owner):
    expected = [[i for i, o in enumerate(owner) if o == who] for who in sorted(set(owner))]
    assert rows(by_owner(owner)) == expected


@given(owners, st.integers(1, 20))
def test_filter_keeps_clients_with_the_minimum(owner, minimum):
    expected = [held for held in rows(by_owner(owner)) if len(held) >= minimum]
    if expected:
        assert rows(at_least(by_owner(owner), minimum)) == expected
    else:
        with pytest.raises(InputError, match=f"min_samples: {minimum} leave no client"):
            at_least(by_owner(owner), minimum)


@given(owners, st.floats(0.01, 1.0), st.integers(0, 3))
def test_sampling_takes_whole_clients_until_the_fraction_is_met(owner, fraction, seed):
    rows_by_first = {held[0]: held for held in rows(by_owner(owner))}
    count = int(fraction * len(owner))
    if count == 0:
        with pytest.raises(InputError, match=r"fraction: .* is none"):
            sample_clients(by_owner(owner), fraction, stream(seed, "test"))
        return
    drawn = rows(sample_clients(by_owner(owner), fraction, stream(seed, "test")))
    assert sum(map(len, drawn)) == count
    assert all(held == rows_by_first[held[0]] for held in drawn[:-1])
    assert drawn[-1] == rows_by_first[drawn[-1][0]][: len(drawn[-1])]
    assert len({held[0] for held in drawn}) == len(drawn)


def test_smaller_fractions_draw_the_first_clients_of_larger_ones():
    shares = of_sizes(*range(1, 60))
    part, full = (rows(sample_clients(shares, f, stream(0, "test"))) for f in (0.3, 1.0))
    assert part[:-1] == full[: len(part) - 1]
    assert full != rows(shares)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
    st.sampled_from([0.5, 0.8, 0.9]),
    st.integers(0, 5),
    st.booleans(),
)
def test_split_follows_leafs_rule(sizes, fraction, gap, random):
    shares = of_sizes(*sizes)
    expected = []
    for held in rows(shares):
        cut = max(1, int(fraction * len(held)))
        if held[cut + gap :]:
            expected.append((held, held[:cut], held[cut + gap :]))
    rng = stream(0, "test") if random else None
    if not expected:
        with pytest.raises(InputError, match="leave no client"):
            split(shares, fraction, gap, rng)
        return
    train, test = (rows(part) for part in split(shares, fraction, gap, rng))
    if not random:
        assert (train, test) == ([a for _, a, _ in expected], [b for _, _, b in expected])
    for (held, a, b), c, d in zip(expected, train, test, strict=True):
        assert (len(a), len(b)) == (len(c), len(d))
        assert set(c) | set(d) <= set(held)
        assert not set(c) & set(d)


def test_random_split_gives_every_sample_the_same_chance():
    shares = of_sizes(10, 7)
    tests = [split(shares, 0.8, rng=stream(seed, "test"))[1][0] for seed in range(2_000)]
    chance = np.repeat([2 / 10, 2 / 7], [10, 7])
    # Five standard deviations of a binomial count.
    limit = 5 * np.sqrt(2_000 * chance * (1 - chance))
    assert (np.abs(np.bincount(np.concatenate(tests)) - 2_000 * chance) < limit).all()


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
