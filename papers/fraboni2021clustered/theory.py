"""Closed forms for any m distributions r; MD sampling is the case of m rows equal to p.

References: Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved
Representativity for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883),
section 3.2.
"""

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.theory.weights import check_population


def md_distributions(p: Array, m: int) -> Array:
    """Return the m equal distributions of MD sampling, shape (m, n)."""
    return np.tile(check_population(p, m), (m, 1))


def variance(r: Array) -> Array:
    """Return Var[ω_i] = (1/m²) Σ_k r_ki (1 − r_ki), eqs. (13) to (16), shape (m, n) → (n,)."""
    spread: Array = (r * (1 - r)).sum(0) / len(r) ** 2
    return spread


def inclusion(r: Array) -> Array:
    """Return P(i ∈ S) = 1 − Π_k (1 − r_ki), eqs. (18) to (22), shape (m, n) → (n,)."""
    drawn: Array = 1 - np.prod(1 - r, axis=0)
    return drawn


def most_draws(r: Array) -> Ints:
    """Count the distributions that can draw each client, shape (m, n) → (n,)."""
    count: Ints = (r > 0).sum(0, dtype=np.int64)
    return count
