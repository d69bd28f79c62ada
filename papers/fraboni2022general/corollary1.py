"""Corollary 1 and Appendix B.7: when Uniform sampling has better guarantees than MD sampling.

The bound of Theorem 1 grows with Σ and γ, so one sampler is better where both of its sums are
smaller.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.theory.weights import check_population, statistics, sums


class Margins(NamedTuple):
    """The margin of each inequality of Corollary 1; the inequality holds if it is at least zero."""

    sigma: float  # Σ_MD − Σ_U
    gamma: float  # γ_MD − γ_U
    condition: float  # 1/(n − m + 1) − Σ_i p_i², eq. (13)


def margins(p: Array, m: int) -> Margins:
    """Evaluate both sides of Corollary 1; Σ and γ, eqs. (8) and (9), by Table 1's closed forms."""
    p = check_population(p, m)
    sigma_md, gamma_md = sums(statistics("md", p, m), p)
    sigma_u, gamma_u = sums(statistics("uniform", p, m), p)
    return Margins(
        sigma=sigma_md - sigma_u,
        gamma=gamma_md - gamma_u,
        condition=sigma_boundary(p.size, m) - float((p**2).sum()),
    )


def sigma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which Σ_U ≤ Σ_MD, eqs. (13) and (127).

    (127) and (129) print Σ_MD ≤ Σ_U and γ_MD ≤ γ_U; (126) and (128) imply the reverse.
    """
    return 1 / (n - m + 1)


def gamma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which γ_U ≤ γ_MD, eqs. (129) and (130); at least that of Σ."""
    return (n - 1) / (n * (n - m)) if m < n else float("inf")


def largest_importance(n: int, m: int) -> float:
    """Return the p_1 up to which Σ_U ≤ Σ_MD where the n − 1 other clients share the rest equally.

    It is the larger root of p_1² + (1 − p_1)²/(n − 1) = 1/(n − m + 1), eq. (13).
    """
    return float((1 + np.sqrt((n - 1) * (n * sigma_boundary(n, m) - 1))) / n)


def importances(p_1: float, n: int) -> Array:
    """Return p_1 for the first client, and equal shares of the rest for the others."""
    return np.array([p_1, *[(1 - p_1) / (n - 1)] * (n - 1)])


def populations(n: int, m: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Draw `count` importances of n clients, every second one close to the boundary.

    Each lies on the line from equal importance to a random point of the simplex (or to a vertex,
    where that point is too close), at a Σ p_i² that is either anywhere or within a relative 10⁻⁶
    to 10⁻¹ of 1/(n − m + 1).
    """
    equal = np.full(n, 1 / n)
    for index in range(count):
        target = rng.uniform(1 / n, 1)
        if index % 2:
            offset = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-6, -1)
            target = np.clip(sigma_boundary(n, m) * (1 + offset), 1 / n, 1)
        end = rng.dirichlet(np.full(n, 10 ** rng.uniform(-1, 1)))
        if (end**2).sum() < target:
            end = np.eye(n)[end.argmax()]
        # Σ p_i² − 1/n grows with the square of the distance, because the cross term sums to zero.
        fraction = np.sqrt((target - 1 / n) / ((end**2).sum() - 1 / n))
        yield equal + fraction * (end - equal)
