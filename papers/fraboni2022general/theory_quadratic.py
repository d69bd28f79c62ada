"""Closed forms of the distance to the optimum on quadratic losses, for any sampler.

Client i has the loss ½ ‖θ − θ_i*‖², so its local work is a contraction towards θ_i*, and the
expected squared distance to the optimum depends only on Var[ω_i] and α
(:mod:`fedsampling.theory.weights`).  :mod:`papers.fraboni2022general.simulations` compares the
closed form with draws.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211), Lemma 1; the quadratic losses are those of its first
version (2021).
"""

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.theory.weights import Statistics


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
