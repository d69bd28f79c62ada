"""Corollary 1: when Uniform sampling has better guarantees than MD sampling.

The bound of Theorem 1 grows with Σ and γ, so one scheme is better where both of its sums are
smaller.  :func:`margins` computes both sides of the claimed equivalence from the closed forms;
:func:`populations` draws importances to test it, many of them close to the boundary.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211), Corollary 1 and Appendix B.7.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.theory.weights import Statistics, check_population, statistics, sums


class Margins(NamedTuple):
    """The margin of each inequality of Corollary 1; the inequality holds if it is at least zero."""

    sigma: float  # Σ_MD − Σ_U
    gamma: float  # γ_MD − γ_U
    condition: float  # 1/(n − m + 1) − Σ_i p_i², eq. (13)


def margins(p: Array, m: int) -> Margins:
    """Evaluate both sides of Corollary 1, the sums from Table 1's closed forms.

    `p`, shape (n,).

    References: Corollary 1; Σ and γ by eqs. (8) and (9).
    """
    p = check_population(p, m)
    sigma_md, gamma_md = sums(statistics("md", p, m), p)
    sigma_u, gamma_u = sums(statistics("uniform", p, m), p)
    return Margins(
        sigma=sigma_md - sigma_u,
        gamma=gamma_md - gamma_u,
        condition=sigma_boundary(p.size, m) - float((p**2).sum()),
    )


def sigma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which Σ_U ≤ Σ_MD.

    References: Eqs. (13), (127). (127) and (129) print Σ_MD ≤ Σ_U and γ_MD ≤ γ_U on the left; by
    (126) and (128) it is the other way round.
    """
    return 1 / (n - m + 1)


def gamma_boundary(n: int, m: int) -> float:
    """Return the Σ p_i² up to which γ_U ≤ γ_MD; never below :func:`sigma_boundary`.

    References: Eqs. (129), (130).
    """
    return (n - 1) / (n * (n - m)) if m < n else float("inf")


def largest_importance(n: int, m: int) -> float:
    """Return the p_1 up to which Σ_U ≤ Σ_MD where the n − 1 other clients share the rest equally.

    It is the larger root of p_1² + (1 − p_1)²/(n − 1) = 1/(n − m + 1), eq. (13).
    """
    return float((1 + np.sqrt((n - 1) * (n * sigma_boundary(n, m) - 1))) / n)


def populations(n: int, m: int, count: int, rng: np.random.Generator) -> Iterator[Array]:
    """Draw `count` importances of n clients, every second one close to the boundary.

    Each lies on the line from equal importance to a random point of the simplex (or to a vertex,
    where that point is too close), at a Σ p_i² that is either anywhere or within a relative 10⁻⁶
    to 10⁻¹ of 1/(n − m + 1).

    Yields shape (n,).
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


# Closed forms of the distance to the optimum on quadratic losses, for any sampler.
#
# Client i has the loss ½ ‖θ − θ_i*‖², so its local work is a contraction towards θ_i*, and the
# expected squared distance to the optimum depends only on Var[ω_i] and α
# (:mod:`fedsampling.theory.weights`).  :mod:`papers.fraboni2022general.simulations` compares the
# closed form with draws.
#
# References: Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated
# Learning. IJCAI-FL workshop 2022 (arXiv 2107.12211), Lemma 1; the quadratic losses are those of
# its first version (2021).


def contraction(local_step: float, local_steps: int) -> float:
    """Return φ = 1 − (1 − η_l)^K: K gradient steps from θ end in θ + φ (θ_i* − θ)."""
    return 1 - (1 - local_step) ** local_steps


def expected_distances(
    minima: Array, start: Array, p: Array, row: Statistics, step: float, rounds: int
) -> Array:
    """Return E‖θ^t − θ*‖² for t = 0, …, rounds.

    `p`, shape (n,). `minima`, shape (n, d): the clients' minima θ_i*; the optimum is θ* = Σ p_i
    θ_i*. `start`, shape (d,): θ^0. `row`: of the weights ω; with an α (Assumption 1). `step`: η =
    η_g φ, the fraction of the distance from θ to a client's minimum that a round covers. Returns
    shape (rounds + 1,).

    With r = θ^t − θ* the round is r + Σ_i ω_i x_i, x_i = η (θ_i* − θ^t), and Σ_i p_i x_i = −η r.
    Lemma 1, E‖Σ ω_i x_i‖² = Σ γ_i ‖x_i‖² + (1 − α) ‖Σ p_i x_i‖² with γ_i = Var[ω_i] + α p_i²,
    gives

        E_t‖θ^{t+1} − θ*‖² = (1 − η)² ‖r‖² + η² (Σ_i γ_i ‖θ_i* − θ^t‖² − α ‖r‖²).

    Since E[r] shrinks by 1 − η in every round, expanding ‖θ_i* − θ^t‖² about θ* makes of it a
    recursion in E‖r‖² alone, with factor :func:`growth`.

    References: Eqs. (3), (70).
    """
    optimum = p @ minima
    offsets = minima - optimum
    gamma = row.variance + row.alpha * p**2
    weighted_squares = float(gamma @ (offsets**2).sum(axis=1))
    weighted_offset = gamma @ offsets
    first = start - optimum
    factor = growth(row, step)
    distances = np.empty(rounds + 1)
    distances[0] = first @ first
    for t in range(rounds):
        mean = (1 - step) ** t * first
        noise = step**2 * (weighted_squares - 2 * float(weighted_offset @ mean))
        distances[t + 1] = factor * distances[t] + noise
    return distances


def growth(row: Statistics, step: float) -> float:
    """Return the factor of E‖θ^t − θ*‖² in one round: (1 − η)² + η² Var[Σ ω_i].

    Above one, the expected distance grows without bound however good the start.  Σ γ_i − α is
    Var[Σ ω_i] by Proposition 1, so that schemes whose weights sum to one always contract.

    References: Eqs. (15), (70).
    """
    return float((1 - step) ** 2 + step**2 * row.variance_of_sum)
