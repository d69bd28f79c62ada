"""Monte Carlo of federated averaging on quadratic losses, and its closed form.

Client i has the loss ½ ‖θ − θ_i*‖² and no noise: only the draw of the clients is random.  Local
work is a contraction towards θ_i*, so the expected squared distance to the optimum depends only on
Var[ω_i] and α (:mod:`fedsampling.theory.weights`) of the sampler, by Lemma 1 of the paper.  One
client has importance p_1, the others share the rest.  With `p_1`, a run is recorded round by round;
without, only its end is recorded, for many p_1 (after one round in the paper's study).

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning
(arXiv 2107.12211): the quadratic experiments of its first version (2021), with the constants and
the order of the problem's draws of its authors' public code.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive, Share, Strict, Variance
from fedsampling.base.streams import stream
from fedsampling.experiments.simulations.simulation import (
    Progress,
    Seed,
    Simulation,
    at_most_all,
    tidy,
)
from fedsampling.samplers.scheme import invert
from fedsampling.theory.weights import Statistics, statistics

if TYPE_CHECKING:
    import pandas as pd


class QuadraticScheme(Strict):
    """A scheme with a closed form, by name."""

    name: Literal["full", "md", "uniform"]


class Quadratic(Simulation, name="quadratic"):
    """Federated averaging on ½ ‖θ − θ_i*‖², its clients' weights drawn many times."""

    step_seconds: ClassVar[float] = 0.0005

    clients: Annotated[int, Field(ge=2)]
    m: Positive
    dimension: Positive
    bound: Variance = Field(description="minima and start are uniform on [−bound, bound]")
    minima: Literal["own", "shared"] = Field(description="of each client, or of the first for all")
    local_step: Share = Field(description="η_l")
    local_steps: Positive = Field(description="K")
    server_step: Variance = Field(1.0, description="η_g")
    p_1: Annotated[float, Field(ge=0, le=1)] | None = Field(
        description="importance of the first client, the others share the rest; "
        "null: `points` values from 0 to 1"
    )
    points: Annotated[int, Field(ge=2)] = 200
    rounds: Positive
    every: Positive = Field(1, description="rounds between measurements")
    draws: Annotated[int, Field(ge=2)] = Field(description="repetitions")
    problem_seed: Seed = Field(1, description="of the minima and the start")
    sampler: QuadraticScheme

    @model_validator(mode="after")
    def _consistent(self) -> "Quadratic":
        at_most_all(self.m, self.clients)
        return self

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Repeat the runs of one scheme.

        Returns at each measured round, or at each p_1 (``at`` counts them, ``p_1`` is its value):
        of ‖θ − θ*‖² the ``mean`` over the repetitions with its standard error ``se``, their ``sd``,
        ``min``, ``median`` and ``max``, the ``first`` of them, and the ``expected`` value.
        """
        if self.p_1 is None:
            return _sweep(self, seed, progress)
        return _training(self, self.p_1, seed, progress)


class Problem(NamedTuple):
    """The clients' minima, shape (n, d), and the start, shape (d,)."""

    minima: Array
    start: Array


def problem(settings: Quadratic) -> Problem:
    """Draw the minima, then the start, as the authors' code does.

    NumPy's legacy generator is kept here and nowhere else, so that the numbers are theirs.
    """
    rng = np.random.RandomState(settings.problem_seed)
    n, d, bound = settings.clients, settings.dimension, settings.bound
    minima = rng.uniform(-bound, bound, (n, d))
    start = rng.uniform(-bound, bound, d)
    return Problem(np.tile(minima[0], (n, 1)) if settings.minima == "shared" else minima, start)


def importances(p_1: float, n: int) -> Array:
    """Return p_1 for the first client, and equal shares of the rest for the others."""
    return np.array([p_1, *[(1 - p_1) / (n - 1)] * (n - 1)])


def _sweep(s: Quadratic, seed: int, progress: Progress) -> "pd.DataFrame":
    ends = []
    for index, p_1 in enumerate(np.linspace(0, 1, s.points)):
        *_, end = _distances(s, importances(p_1, s.clients), seed, index)
        ends.append({"p_1": p_1, **_measured(end), "expected": _expected(s, p_1)[-1]})
        progress(round(s.rounds * (index + 1) / s.points))
    return _tidy(np.arange(s.points), ends)


def _training(s: Quadratic, p_1: float, seed: int, progress: Progress) -> "pd.DataFrame":
    at, rows, expected = [], [], _expected(s, p_1)
    for t, distances in enumerate(_distances(s, importances(p_1, s.clients), seed, 0)):
        if t % s.every == 0 or t == s.rounds:
            at.append(t)
            rows.append({**_measured(distances), "expected": expected[t]})
        progress(t)
    return _tidy(np.array(at), rows)


def _distances(s: Quadratic, p: Array, seed: int, index: int) -> Iterator[Array]:
    """Yield ‖θ^t − θ*‖² of all repetitions, shape (draws,), for t = 0, …, rounds."""
    minima, start = problem(s)
    optimum, step = p @ minima, s.server_step * contraction(s.local_step, s.local_steps)
    theta = np.tile(start, (s.draws, 1))
    yield ((theta - optimum) ** 2).sum(axis=1)
    for t in range(s.rounds):
        rng = stream(seed, "quadratic", index, t)
        omega = _weights(s.sampler.name, p, s.m, rng, s.draws)
        theta = theta + step * (omega @ minima - omega.sum(axis=1, keepdims=True) * theta)
        yield ((theta - optimum) ** 2).sum(axis=1)


def _weights(scheme: str, p: Array, m: int, rng: np.random.Generator, draws: int) -> Array:
    """Return ω of many independent rounds, shape (draws, n): eqs. (5) and (6)."""
    n = len(p)
    if scheme == "full":
        return np.broadcast_to(p, (draws, n))
    if scheme == "md":
        clients = invert(p, rng.random((draws, m)))
    else:  # the m smallest of n uniform variates are a uniform subset
        clients = np.argpartition(rng.random((draws, n)), m - 1, axis=-1)[:, :m]
    cells = clients + n * np.arange(draws)[:, None]
    times = np.bincount(cells.ravel(), minlength=n * draws).reshape(draws, n)
    return times / m if scheme == "md" else times * (n / m * p)


def _expected(s: Quadratic, p_1: float) -> Array:
    p, step = importances(p_1, s.clients), s.server_step * contraction(s.local_step, s.local_steps)
    row = statistics(s.sampler.name, p, s.m)
    return expected_distances(*problem(s), p, row, step, s.rounds)


def _measured(distances: Array) -> dict[str, float]:
    sd = float(distances.std(ddof=1))
    return {
        "mean": float(distances.mean()),
        "se": sd / float(np.sqrt(distances.size)),
        "sd": sd,
        "min": float(distances.min()),
        "median": float(np.median(distances)),
        "max": float(distances.max()),
        "first": float(distances[0]),
    }


def _tidy(at: Ints, rows: Sequence[dict[str, float]]) -> "pd.DataFrame":
    return tidy({name: (at, np.array([row[name] for row in rows])) for name in rows[0]})


def contraction(local_step: float, local_steps: int) -> float:
    """Return φ = 1 − (1 − η_l)^K: K gradient steps from θ end in θ + φ (θ_i* − θ)."""
    return 1 - (1 - local_step) ** local_steps


def expected_distances(
    minima: Array, start: Array, p: Array, row: Statistics, step: float, rounds: int
) -> Array:
    """Return E‖θ^t − θ*‖² for t = 0, …, rounds, by eqs. (3) and (70).

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
    """Return the factor of E‖θ^t − θ*‖² in one round: (1 − η)² + η² Var[Σ ω_i], eqs. (15), (70).

    Above one, the expected distance grows without bound however good the start.  Σ γ_i − α is
    Var[Σ ω_i] by Proposition 1, so that schemes whose weights sum to one always contract.
    """
    return float((1 - step) ** 2 + step**2 * row.variance_of_sum)
