"""Feature heterogeneity agrees with its definition by d × d matrices."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.samplers.latency import bias
from fedsampling.theory.heterogeneity import bounded, pairwise, refresh


def dense(features):
    """‖(A_i − A_j) A⁺‖₂ by its definition."""
    A = np.einsum("iqa,iqb->iab", features, features) / features.shape[1]
    inverse = np.linalg.pinv(A.mean(0), hermitian=True)
    return np.array([[np.linalg.norm((a - b) @ inverse, 2) for b in A] for a in A])


def drawn(m, n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, n, d)) * rng.uniform(0.3, 3, (m, 1, d))


@given(st.integers(2, 7), st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))
@settings(max_examples=60)
def test_agrees_with_the_dense_definition(m, n, d, seed):
    features = drawn(m, n, d, seed)
    expected = dense(features)
    np.testing.assert_allclose(
        pairwise(features), expected, rtol=1e-6, atol=1e-6 * expected.max() + 1e-9
    )


def test_single_precision_drops_directions_of_little_variance():
    features = drawn(6, 30, 8)
    np.testing.assert_array_equal(pairwise(features, cutoff="float32"), pairwise(features))
    features[..., -1] *= 1e-4  # 1e-8 of the variance, below 8 ε of single precision
    expected = pairwise(features[..., :-1])
    np.testing.assert_allclose(pairwise(features, cutoff="float32"), expected, rtol=1e-2)
    assert (pairwise(features) >= 0.99 * expected).all()
    renewed = refresh(expected, features, np.array([2]), cutoff="float32")
    np.testing.assert_allclose(renewed, expected, rtol=1e-2)


@pytest.mark.parametrize("shape", [(23, 15, 90), (12, 120, 40), (4, 3, 60)])
def test_agrees_across_tiles_with_many_samples_and_where_a_is_singular(shape):
    features = drawn(*shape)
    np.testing.assert_allclose(pairwise(features), dense(features), rtol=3e-7, atol=1e-9)


def test_rotation_and_unit_do_not_matter():
    features = drawn(22, 6, 30)
    B = pairwise(features)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((30, 30)))[0]
    np.testing.assert_allclose(pairwise(1e-20 * features @ Q), B, rtol=1e-6)


def test_clients_with_the_same_data_do_not_differ():
    features = drawn(4, 5, 8)
    features[2] = features[0][::-1]
    B = pairwise(features)
    assert B[0, 2] == pytest.approx(0, abs=1e-7)
    assert (np.diag(B) == 0).all()
    np.testing.assert_array_equal(B, B.T)


def test_refresh_renews_the_participants_and_no_other_pair():
    old, new = drawn(25, 4, 10), drawn(25, 4, 10, seed=1)
    took_part = np.array([3, 21])
    renewed = old.copy()
    renewed[took_part] = new[took_part]
    before, fresh = pairwise(old), pairwise(renewed)
    after = refresh(before, renewed, took_part)
    np.testing.assert_allclose(after[took_part], fresh[took_part], rtol=1e-6)
    np.testing.assert_array_equal(after, after.T)
    others = np.setdiff1d(np.arange(25), took_part)
    unchanged = np.ix_(others, others)
    np.testing.assert_array_equal(after[unchanged], before[unchanged])


@given(st.integers(2, 8), st.integers(1, 5), st.floats(0.1, 0.99), st.integers(0, 99))
@settings(max_examples=60)
def test_bounded_to_the_assumptions(m, k, share, seed):
    """Scaling keeps all ratios; clipping leaves what is small."""
    rng = np.random.default_rng(seed)
    B = np.triu(np.exp(rng.normal(0, 3, (m, m))), 1)
    B = B + B.T
    for rule, draws in product(("scale", "clip"), (None, k)):
        result = bounded(B, share, draws, rule)
        assert np.sqrt(2) * result.mean(1).max() <= share * (1 + 1e-12)
        if rule == "scale":
            np.testing.assert_allclose(result * B.max(), B * result.max())
            np.testing.assert_array_equal(bounded(result / 10, share, draws), result / 10)
        else:
            small = np.less_equal(B, result.max())
            np.testing.assert_array_equal(result[small], B[small])
        if draws:
            for p in rng.dirichlet(np.full(m, 0.5), 20):
                assert bias(result, p, k) <= share**2 * (1 + 1e-12)


def test_assumption_4_does_not_keep_the_bias_below_one():
    B = np.sqrt(0.9) * (1 - np.eye(2))
    assert (B**2).mean(1).max() < 1 / 2
    assert bias(B, np.full(2, 0.5), 1) == pytest.approx(1.8)


def test_faulty_features_are_refused():
    with pytest.raises(InputError, match="shape"):
        pairwise(np.ones((3, 2)))
    with pytest.raises(InputError, match="not finite"):
        pairwise(np.full((2, 2, 2), np.nan))
    with pytest.raises(InputError, match="share"):
        bounded(np.zeros((2, 2)), 1.0)
