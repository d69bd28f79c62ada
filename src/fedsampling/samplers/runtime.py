"""Samplers that minimise an estimated runtime from gradient norms: Luo et al., ApproxOptSampling.

Both minimise, over the distribution q of k draws with replacement,

    (expected seconds of a round) × (Σ_i (p_i G_i)² / q_i + c).

The second factor is proportional to the number of rounds: G_i bounds client i's gradient, and c is
the part that does not depend on q, relative to the variance of sampling.  The samplers differ in
the first factor: Luo et al. use Σ_i q_i τ_i, the mean of one draw; ApproxOptSampling uses the
expected maximum of the k draws.  Each draw has weight p_i / (q_i k), which is unbiased.

References
----------
Luo, Xiao, Wang, Huang, Tassiulas: Tackling System and Statistical Heterogeneity for Federated
Learning with Adaptive Client Sampling. INFOCOM 2022 (arXiv 2112.11256).
Chen, Zhou, Zhang, Sun, Poor: Client Selection for Wireless Federated Learning with Data and Latency
Heterogeneity. IEEE Internet of Things Journal 2024.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import NotNegative, Positive, hashed_if_set
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Duplicates, Setup, Slots, View
from fedsampling.samplers.simplex import descend, expected_delay, expected_delay_gradient

MIN_PROBABILITY = 1e-7  # as in Luo et al.'s code
SLSQP_ITERATIONS = 100  # maximum for SLSQP, which needs fewer
TRUST_CONSTR_ITERATIONS = 1000  # maximum for trust-constr: SciPy's default
GRID_SPACING = 1e-4  # of the last grid of log y; the objective is flat at its minimum


def runtime_objective(delays: Array, scores: Array, c: float, q: Array, k: int = 1) -> float:
    """Compute E[max_{i∈S} τ_i] (Σ_i (p_i G_i)²/q_i + c) for S of k draws from q.

    Parameters
    ----------
    delays : float array, shape (n,)
        τ, seconds.
    scores : float array, shape (n,)
        p_i G_i.
    c : float
        Luo et al.'s c_0 = β k / α.
    q : float array, shape (n,)
        Probability of each client.
    k : int
        Number of draws; k = 1 gives Luo et al.'s objective.
    """
    rounds = float((scores**2 / q).sum()) + c
    return expected_delay(delays, q, k) * rounds


def luo_probabilities(delays: Array, scores: Array, c: float) -> Array:
    """Minimise (Σ q_i τ_i) (Σ (p_i G_i)²/q_i + c) over distributions q.

    Parameters
    ----------
    delays, scores : float arrays, shape (n,)
        As in :func:`runtime_objective`.
    c : float
        Non-negative.

    Returns
    -------
    q : float array, shape (n,)
        At least 1e-7, sums to one.

    Notes
    -----
    At a stationary point q_i = p_i G_i / √(y τ_i + ν), where y is the ratio of the second factor to
    the first, and ν normalises q.  The objective is minimised along this curve by a grid search
    over y.  The authors' code runs SQP from the uniform distribution instead.

    References
    ----------
    Luo et al. 2022, problem P3 with constants as in their public code.
    """
    scores = _nonzero(scores)
    tau, a = delays / delays.mean(), scores / scores.sum()
    scaled_c = c / scores.sum() ** 2

    grid = np.linspace(-14, 14, 57) + np.log1p(scaled_c)
    while True:
        q = _at_least_minimum(_curve(tau, a, np.exp(grid)))
        best = int(((q @ tau) * ((a**2 / q).sum(axis=1) + scaled_c)).argmin())
        if grid[1] - grid[0] < GRID_SPACING:
            optimum: Array = q[best]
            return optimum
        grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 21)


def approximately_optimal(
    delays: Array,
    scores: Array,
    c: float,
    k: int,
    iterations: int = SLSQP_ITERATIONS,
    solver: str = "slsqp",
    jacobian: str = "exact",
) -> Array:
    """Minimise E[max_{i∈S} τ_i] (Σ (p_i G_i)²/q_i + c) over distributions q of k draws.

    The equations of Chen et al. 2024 are not public.  This follows their description in
    harshvardhan2025latency: the method builds on Luo et al., minimises an estimated runtime, knows
    clients only by bounds G_i of their gradient norms, needs a constant that depends on the
    distance to the optimum (the argument `c`, which that paper tunes by random search), and
    computes q in every round.  The delay is that of the slowest of the k draws; with Luo et al.'s
    approximation by one draw the two methods would be the same.

    Parameters
    ----------
    delays, scores, c, k
        As in :func:`runtime_objective`.
    iterations : int
        Maximum number of iterations.
    solver : {"slsqp", "trust-constr"}
        ``trust-constr`` starts from the uniform distribution, as in Harshvardhan et al. 2025,
        section 7.1.  ``slsqp`` takes the better of two local minima, starting from Luo et al.'s
        solution and from the uniform distribution.
    jacobian : {"exact", "2-point"}
        For ``trust-constr``: the exact gradient, or finite differences, SciPy's default.

    Returns
    -------
    q : float array, shape (n,)
        At least 1e-7, sums to one.
    """
    scores = _nonzero(scores)
    tau, a = delays / delays.max(), scores / scores.sum()
    scaled_c = c / float(scores.sum()) ** 2
    unit = 1 + scaled_c  # lower bound of the second factor: scales the objective to about one

    def value(q: Array) -> float:
        return runtime_objective(tau, a, scaled_c, np.maximum(q, MIN_PROBABILITY), k) / unit

    def gradient(q: Array) -> Array:
        q = np.maximum(q, MIN_PROBABILITY)
        rounds = float((a**2 / q).sum()) + scaled_c
        slope: Array = expected_delay_gradient(tau, q, k) * rounds
        slope = (slope - expected_delay(tau, q, k) * a**2 / q**2) / unit
        return slope

    uniform = np.full(len(tau), 1 / len(tau))
    if solver == "trust-constr":
        derivative = gradient if jacobian == "exact" else None
        q = descend(value, derivative, uniform, iterations, min_probability=MIN_PROBABILITY)
        return _at_least_minimum(q)
    starts = [luo_probabilities(delays, scores, c), uniform]
    minima = [
        _at_least_minimum(descend(value, gradient, q, iterations, "SLSQP", MIN_PROBABILITY))
        for q in starts
    ]
    return min([*minima, *starts], key=value)


@dataclass
class RuntimeState:
    """G_i, bounds of the gradient norms, and the round's distribution q, both (runs, n)."""

    norms: Array
    q: Array


class RuntimeScheme(Scheme):
    """m draws with replacement from the distribution with the shortest estimated runtime."""

    m: Positive = Field(description="K: number of draws")
    c: NotNegative
    duplicates: Duplicates = "independently"

    needs = frozenset({"delays", "gradients"})

    def initial_state(self, setup: Setup) -> RuntimeState:
        """Start from norms of zero."""
        shape = (setup.runs, len(setup.p))
        return RuntimeState(np.zeros(shape), np.zeros(shape))

    def begin(self, state: RuntimeState, view: View, rng: Draws) -> RuntimeState:
        """Compute each run's distribution from the last gradients."""
        norms = np.linalg.norm(view.observed["gradients"], axis=-1).astype(np.float64)
        # A diverged run has no norms: its distribution follows from importances and delays.
        norms = self._bounds(state.norms, np.where(np.isfinite(norms), norms, 1.0))
        q = self._distributions(view.observed["delays"], view.p * norms, rng)
        return RuntimeState(norms, q)

    def select(self, state: RuntimeState, view: View, rng: Draws) -> Slots:
        """Draw m clients in each run from its distribution."""
        u = rng.uniforms("clients", self.m)
        clients = [invert(q, u_run) for q, u_run in zip(state.q, u, strict=True)]
        return Slots.drawn(np.stack(clients), self.duplicates)

    def weigh(self, state: RuntimeState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i / (q_i m) for each draw."""
        q = state.q[slots.run, slots.client]
        return view.p[slots.client] / q * slots.times / self.m

    def _distributions(self, delays: Array, scores: Array, rng: Draws) -> Array:
        """Compute q of each run, shape (runs, n), from the scores p_i G_i."""
        return np.stack([self._probabilities(delays, run_scores) for run_scores in scores])

    def _bounds(self, before: Array, norms: Array) -> Array:
        """Return G_i, shape (runs, n), from the norms of the last gradients: by default these."""
        return norms

    def _probabilities(self, delays: Array, scores: Array) -> Array:
        raise NotImplementedError


class ApproxOpt(
    RuntimeScheme,
    name="approx_opt",
    title="Approximately optimal sampling (ApproxOptSampling)",
    short="ApproxOptSampling",
):
    """m draws with replacement, from gradient norms and the expected maximum delay.

    G_i is the norm of the gradient that client i sent last.  `c` is relative to the norms, because
    these change from round to round.

    The solver needs n³ operations.  With `candidates` it computes the distribution over a random
    set of c clients, all sets equally likely.  The weights are then multiplied by n/c, the inverse
    of a client's probability of being in the set, so that they stay unbiased.
    """

    c: NotNegative = Field(
        default=1.0, description="constant of the runtime, in units of (Σ p_i G_i)²"
    )
    solver: Literal["slsqp", "trust-constr"] = hashed_if_set(
        "slsqp",
        description="from two starts, or from the uniform one as in harshvardhan2025latency",
    )
    solver_iterations: Positive = hashed_if_set(
        TRUST_CONSTR_ITERATIONS,
        description="maximum for trust-constr",
    )
    candidates: Positive | None = hashed_if_set(
        None,
        description="size of the random set of clients that a round selects from; null: all",
    )

    grid = {"c": (0.01, 100.0, "log")}

    def weigh(self, state: RuntimeState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i / (q_i m) for each draw, divided by the probability of being a candidate."""
        n = len(view.p)
        return super().weigh(state, slots, view, rng) * n / min(self.candidates or n, n)

    def _distributions(self, delays: Array, scores: Array, rng: Draws) -> Array:
        if self.candidates is None:
            return super()._distributions(delays, scores, rng)
        q = np.zeros(scores.shape)
        for run, generator in enumerate(rng.generators("candidates")):
            size = min(self.candidates, len(delays))
            candidates = generator.choice(len(delays), size, replace=False, shuffle=False)
            candidates.sort()
            q[run, candidates] = self._probabilities(delays[candidates], scores[run, candidates])
        return q

    def _probabilities(self, delays: Array, scores: Array) -> Array:
        c = self.c * scores.sum() ** 2
        iterations = self.solver_iterations if self.solver == "trust-constr" else SLSQP_ITERATIONS
        return approximately_optimal(delays, scores, c, self.m, iterations, self.solver)


class Luo(
    RuntimeScheme,
    name="luo2022",
    title="Adaptive client sampling (Luo et al. 2022)",
    short="Luo et al.",
):
    """m draws with replacement, from gradient norms and the mean delay.

    G_i is the largest norm of client i's gradients so far.  The authors estimate c_0 from two pilot
    runs that reach the same loss, in r_1 rounds with q = p and in r_2 rounds with uniform q:
    c_0 = (r_1 N − r_2 M) / (r_2 − r_1), where M = Σ p_i G_i² and N = n Σ p_i² G_i².  (They divide
    by K once more, which gives β/α.)  If all clients are equally important, both runs are the same
    and N = M, so that c_0 = −M is invalid.  Here `c` is a setting.
    """

    c: NotNegative = Field(description="c_0, as estimated from pilot runs")

    grid = {"c": (0.01, 100.0, "log")}

    def _bounds(self, before: Array, norms: Array) -> Array:
        return np.maximum(before, norms)

    def _probabilities(self, delays: Array, scores: Array) -> Array:
        return luo_probabilities(delays, scores, self.c)


def _curve(tau: Array, a: Array, y: Array) -> Array:
    """Compute q_i = a_i/√(y τ_i + ν), with ν such that q sums to one, for each y; (values, n)."""
    base = y[:, None] * (tau - tau[a > 0].min())
    # Bisection for x = ν + y min τ > 0: Σ q ≥ 1 at x = max a² (fastest client), ≤ 1 at (Σ a)².
    low = np.full(len(y), 1e-18)
    high = np.full(len(y), a.sum() ** 2)
    for _ in range(45):
        middle = np.sqrt(low * high)
        above_one = (a / np.sqrt(np.maximum(base + middle[:, None], 1e-300))).sum(axis=1) > 1
        low, high = np.where(above_one, middle, low), np.where(above_one, high, middle)
    q: Array = a / np.sqrt(np.maximum(base + high[:, None], 1e-300))
    q /= q.sum(axis=1, keepdims=True)
    return q


def _at_least_minimum(q: Array) -> Array:
    q = np.maximum(q, MIN_PROBABILITY)
    share: Array = q / q.sum(axis=-1, keepdims=True)
    return share


def _nonzero(scores: Array) -> Array:
    """Return equal scores if all are zero, that is, if no client has a gradient."""
    return scores if scores.any() else np.ones(len(scores))
