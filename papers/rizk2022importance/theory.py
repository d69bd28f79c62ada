"""The exact mean-square deviation of FedAvg and ISFedAvg: quadratic loss, fixed probabilities.

The gradient of the loss (55) is affine in w, so a step, an agent's training and a round are random
affine maps.  In coordinates z = (w − w^o, 1) they are matrices of size D = M + 1, and those of
different rounds are independent: z_i = R_i z_{i−1} yields the linear recursion

    E[z_i ⊗ z_i] = E[R ⊗ R] E[z_{i−1} ⊗ z_{i−1}],

of second moments, first moments and the constant 1; for M = 2 its matrix is 9 × 9.  E[R ⊗ R]
follows from the inclusion probabilities of units and of pairs of units, without approximation:

- A step of agent k is T = I − μ_k G, where μ_k = μ/(K p_k), divided by E_k in equation (8), and
  G = Σ_b ω_b G_b sums its batch.  G_n = [[2 u uᵀ + 2ρ I, ∇Q_k(w^o; x_n)], [0, 0]] maps z to the
  gradient of sample n.
- Its training is a product of E_k independent steps, H_k: E[H_k] = E[T]^E_k and E[H_k ⊗ H_k] =
  E[T ⊗ T]^E_k.
- A round is R = (1/L) Σ_{k ∈ S} H_k.  Different agents train independently of each other.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, equations (7) to
(9), (55), (56), section IV-C.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.experiments.simulations.federated import (
    Federated,
    at_optimum,
    build_learner,
    build_sampler,
)
from fedsampling.learning.training.convex import ConvexLearner
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.importance import (
    UNIT,
    capped,
    progressive_totals,
    systematic_units,
)
from fedsampling.samplers.isfedavg import ISFedAvg


@dataclass(frozen=True)
class Recursion:
    """The recursion E[z_i ⊗ z_i] = `matrix` E[z_{i−1} ⊗ z_{i−1}] with z_i = (w_i − w^o, 1).

    `matrix`, shape (D², D²); `start`, shape (D²,): z_0 ⊗ z_0.
    """

    matrix: Array
    start: Array

    @property
    def growth(self) -> float:
        """The spectral radius of the map of second moments; there is a steady state if below 1."""
        size = round(np.sqrt(len(self.start)))
        blocks = self.matrix.reshape(size, size, size, size)
        second = blocks[:-1, :-1, :-1, :-1].reshape((size - 1) ** 2, (size - 1) ** 2)
        return float(np.abs(np.linalg.eigvals(second)).max())

    def course(self, rounds: int) -> Array:
        """Return E‖w_i − w^o‖², equation (56), for i = 0, …, `rounds`."""
        moments = [self.start]
        for _ in range(rounds):
            moments.append(self.matrix @ moments[-1])
        return _msd(np.stack(moments))

    def steady_msd(self) -> float:
        """Return the limit of :meth:`course`, its fixed point; infinite if there is none."""
        if self.growth >= 1:
            return np.inf
        inner, constant = self.matrix[:-1, :-1], self.matrix[:-1, -1]
        moments = np.linalg.solve(np.eye(len(inner)) - inner, constant)
        return float(_msd(np.append(moments, 1.0)))


def recursion(run: Federated) -> Recursion:
    """Derive the recursion of a training run from its data, its work and its probabilities.

    Parameters
    ----------
    run : Federated
        Settings of a run on generated data with the linear model, whose sampler is ``uniform`` or
        ``isfedavg`` with the ``optimal`` probabilities.

    Returns
    -------
    Recursion

    Raises
    ------
    InputError
        If the gradient is not affine, or if the probabilities change during the run.
    """
    problem = run.dataset.load("generated", run.problem_seed, Path(), None)
    learner = build_learner(run.model, run.work, problem, run.problem_seed)
    if not learner.model.quadratic:
        raise InputError("model.name: the recursion needs an affine gradient; use linear")
    optimum = at_optimum(learner.model, problem)
    K = problem.n_clients
    pairs: list[Array]  # E[ω_n ω_m] of the samples of each agent
    scheme = run.sampler
    if type(scheme) is Uniform:  # its subclasses have other weights
        L = scheme.m
        agents, step = without_replacement(K, L), np.full(K, run.work.step)
        pairs = [
            with_replacement(int(n), int(B)) / B**2
            for n, B in zip(problem.n_samples, learner.B, strict=True)
        ]
    elif isinstance(scheme, ISFedAvg) and scheme.probabilities == "optimal":
        L, state = scheme.m, build_sampler(scheme, learner, 1, optimum).state
        pi = capped(state.p_agents[0], L)
        agents, step = systematic(pi), run.work.step * L / (K * pi)
        of_data = capped(state.p_data, learner.B)
        pairs = [
            systematic(pi_k[:n]) / np.multiply.outer(n * pi_k[:n], n * pi_k[:n])
            for pi_k, n in zip(of_data, problem.n_samples, strict=True)
        ]
    else:
        raise InputError("sampler: the recursion needs fixed probabilities; use uniform or optimal")
    if run.work.correct:
        step = step / learner.E
    mean, square = _batches(learner, optimum["w"], pairs)
    single, double = _training(mean, square, step, learner.E)
    own = np.tensordot(np.diag(agents), double, 1)
    others = second_moment(single, agents - np.diag(np.diag(agents)))
    start = np.append(-optimum["w"], 1.0)
    return Recursion((own + others) / L**2, np.kron(start, start))


def systematic(pi: Array) -> Array:
    """Return the inclusion probabilities of pairs under Hartley and Rao's systematic sampling.

    It is drawn by :func:`fedsampling.samplers.importance.hartley_rao`.
    A systematic sample is a step function of its only variate d, constant between the fractional
    parts of the progressive totals.  Therefore at most n + 1 different samples occur, and the
    width of each interval is the probability of its sample.

    Parameters
    ----------
    pi : float array, shape (n,)
        Inclusion probabilities of single units, which sum to an integer.

    Returns
    -------
    float array, shape (n, n)
        π_kl; the diagonal is π_k.
    """
    totals = progressive_totals(pi)
    starts = np.unique(np.append(totals % UNIT, 0))
    probability = np.diff(starts, append=UNIT) / UNIT
    samples = systematic_units(totals[None], starts / UNIT).astype(np.float64)
    return samples.T @ (probability[:, None] * samples)


def without_replacement(n: int, size: int) -> Array:
    """Return the inclusion probabilities of pairs if all samples of `size` units are as likely."""
    pairs = np.full((n, n), size * (size - 1) / (n * max(n - 1, 1)))
    np.fill_diagonal(pairs, size / n)
    return pairs


def with_replacement(n: int, size: int) -> Array:
    """Return E[c_k c_l] if unit k is drawn c_k times in `size` draws with equal probabilities."""
    pairs = np.full((n, n), size * (size - 1) / n**2)
    pairs[np.diag_indices(n)] += size / n
    return pairs


def second_moment(maps: Array, pairs: Array) -> Array:
    """Return Σ_kl π_kl A_k ⊗ A_l, the second moment of a sum of maps over a random sample.

    `maps`, shape (n, D, D): A_k. `pairs`, shape (n, n): π_kl. Returns shape (D², D²).
    """
    n, D, _ = maps.shape
    flat = maps.reshape(n, D * D)
    products = (flat.T @ pairs @ flat).reshape(D, D, D, D)  # of A[i, j] and A[p, q]
    return products.transpose(0, 2, 1, 3).reshape(D * D, D * D)


def _batches(learner: ConvexLearner, optimum: Array, pairs: Sequence[Array]) -> tuple[Array, Array]:
    """Return E[G] and E[G ⊗ G] of a batch of each agent, shapes (K, D, D) and (K, D², D²).

    `pairs`: E[ω_n ω_m] of the weights of an agent's samples, whose means are 1/N_k.
    """
    model, data, M = learner.model, learner.data, len(optimum)
    u, z = data.x, data.x @ optimum
    G = np.zeros((len(u), M + 1, M + 1))
    curvature = model.curvature(z, data.y)[:, None, None]
    G[:, :M, :M] = curvature * u[:, :, None] * u[:, None, :] + 2 * model.rho * np.eye(M)
    G[:, :M, M] = model.slope(z, data.y)[:, None] * u + 2 * model.rho * optimum
    agents = np.split(G, data.start[1:-1])
    square = [second_moment(G_k, of_k) for G_k, of_k in zip(agents, pairs, strict=True)]
    return np.stack([G_k.mean(0) for G_k in agents]), np.stack(square)


def _training(mean: Array, square: Array, step: Array, E: Ints) -> tuple[Array, Array]:
    """Return E[H_k] and E[H_k ⊗ H_k] of all agents, from :func:`_batches` and μ_k."""
    D = mean.shape[-1]
    identity, mu = np.eye(D), step[:, None, None]
    linear = _products(identity, mean) + _products(mean, identity)
    single, double = identity - mu * mean, np.eye(D * D) - mu * linear + mu**2 * square
    for epochs in np.unique(E):
        trained = epochs == E
        for maps in (single, double):
            maps[trained] = np.linalg.matrix_power(maps[trained], epochs)
    return single, double


def _products(left: Array, right: Array) -> Array:
    """Return the Kronecker products of matrices, or of stacks of them."""
    both = np.einsum("...ij,...pq->...ipjq", left, right)
    D = left.shape[-1]
    products: Array = both.reshape(*both.shape[:-4], D * D, D * D)
    return products


def _msd(moments: Array) -> Array:
    """Return the trace of E[(w − w^o)(w − w^o)ᵀ], a block of E[z ⊗ z], shape (..., D²)."""
    size = round(np.sqrt(moments.shape[-1]))
    blocks = moments.reshape(*moments.shape[:-1], size, size)
    return np.asarray(np.einsum("...mm->...", blocks[..., :-1, :-1]))
