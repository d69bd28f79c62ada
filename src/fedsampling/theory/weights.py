"""Closed forms of the moments of the aggregation weights ω_i.

A sampler enters Theorem 1 only through Var[ω_i] and the covariance parameter α, with
Cov[ω_i, ω_j] = −α p_i p_j for i ≠ j (Assumption 1).  :func:`statistics` returns both for samplers
that depend only on p and m; Clustered sampling is described by its distributions r, Optimal
sampling by its probabilities q.  :func:`participation` returns the moments of the number of
selected clients, N = Σ_i 𝕀(i ∈ S), from the probabilities that one or two given clients are missed.
:mod:`fedsampling.experiments.simulations.weights` compares all of them with Monte Carlo estimates.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211).
"""

from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError, nearest

PER_CLIENT = ("mean", "variance")  # statistics with a value for each client


class Statistics(NamedTuple):
    """One row of the paper's Table 1.

    Parameters
    ----------
    variance : float array, shape (n,)
        Var[ω_i].
    alpha : float
        Covariance parameter α; NaN if no single α exists (Clustered sampling).
    variance_of_sum : float
        Var[Σ_i ω_i].
    """

    variance: Array
    alpha: float
    variance_of_sum: float


class ClientsInRound(NamedTuple):
    """E[N] and Var[N] of the number N of distinct clients selected in a round."""

    mean: float
    variance: float


ClosedForms = tuple[Callable[[Array, int], Statistics], Callable[[Array, int], ClientsInRound]]


def statistics(scheme: str, p: Array, m: int) -> Statistics:
    """Return Var[ω_i], α and Var[Σ ω_i] of a scheme that depends only on p and m.

    Parameters
    ----------
    scheme : {"full", "md", "uniform", "poisson", "binomial"}
    p : float array, shape (n,)
        Importance of each client; non-negative, sums to one.
    m : int
        Number of sampled clients, 1 ≤ m ≤ n; "full" ignores its value.

    Returns
    -------
    Statistics
        A tuple ``variance, alpha, variance_of_sum``.

    Raises
    ------
    InputError
        If the scheme is unknown, p or m is invalid, or m p_i > 1 under "poisson".

    References
    ----------
    Table 1 and Appendix A.2 (full), A.3 (MD), A.4 (Uniform), A.5 (Poisson), A.6 (Binomial).
    """
    return _closed_forms(scheme)[0](check_population(p, m), m)


def participation(scheme: str, p: Array, m: int) -> ClientsInRound:
    """Return E[N] and Var[N]; arguments and errors as in :func:`statistics`.

    References
    ----------
    Eqs. (31), (48), (53).  The paper has E[N] of MD sampling but not Var[N], which is computed as
    :func:`clustered_participation` with m equal rows.
    """
    return _closed_forms(scheme)[1](check_population(p, m), m)


def clustered_statistics(r: Array) -> Statistics:
    """Return Var[ω_i] and Var[Σ ω_i] of Clustered sampling; a single α does not exist.

    Parameters
    ----------
    r : float array, shape (m, n)
        r[k, i] is the probability that draw k selects client i; rows sum to one.

    References
    ----------
    Eqs. (59), (61).  :func:`clustered_covariance` returns all covariances, in place of α.
    """
    return Statistics(np.diag(clustered_covariance(r)).copy(), float("nan"), 0.0)


def clustered_participation(r: Array) -> ClientsInRound:
    """Return E[N] and Var[N] for independent draws k = 1, …, m with distributions r[k].

    Parameters
    ----------
    r : float array, shape (m, n)

    Notes
    -----
    By inclusion and exclusion over missed clients: with a_i = P(i ∉ S) = Π_k (1 − r_ki) and
    a_ij = P(i, j ∉ S) = Π_k (1 − r_ki − r_kj),

        E[N] = n − Σ_i a_i,    Var[N] = Σ_i a_i (1 − a_i) + Σ_{i≠j} (a_ij − a_i a_j).

    Rows equal to p give MD sampling: a_i = (1 − p_i)^m, which is eq. (31).

    References
    ----------
    The occupancy problem: Feller, An Introduction to Probability Theory and Its Applications,
    vol. 1, section IV.2; eqs. (21), (22) of Fraboni et al. 2021 for P(i ∈ S).
    """
    n = r.shape[1]
    missed = np.prod(1 - r, axis=0)
    both_missed = np.ones((n, n))
    for row in r:
        # 1 − r_ki − r_kj is a probability for i ≠ j; rounding must not make it negative.
        both_missed *= np.maximum(1 - row[:, None] - row[None, :], 0)
    np.fill_diagonal(both_missed, missed)
    return ClientsInRound(
        float(n - missed.sum()), max(float((both_missed - np.outer(missed, missed)).sum()), 0.0)
    )


def clustered_covariance(r: Array) -> Array:
    """Return the matrix Cov[ω_i, ω_j] of Clustered sampling from r, shape (m, n) → (n, n).

    References
    ----------
    Eqs. (59), (60), without the inequality of (60): since Var[Σ ω_i] = 0 both here and under MD,
    lower variances (59) force the covariances to be *larger* than MD's in sum.
    """
    m = len(r)
    return (np.diag(r.sum(axis=0)) - r.T @ r) / m**2


def optimal_statistics(p: Array, q: Array) -> Statistics:
    """Return Var[ω_i], α = 0 and Var[Σ ω_i] of independent sampling with probabilities q.

    Parameters
    ----------
    p, q : float arrays, shape (n,)
        Importance and sampling probability of each client.  A client with q_i = 0 never reports;
        its weight is 0 without variance, and the weights are then biased.

    References
    ----------
    Eqs. (63)–(65).
    """
    variance = np.divide(p**2 * (1 - q), q, out=np.zeros_like(p), where=q > 0)
    return Statistics(variance, 0.0, float(variance.sum()))


def independent_participation(q: Array) -> ClientsInRound:
    """Return E[N] and Var[N] if client i participates with probability q[i], independently.

    References
    ----------
    Eq. (66); special cases are eqs. (48) with q = m p and (53) with q = m/n.
    """
    return ClientsInRound(float(q.sum()), float((q * (1 - q)).sum()))


def pooled_alpha(row: Statistics, p: Array) -> float:
    """Return the average of α over all pairs of clients; if a single α exists, the result is α.

    References
    ----------
    Eq. (22).
    """
    return float((row.variance.sum() - row.variance_of_sum) / (1 - (p**2).sum()))


def sums(row: Statistics, p: Array) -> tuple[float, float]:
    """Return Σ and γ, through which sampling enters the bound of Theorem 1.

    References
    ----------
    Eqs. (8), (9).
    """
    sigma = float(row.variance.sum())
    return sigma, sigma + row.alpha * float((p**2).sum())


def check_population(p: Array, m: int) -> Array:
    """Return p as floats; it must be a distribution over clients (to 1e-9), and m in 1..n."""
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 1 or not p.size or not np.isfinite(p).all() or (p < 0).any():
        raise InputError(
            "p: must be one list of non-negative numbers; "
            "divide the clients' sample counts by their total"
        )
    if abs(p.sum() - 1) > 1e-9:
        raise InputError(f"p: importances sum to {p.sum():.12g}, not 1; divide them by their sum")
    if not isinstance(m, Integral) or not 1 <= m <= p.size:
        raise InputError(f"m: {m} is invalid; must be an integer from 1 to {p.size}")
    return p


def check_poisson(p: Array, m: int) -> Array:
    """Return the inclusion probabilities m p_i of Poisson sampling, which must not exceed one."""
    inclusion: Array = m * p
    if (inclusion > 1 + 1e-9).any():
        raise InputError(
            f"m: Poisson sampling needs m p_i <= 1, but the largest is {inclusion.max():.6g}; "
            f"use m <= {int(1 / p.max() * (1 + 1e-9))}"
        )
    return np.minimum(inclusion, 1.0)


def _closed_forms(scheme: str) -> ClosedForms:
    if scheme not in _SCHEMES:
        raise InputError(f"scheme: no closed form for {scheme!r}; {nearest(scheme, _SCHEMES)}")
    return _SCHEMES[scheme]


def _full(p: Array, m: int) -> Statistics:
    return Statistics(np.zeros_like(p), 0.0, 0.0)


def _md(p: Array, m: int) -> Statistics:
    """Eqs. (27), (29), (30)."""
    return Statistics(p * (1 - p) / m, 1 / m, 0.0)


def _uniform(p: Array, m: int) -> Statistics:
    """Eqs. (34), (42), (43); α = 0 for m = n, since then nothing is random."""
    n = p.size
    alpha = (n - m) / (m * (n - 1)) if m < n else 0.0
    # The bracket n Σ p_i² − 1, written so that equal importance makes it exactly zero.
    bracket = n * float(((p - 1 / n) ** 2).sum())
    return Statistics((n / m - 1) * p**2, alpha, alpha * bracket)


def _poisson(p: Array, m: int) -> Statistics:
    """Eqs. (45)–(47)."""
    variance = p * (1 - check_poisson(p, m)) / m
    return Statistics(variance, 0.0, float(variance.sum()))


def _binomial(p: Array, m: int) -> Statistics:
    """Eqs. (50)–(52)."""
    variance = (p.size - m) / m * p**2
    return Statistics(variance, 0.0, float(variance.sum()))


_SCHEMES: dict[str, ClosedForms] = {
    "full": (_full, lambda p, m: ClientsInRound(float(p.size), 0.0)),
    "md": (_md, lambda p, m: clustered_participation(np.tile(p, (m, 1)))),
    "uniform": (_uniform, lambda p, m: ClientsInRound(float(m), 0.0)),
    "poisson": (_poisson, lambda p, m: independent_participation(check_poisson(p, m))),
    "binomial": (_binomial, lambda p, m: independent_participation(np.full(p.size, m / p.size))),
}
