"""Clustered sampling from sample counts: Algorithm 1 and its guarantees."""

from math import floor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedsampling.errors import InputError
from fedsampling.samplers.clustered import allocate_by_size, clustered, clustered_weights

sizes = st.one_of(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=300),
    st.integers(1, 300).map(lambda n: [7] * n),
    st.integers(1, 300).map(lambda n: [10**6] + [1] * (n - 1)),
)


def printed_algorithm(n_samples, m, first, mended):
    """Follow the box of Algorithm 1; `mended`, line 13 counts what was there before."""
    M = int(n_samples.sum())
    r = np.zeros((m + 1, len(n_samples)), dtype=int)  # line 13 reaches one row too far
    k, q, before = first, 0, 0
    for i in np.argsort(-n_samples, kind="stable"):
        q += m * int(n_samples[i])
        a, b = divmod(q, M)
        if a > k:
            r[k, i] = M - before
            r[k + 1 : a, i] = M
        r[a, i] = b - before if mended and a == k else b
        k, before = a, b
    return r


@given(sizes, st.data())
@example([10**6] + [1] * 299, None)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_rows_and_columns_sum_exactly(n_samples, data):
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples))) if data else len(n_samples)
    M = n_samples.sum()
    units = allocate_by_size(n_samples, m) * M
    whole = np.rint(units).astype(np.int64)
    np.testing.assert_allclose(units, whole, atol=1e-6)
    assert (whole >= 0).all()
    assert (whole.sum(axis=1) == M).all()  # (7)
    assert (whole.sum(axis=0) == m * n_samples).all()  # (8)
    most = np.array([floor(m * int(size) / int(M)) + 2 for size in n_samples])
    assert ((whole > 0).sum(axis=0) <= most).all()


@given(st.lists(st.integers(1, 20), min_size=1, max_size=12), st.data())
@settings(derandomize=True, deadline=None)
def test_agrees_with_the_printed_algorithm_once_mended(n_samples, data):
    n_samples = np.array(n_samples)
    m = data.draw(st.integers(1, len(n_samples)))
    printed = printed_algorithm(n_samples, m, first=0, mended=True)
    assert not printed[m].any()
    np.testing.assert_allclose(
        allocate_by_size(n_samples, m), printed[:m] / n_samples.sum(), atol=1e-12
    )


@pytest.mark.parametrize(("first", "mended"), [(1, True), (0, False), (1, False)])
def test_the_box_as_printed_does_not_meet_equation_7(first, mended):
    printed = printed_algorithm(np.array([6, 1, 1]), 2, first, mended)
    assert (printed[:2].sum(axis=1) != 8).any()


def test_equal_clients_that_divide_evenly_belong_to_one_distribution_each():
    r = allocate_by_size(np.full(6, 5), 3)
    assert ((r > 0).sum(axis=0) == 1).all()
    np.testing.assert_allclose(r.sum(axis=1), 1)


def test_columns_keep_the_order_of_the_clients():
    r = allocate_by_size(np.array([1, 8, 1], dtype=np.uint8), 2)
    np.testing.assert_allclose(r, [[0, 1, 0], [0.1 * 2, 0.6, 0.1 * 2]])


@pytest.mark.parametrize(
    ("n_samples", "m", "message"),
    [
        ([1.5, 2.0], 1, "integers"),
        ([3, -1], 1, "non-negative"),
        ([0, 0], 1, "no client"),
        ([1, 2], 3, "use 1 to 2"),
        ([1, 2], 0, "use 1 to 2"),
    ],
)
def test_bad_counts_are_refused(n_samples, m, message):
    with pytest.raises(InputError, match=message):
        allocate_by_size(np.array(n_samples), m)


def test_draw_k_follows_distribution_k():
    r = allocate_by_size(np.array([5, 1, 3, 1]), 2)
    draws = 50_000
    clients = clustered(r, np.random.default_rng(0), (draws,))
    for k in range(2):
        seen = np.bincount(clients[:, k], minlength=4) / draws
        assert (seen[r[k] == 0] == 0).all()
        np.testing.assert_allclose(seen, r[k], atol=5 * 0.5 / np.sqrt(draws))


def test_weights_count_the_draws_of_each_client():
    r = allocate_by_size(np.array([5, 1, 3, 1]), 2)
    omega = clustered_weights(r, np.random.default_rng(0), (1000,))
    np.testing.assert_allclose(omega.sum(axis=1), 1)
    assert (omega[:, 0] == 0.5).all()  # half of the samples: one certain draw of two
