"""Natural partitions by owner: filters, draws, splits, and unequal sizes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.base.streams import stream
from fedsampling.data.partitions.partition import at_least, by_owner, sample_clients, split
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
