"""DSGD with optimal client sampling on strongly convex quadratics, to test Theorem 2.

Client i has f_i(x) = ½ (x − c_i)ᵀ A_i (x − c_i) and sends stochastic gradients whose noise has
exactly the variance that Assumption 1 allows.  All constants of the theorem are therefore known,
and only its inequalities are tested.  Expectations over x^k are means over many parallel runs.

References
----------
Chen, Horváth, Richtárik: Optimal Client Sampling for Federated Learning. TMLR 2022
(arXiv 2010.13723), eqs. (2), (12), (13) and Theorem 2.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array
from fedsampling.base.records import NotNegative, Positive, PositiveFloat, Range, Share, Strict
from fedsampling.base.streams import stream
from fedsampling.experiments.simulations.simulation import (
    Progress,
    Seed,
    Simulation,
    at_most_all,
    tidy,
)
from fedsampling.samplers.optimal import approximate_probabilities, probabilities
from fedsampling.theory.improvement import improvement_factor, sampling_variance

from .theory import Constants, bound, constants, step_limit

if TYPE_CHECKING:
    import pandas as pd


VERSIONS = {"printed": False, "corrected": True}  # of β, in the names of metrics


class ReportScheme(Strict):
    """Reports of all clients, of each with probability m/n, or by equation (6)."""

    name: Literal["full", "uniform", "optimal"]


class ApproximateScheme(Strict):
    """Reports by AOCS, Algorithm 2."""

    name: Literal["approximate"]
    j_max: Annotated[int, Field(ge=0)] = Field(description="most exchanges")


class Dsgd(Simulation, name="dsgd"):
    """DSGD on strongly convex quadratics, with independent reporting."""

    step_seconds: ClassVar[float] = 0.02

    clients: Annotated[int, Field(ge=2)]
    m: Positive = Field(description="expected reports")
    dimension: Positive
    spread: NotNegative = Field(description="standard deviation of ln w_i before normalising")
    eigenvalues: Range = Field(description="range of those of the Hessians of f_i")
    minima: tuple[PositiveFloat, NotNegative] = Field(
        description="of the minima's distances from zero: median, standard deviation of logarithm"
    )
    relative: NotNegative = Field(description="M of Assumption 1")
    noise: NotNegative = Field(description="σ² of Assumption 1")
    start: PositiveFloat = Field(description="‖x^0 − x*‖")
    direction: Literal["random", "steepest"] = Field(
        "random", description="of the start from x*; steepest: where Σ w_i² f_i rises fastest"
    )
    step: Share = Field(description="share of Theorem 2's limit")
    gamma: Literal["least", "own"] = Field(
        "least", description="γ^k in that limit: m/n, or the scheme's own"
    )
    rounds: Positive
    every: Positive = Field(1, description="rounds between measurements")
    draws: Annotated[int, Field(ge=2)] = Field(description="independent runs")
    problem_seed: Seed = Field(0, description="of the problem and the start")
    sampler: Annotated[ReportScheme | ApproximateScheme, Field(discriminator="name")]

    @model_validator(mode="after")
    def _consistent(self) -> "Dsgd":
        at_most_all(self.m, self.clients)
        return self

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Run DSGD with one sampler.

        Returns per measured round k, over the runs: ``distance`` (mean of ‖x^k − x*‖²) and
        ``distance_se``; ``step`` (η^k); ``batch`` (expected reports) and ``batch_low``, the least;
        ``alpha`` and ``gamma`` of eq. (12), expectations being means over the runs, and ``…_low``,
        ``…_high``, the extremes of single runs, conditional on updates; ``gap``, the largest
        difference of a probability from eq. (6)'s; ``bias``, the largest |z| over coordinates of
        the mean of G^k − Σ w_i U_i.  For β as ``printed`` and as ``corrected``: ``excess/<β>`` =
        E‖r^{k+1}‖² minus eq. (13)'s bound, ``excess_se/<β>``, and ``envelope/<β>``, the bound
        unrolled from x^0.  For the whole run: ``mu``, ``L``, ``beta1/<β>``, ``beta2/<β>``.
        """
        return _run(self, seed, progress)


@dataclass(frozen=True)
class Problem:
    """A strongly convex quadratic over clients, with Hessians A_i and minima c_i.

    `optimum`, `start`: x* and x^0. `convexity`, `smoothness`: μ of f, and the largest L of the f_i.
    """

    w: Array
    hessians: Array
    minima: Array
    optimum: Array
    start: Array
    convexity: float
    smoothness: float

    def gradients(self, x: Array) -> Array:
        """Return ∇f_i(x) of some points, shape (points, d) → (points, n, d)."""
        n, d = self.minima.shape
        flat = self.hessians.transpose(1, 0, 2).reshape(d, n * d)
        centre: Array = np.einsum("nij,nj->ni", self.hessians, self.minima)
        return (x @ flat).reshape(len(x), n, d) - centre

    @property
    def mismatch(self) -> Array:
        """R_i = f_i(x*) − f_i*, shape (n,), eq. (11)."""
        offsets = self.optimum - self.minima
        return np.asarray(np.einsum("ni,nij,nj->n", offsets, self.hessians, offsets) / 2)


class _Round(NamedTuple):
    """The state of a round before reports: updates (runs, n, d), norms and q (runs, n)."""

    updates: Array
    norms: Array
    q: Array


def problem(s: Dsgd) -> Problem:
    """Draw weights, Hessians, minima and start."""
    n, d = s.clients, s.dimension
    rng = stream(s.problem_seed, "dsgd problem")
    w = np.exp(s.spread * rng.standard_normal(n))
    w /= w.sum()
    values = rng.uniform(*s.eigenvalues, (n, d))
    bases = np.linalg.qr(rng.standard_normal((n, d, d)))[0]
    hessians = np.einsum("nij,nj,nkj->nik", bases, values, bases)
    away = s.minima[0] * np.exp(s.minima[1] * rng.standard_normal(n))
    minima = away[:, None] * _unit(rng.standard_normal((n, d)))
    pooled = np.einsum("n,nij->ij", w, hessians)
    optimum = np.linalg.solve(pooled, np.einsum("n,nij,nj->i", w, hessians, minima))
    direction = rng.standard_normal(d)
    if s.direction == "steepest":
        slopes = np.einsum("nij,nj->ni", hessians, optimum - minima)
        direction = w**2 @ slopes
    start = optimum + s.start * _unit(direction)
    smallest = float(np.linalg.eigvalsh(pooled)[0])
    return Problem(w, hessians, minima, optimum, start, smallest, float(values.max()))


def _run(s: Dsgd, seed: int, progress: Progress) -> "pd.DataFrame":
    quadratic = problem(s)
    betas = {
        name: constants(
            quadratic.w, quadratic.mismatch, quadratic.smoothness, s.relative, s.noise, corrected
        )
        for name, corrected in VERSIONS.items()
    }
    envelope = dict.fromkeys(VERSIONS, s.start**2)
    x = np.tile(quadratic.start, (s.draws, 1))
    at, rows = [], []
    for k in range(s.rounds):
        current = _before(s, quadratic, x, stream(seed, "dsgd noise", k))
        ours = sampling_variance(current.norms, current.q)
        uniform = sampling_variance(current.norms, np.full(s.clients, s.m / s.clients))
        alpha, gamma = map(float, _factors(ours.mean(), uniform.mean(), s))
        assumed_gamma = s.m / s.clients if s.gamma == "least" else gamma
        eta = s.step * step_limit(assumed_gamma, quadratic.w, quadratic.smoothness, s.relative)
        drawn = stream(seed, "dsgd reports", k).random(current.q.shape) < current.q
        # eq. (2): a report has the weight w_i / q_i
        omega = np.divide(quadratic.w, current.q, out=np.zeros_like(current.q), where=drawn)
        estimate = np.einsum("rn,rnd->rd", omega, current.updates)
        after = x - eta * estimate
        if k % s.every == 0:
            row = {"alpha": alpha, "gamma": gamma, "step": eta}
            row |= _reports(s, current)
            for name, values in zip(("alpha", "gamma"), _factors(ours, uniform, s), strict=True):
                row |= {f"{name}_low": float(values.min()), f"{name}_high": float(values.max())}
            row["bias"] = _bias(quadratic.w, current, estimate)
            row |= _recursion(quadratic, x, after, eta, gamma, betas, _slack(ours, uniform, s))
            row |= {f"envelope/{name}": value for name, value in envelope.items()}
            at.append(k)
            rows.append(row)
        envelope = {
            name: bound(value, eta, gamma, quadratic.convexity, betas[name])
            for name, value in envelope.items()
        }
        x = after
        progress(k)
    columns = {name: (np.array(at), np.array([row[name] for row in rows])) for name in rows[0]}
    run_constants = {"mu": quadratic.convexity, "L": quadratic.smoothness}
    for name, (beta1, beta2) in betas.items():
        run_constants |= {f"beta1/{name}": beta1, f"beta2/{name}": beta2}
    columns |= {name: (np.array([-1]), np.array([value])) for name, value in run_constants.items()}
    return tidy(columns)


def _before(s: Dsgd, quadratic: Problem, x: Array, rng: np.random.Generator) -> _Round:
    updates = quadratic.gradients(x)
    variance = s.relative * (updates**2).sum(axis=2) + s.noise
    noise = rng.standard_normal(updates.shape)
    updates = updates + np.sqrt(variance / s.dimension)[:, :, None] * noise
    norms = quadratic.w * np.linalg.norm(updates, axis=2)
    return _Round(updates, norms, _probabilities(s, norms))


def _probabilities(s: Dsgd, norms: Array) -> Array:
    if isinstance(s.sampler, ApproximateScheme):
        j_max = s.sampler.j_max
        return np.array([approximate_probabilities(row, s.m, j_max) for row in norms])
    if s.sampler.name == "optimal":
        return np.array([probabilities(row, s.m) for row in norms])
    return np.full(norms.shape, 1.0 if s.sampler.name == "full" else s.m / s.clients)


def _factors(ours: Array, uniform: Array, s: Dsgd) -> tuple[Array, Array]:
    """Return α^k and γ^k, eq. (12), of variances or of their means."""
    alpha = np.divide(ours, uniform, out=np.zeros_like(ours), where=uniform > 0)
    return alpha, np.asarray(improvement_factor(alpha, s.clients, s.m))


def _slack(ours: Array, uniform: Array, s: Dsgd) -> Array:
    """Return each run's contribution to the error of 1/γ^k − 1 = α^k (n − m)/m."""
    alpha, _ = _factors(ours.mean(), uniform.mean(), s)
    scale = (s.clients - s.m) / s.m / max(uniform.mean(), np.finfo(np.float64).tiny)
    return np.asarray((ours - alpha * uniform) * scale)


def _reports(s: Dsgd, current: _Round) -> dict[str, float]:
    expected = current.q.sum(axis=1)
    exact = current.q
    if isinstance(s.sampler, ApproximateScheme):
        exact = np.array([probabilities(row, s.m) for row in current.norms])
    return {
        "batch": float(expected.mean()),
        "batch_low": float(expected.min()),
        "gap": float(np.abs(current.q - exact).max()),
    }


def _bias(w: Array, current: _Round, estimate: Array) -> float:
    """Return the largest |z| over coordinates, with the variance implied by the probabilities."""
    full_update = np.einsum("n,rnd->rd", w, current.updates)
    share = np.divide(1 - current.q, current.q, out=np.zeros_like(current.q), where=current.q > 0)
    variance = np.einsum("rn,rnd->d", w**2 * share, current.updates**2)
    total = (estimate - full_update).sum(axis=0)
    if not variance.any():  # everyone reports: equal up to rounding
        return 0.0 if np.allclose(estimate, full_update, rtol=1e-12, atol=1e-12) else float("inf")
    return float(np.abs(total / np.sqrt(variance)).max())


def _recursion(
    quadratic: Problem,
    x: Array,
    after: Array,
    eta: float,
    gamma: float,
    betas: dict[str, Constants],
    slack: Array,
) -> dict[str, float]:
    """Return the left side of eq. (13) minus the right side, with its standard error over runs."""
    before, later = (((point - quadratic.optimum) ** 2).sum(axis=1) for point in (x, after))
    row = {"distance": float(before.mean()), "distance_se": _error(before)}
    for name, (beta1, beta2) in betas.items():
        right = bound(before.mean(), eta, gamma, quadratic.convexity, Constants(beta1, beta2))
        excess = later - (1 - quadratic.convexity * eta) * before - eta**2 * beta1 * slack
        row[f"excess/{name}"] = float(later.mean() - right)
        row[f"excess_se/{name}"] = _error(excess)
    return row


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
