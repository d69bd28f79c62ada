"""Closed forms of the aggregation weights agree with enumeration of all outcomes."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsampling.base.errors import InputError
from fedsampling.theory.weights import (
    clustered_covariance,
    clustered_participation,
    clustered_statistics,
    independent_participation,
    optimal_statistics,
    participation,
    pooled_alpha,
    statistics,
    sums,
)

P = np.array([0.1, 0.15, 0.35, 0.4])
Q = np.array([0.2, 1.0, 0.5, 0.3])
R = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.1, 0.2, 0.7]])
M = 2


def outcomes(scheme):
    """Yield every outcome of a round: its probability, ω and who takes part."""
    n = len(P)
    if scheme in ("md", "clustered"):
        r = R if scheme == "clustered" else np.array([P, P])
        for drawn in product(range(n), repeat=M):
            counts = np.bincount(drawn, minlength=n)
            yield np.prod([r[k, i] for k, i in enumerate(drawn)]), counts / M, counts > 0
    elif scheme == "uniform":
        for drawn in combinations(range(n), M):
            chosen = np.isin(np.arange(n), drawn)
            yield 1 / 6, chosen * n / M * P, chosen
    elif scheme == "full":
        yield 1.0, P, np.ones(n, dtype=bool)
    else:
        q = {"poisson": M * P, "binomial": np.full(n, M / n), "optimal": Q}[scheme]
        for members in product([False, True], repeat=n):
            chosen = np.array(members)
            yield np.prod(np.where(chosen, q, 1 - q)), chosen * P / q, chosen


def closed_forms(scheme):
    if scheme == "clustered":
        return clustered_statistics(R), clustered_participation(R)
    if scheme == "optimal":
        return optimal_statistics(P, Q), independent_participation(Q)
    return statistics(scheme, P, M), participation(scheme, P, M)


@pytest.mark.parametrize(
    "scheme", ["full", "md", "uniform", "poisson", "binomial", "clustered", "optimal"]
)
def test_closed_forms_equal_enumeration(scheme):
    weight, omega, chosen = (np.array(part) for part in zip(*outcomes(scheme), strict=True))
    mean = weight @ omega
    covariance = (weight[:, None] * (omega - mean)).T @ (omega - mean)
    count = chosen.sum(axis=1)
    statistic, clients = closed_forms(scheme)
    np.testing.assert_allclose(statistic.variance, np.diag(covariance), atol=1e-15)
    assert statistic.variance_of_sum == pytest.approx(covariance.sum(), abs=1e-15)
    assert clients.mean == pytest.approx(weight @ count)
    assert clients.variance == pytest.approx(weight @ (count - weight @ count) ** 2, abs=1e-14)
    off = ~np.eye(len(P), dtype=bool)
    if scheme == "clustered":
        np.testing.assert_allclose(clustered_covariance(R), covariance, atol=1e-15)
        assert np.isnan(statistic.alpha)
    else:
        np.testing.assert_allclose(
            covariance[off], -statistic.alpha * np.outer(P, P)[off], atol=1e-15
        )


@given(st.lists(st.integers(1, 50), min_size=2, max_size=12), st.data())
def test_equation_22_recovers_alpha_from_the_other_two_columns(counts, data):
    p = np.array(counts) / sum(counts)
    m = data.draw(st.integers(1, len(p)))
    for scheme in ("full", "md", "uniform", "binomial"):
        row = statistics(scheme, p, m)
        assert pooled_alpha(row, p) == pytest.approx(row.alpha, abs=1e-12)


def test_inequality_60_fails_for_clients_that_share_no_distribution():
    p = R.mean(axis=0)
    assert clustered_covariance(R)[0, 3] == 0 > -p[0] * p[3] / M


def test_sums_of_md_and_uniform_are_equations_10_to_12():
    n, s = len(P), (P**2).sum()
    assert sums(statistics("md", P, M), P) == pytest.approx(((1 - s) / M, 1 / M))
    sigma = (n / M - 1) * s
    assert sums(statistics("uniform", P, M), P) == pytest.approx((sigma, sigma * n / (n - 1)))


def test_uniform_sampling_of_equal_clients_has_a_constant_sum():
    for n in (1, 3, 7, 49):
        assert statistics("uniform", np.full(n, 1 / n), 1).variance_of_sum == 0


def test_optimal_sampling_ignores_clients_that_never_report():
    row = optimal_statistics(np.array([0.5, 0.5]), np.array([0.0, 0.5]))
    np.testing.assert_allclose(row.variance, [0, 0.25])


@pytest.mark.parametrize(
    ("scheme", "p", "m", "message"),
    [
        ("unifrom", P, 2, "did you mean 'uniform'"),
        ("md", P * 1.001, 2, "sum to 1.001"),
        ("md", np.array([-0.5, 1.5]), 1, "non-negative"),
        ("md", np.array([]), 1, "one list"),
        ("md", P, 0, "from 1 to 4"),
        ("md", P, 5, "from 1 to 4"),
        ("md", P, 2.5, "m: 2.5 is invalid; must be an integer from 1 to 4"),
        ("poisson", P, 3, "use m <= 2"),
        ("poisson", np.array([0.5, 0.25, 0.25]), 3, "use m <= 2"),
    ],
)
def test_invalid_input_is_one_line_with_its_fix(scheme, p, m, message):
    for function in (statistics, participation):
        with pytest.raises(InputError, match=message):
            function(scheme, p, m)


def test_poisson_with_every_client_certain_survives_rounding():
    row = statistics("poisson", np.full(49, 1 / 49), 49)
    assert row.variance_of_sum == pytest.approx(0, abs=1e-15)
    assert (row.variance >= 0).all()
