"""Closed forms of clustered sampling, for any m distributions r.

Adds to :mod:`fedsampling.theory.weights` quantities of fraboni2021clustered: whether r is unbiased
(Proposition 1), the variance of a client's weight, and the probability that the client is drawn.
MD sampling is the case of m rows equal to p.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883), section 3.2.
"""

import math

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.theory.weights import check_population


def md_distributions(p: Array, m: int) -> Array:
    """Return the m equal distributions of MD sampling, shape (m, n)."""
    return np.tile(check_population(p, m), (m, 1))


def variance(r: Array) -> Array:
    """Return Var[ω_i] = (1/m²) Σ_k r_ki (1 − r_ki), shape (m, n) → (n,).

    References: Eqs. (15), (16); eqs. (13), (14) for :func:`md_distributions`.
    """
    spread: Array = (r * (1 - r)).sum(0) / len(r) ** 2
    return spread


def inclusion(r: Array) -> Array:
    """Return P(i ∈ S) = 1 − Π_k (1 − r_ki), shape (m, n) → (n,).

    References: Eqs. (21), (22); eqs. (18) to (20) for :func:`md_distributions`.
    """
    drawn: Array = 1 - np.prod(1 - r, axis=0)
    return drawn


def most_draws(r: Array) -> Ints:
    """Count the distributions that can draw each client, shape (m, n) → (n,).

    References: Section 4: at most ⌊m p_i⌋ + 2 under Algorithm 1, and m under MD sampling.
    """
    count: Ints = (r > 0).sum(0, dtype=np.int64)
    return count


def all_distinct(p: Array, m: int) -> float:
    """Return the probability that m MD draws take m different clients: m! e_m(p).

    e_m is the elementary symmetric polynomial; for p_i = 1/n this is n!/((n − m)! n^m), section 6.
    """
    e = np.zeros(m + 1)  # of the clients so far: e_0, …, e_m
    e[0] = 1
    for p_i in check_population(p, m):
        e[1:] += p_i * e[:-1]
    return float(math.factorial(m) * e[m])
