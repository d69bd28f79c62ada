"""Studies of the two optimisation problems of Harshvardhan et al. 2025, without training.

Instances are drawn like the paper's Quadratic: Gaussian features, with different eigenvalues for
each client.  (Rotating all features does not change B, so the coordinate axes serve as the shared
eigenvectors.)  Each study tests a statement of the paper;
:mod:`papers.harshvardhan2025latency.figures_theory` shows the results.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from statistics import median
from time import perf_counter, process_time
from timeit import repeat, timeit
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive, Range, Strict, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.experiments.simulations.simulation import Progress, Simulation, tidy
from fedsampling.samplers.delayhet import Bound
from fedsampling.samplers.latency import (
    best_distribution,
    best_subset,
    bias,
    distribution_objective,
    subset_objective,
)
from fedsampling.samplers.runtime import approximately_optimal, luo_probabilities
from fedsampling.samplers.simplex import expected_delay
from fedsampling.theory.heterogeneity import bounded, pairwise

if TYPE_CHECKING:
    import pandas as pd

Measured = dict[str, float]

ROUNDING = 1e-9  # relative: an inequality that fails by less than this holds
TIMES = 5


class StudyName(Strict):
    """The study to run on the drawn instances."""

    name: Literal["assumptions", "enumeration", "minnorm", "distribution", "overhead"]


class Selection(Simulation, name="selection"):
    """The optimisation problems of Harshvardhan et al. 2025, on instances like its Quadratic."""

    step_seconds: ClassVar[float] = 20.0

    clients: Annotated[int, Field(ge=3)] = Field(description="m")
    samples: Positive = Field(description="n, of each client")
    dimension: Positive = Field(description="d, of the features")
    eigenvalues: Range = Field((1.0, 10.0), description="range of those of the covariances")
    delays: Literal["uniform", "long_tail"] = Field(
        "uniform",
        description="U(15, 100) s; or 30 s and a log-normal part, as the computation on NYCMesh",
    )
    share: Bound = 0.9
    k: Positive = Field(1, description="draws in the objective of the distribution")
    played: Positive = Field(10, description="draws with which the distribution is then played")
    iterations: list[Annotated[int, Field(ge=0)]] = Field(
        [0, 3, 10, 30, 100, 300, 1000], description="of trust-constr, in the study of the solver"
    )
    approx_opt: Literal["slsqp", "trust-constr"] = hashed_if_set(
        "slsqp",
        description="solver of ApproxOptSampling, in the study of the overhead",
    )
    draws: Positive = Field(description="instances of a seed")
    sampler: StudyName

    @property
    def timed(self) -> bool:
        """Whether it is the study of the overhead."""
        return self.sampler.name == "overhead"

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Draw instances and study them.

        In the result, ``at`` counts the instances; in the study ``distribution`` it is the number
        of iterations, and values are means over the instances.  The metrics are those of the
        functions in :data:`STUDIES`.
        """
        study = self.sampler.name
        measured = []
        for draw in range(self.draws):
            measured.append(STUDIES[study](self, seed, draw))
            progress(draw)
        columns = {name: np.array([row[name] for row in measured]) for name in measured[0]}
        at = np.arange(self.draws)
        if study == "distribution":
            at = np.array(self.iterations)
            columns = {name: values.mean(axis=0) for name, values in columns.items()}
        return tidy({name: (at, values) for name, values in columns.items()})


def instance(
    settings: Selection, seed: int, draw: int, same_distribution: bool = False
) -> tuple[Array, Array]:
    """Draw features, shape (m, n, d), and delays, shape (m,)."""
    m, n, d = settings.clients, settings.samples, settings.dimension
    rng = stream(seed, "selection", draw)
    spread = rng.uniform(*settings.eigenvalues, (m, 1, d))
    features = rng.standard_normal((m, n, d)) * np.sqrt(spread[:1] if same_distribution else spread)
    rng = stream(seed, "selection.delays", draw)
    if settings.delays == "uniform":
        return features, rng.uniform(15, 100, m)
    return features, 30 + np.minimum(rng.lognormal(4.08, 2.13, m), 15_000)


def assumptions(settings: Selection, seed: int, draw: int) -> Measured:
    """Measure how far B is from the paper's assumptions.

    Returns ``assumption3``, ``assumption4``: the left side over the right side, above 1 where it
    does not hold; ``alike`` is ``assumption3`` where all clients have the same distribution;
    ``smallest`` and ``largest`` B_ij of two clients.  Of B scaled to `share` of Assumption 3:
    ``scaled4``, the same for Assumption 4, and ``uniform_bias``, B_p of the uniform distribution,
    where 1 and more leave g(p) without meaning.
    """
    features, _ = instance(settings, seed, draw)
    same_features, _ = instance(settings, seed, draw, same_distribution=True)
    B = pairwise(features)
    off_diagonal = B[~np.eye(len(B), dtype=np.bool_)]
    scaled = bounded(B, settings.share)
    p = np.full(len(B), 1 / len(B))
    return {
        "assumption3": _assumption3(B),
        "assumption4": _assumption4(B),
        "alike": _assumption3(pairwise(same_features)),
        "smallest": float(off_diagonal.min()),
        "largest": float(off_diagonal.max()),
        "scaled4": _assumption4(scaled),
        "uniform_bias": bias(scaled, p, settings.k),
    }


def enumeration(settings: Selection, seed: int, draw: int) -> Measured:
    """Test the inequalities of A.2 for all non-empty S_1 ⊂ S_2 and all i outside of S_2.

    Returns ``triples``: number of tests; number of counterexamples to ``g_submodular`` (Remark 2),
    ``g_supermodular``, ``h_submodular``, ``h_supermodular``; ``h_decreasing``: number of clients
    and sets S for which the client raises h; ``prefix_gap``: relative excess of g of the best
    prefix over g of the best set.
    """
    features, delays = instance(settings, seed, draw)
    B = bounded(pairwise(features), settings.share)
    m = len(B)
    sets = [frozenset(c) for size in range(1, m + 1) for c in combinations(range(m), size)]
    g = {S: subset_objective(B, delays, np.array(sorted(S))) for S in sets}
    h = {S: float(B[sorted(S)].min(axis=0).mean()) for S in sets}
    names = ("g_submodular", "g_supermodular", "h_submodular", "h_supermodular", "h_decreasing")
    count = dict.fromkeys(("triples", *names), 0.0)
    for small in sets:
        for i in set(range(m)) - small:
            count["h_decreasing"] += h[small | {i}] > h[small] * (1 + ROUNDING)
            for large in sets:
                if small < large and i not in large:
                    count["triples"] += 1
                    for name, f in (("g", g), ("h", h)):
                        first, second = f[small | {i}] - f[small], f[large | {i}] - f[large]
                        slack = ROUNDING * f[small]
                        count[f"{name}_submodular"] += first < second - slack
                        count[f"{name}_supermodular"] += first > second + slack
    chosen, _ = best_subset(B, delays, "exact")
    return {**count, "prefix_gap": subset_objective(B, delays, chosen) / min(g.values()) - 1}


def minnorm(settings: Selection, seed: int, draw: int) -> Measured:
    """Compare MinNorm's set with the best set.

    Returns ``exact``: smallest g, in seconds.  Starting from the order of delays and from a random
    order: ``gap_delay`` and ``gap_random``, the relative excess of g; ``clients_…``, the number of
    chosen clients.
    """
    features, delays = instance(settings, seed, draw)
    B = bounded(pairwise(features), settings.share)
    best, _ = best_subset(B, delays, "exact")
    smallest = subset_objective(B, delays, best)
    result: Measured = {"exact": smallest, "clients_exact": len(best)}
    shuffled = stream(seed, "selection.order", draw).permutation(len(B))
    for name, start in (("delay", None), ("random", shuffled)):
        chosen, _ = best_subset(B, delays, "minnorm", start)
        result[f"gap_{name}"] = subset_objective(B, delays, chosen) / smallest - 1
        result[f"clients_{name}"] = len(chosen)
    return result


def distribution(settings: Selection, seed: int, draw: int) -> dict[str, Array]:
    """Follow the paper's solver from three starts.

    Returns shape (iterations,): for the starts ``uniform``, ``fast`` (as 1/τ_i) and ``random``,
    after each number of iterations: ``<start>/ratio`` = g(p) over its minimum; ``<start>/clients``
    = 1/Σ p_i²; and where p is played with `played` draws ``<start>/seconds`` of a round,
    ``<start>/rounds`` = 1/(1 − B_p), and ``<start>/runtime``, their product over the least g.
    ``analytic/ratio``: the same of SLSQP from the uniform start; ``one_draw/ratio``: the lower
    bound of the proof at the last p, over the least g.
    """
    features, delays = instance(settings, seed, draw)
    B = bounded(pairwise(features), settings.share, settings.k)
    k, m = settings.k, settings.clients
    vertex = best_distribution(B, delays, k, "vertex")
    smallest = distribution_objective(B, delays, vertex, k)
    inverse = 1 / delays
    starts = {
        "uniform": np.full(m, 1 / m),
        "fast": inverse / inverse.sum(),
        "random": stream(seed, "selection.start", draw).dirichlet(np.ones(m)),
    }
    metrics: dict[str, list[float]] = {}
    for name, start in starts.items():
        for iterations in settings.iterations:
            p = best_distribution(B, delays, k, "trust-constr", start, iterations, "exact")
            seconds = expected_delay(delays, p, settings.played)
            rounds = 1 / (1 - bias(B, p, settings.played))
            for metric, value in (
                ("ratio", distribution_objective(B, delays, p, k) / smallest),
                ("clients", 1 / float(p @ p)),
                ("seconds", seconds),
                ("rounds", rounds),
                ("runtime", seconds * rounds / smallest),
            ):
                metrics.setdefault(f"{name}/{metric}", []).append(value)
    p = best_distribution(B, delays, k, "analytic")
    analytic = distribution_objective(B, delays, p, k) / smallest
    bound = float(delays @ p) / (1 - 2 * float((B**2).mean(axis=0) @ p)) / smallest
    columns = {name: np.array(values) for name, values in metrics.items()}
    columns["analytic/ratio"] = np.full(len(settings.iterations), analytic)
    columns["one_draw/ratio"] = np.full(len(settings.iterations), bound)
    return columns


def overhead(settings: Selection, seed: int, draw: int) -> Measured:
    """Time the server's computations of one round in seconds; short ones by a median of five.

    Returns ``heterogeneity``; ``exact`` and ``minnorm``; ``trust-constr`` (the paper's solver, as
    many iterations as the last of `iterations`), ``analytic``, ``vertex``; ``approx_opt`` and
    ``luo2022`` with `played` draws and c = 1.  If `approx_opt` is solved as in the paper, also
    ``approx_opt_slsqp``; all times are then processor time, since a solve takes minutes.
    """
    features, delays = instance(settings, seed, draw)
    clock = perf_counter if settings.approx_opt == "slsqp" else process_time
    started = clock()
    B = pairwise(features)
    seconds = {"heterogeneity": clock() - started}
    B = bounded(B, settings.share, settings.k)
    k, last = settings.k, settings.iterations[-1]
    scores = stream(seed, "selection.scores", draw).lognormal(size=len(B)) / len(B)
    tasks: dict[str, Callable[[], object]] = {
        "exact": lambda: best_subset(B, delays, "exact"),
        "minnorm": lambda: best_subset(B, delays, "minnorm"),
        "trust-constr": lambda: best_distribution(B, delays, k, "trust-constr", None, last),
        "analytic": lambda: best_distribution(B, delays, k, "analytic"),
        "vertex": lambda: best_distribution(B, delays, k, "vertex"),
        "approx_opt": lambda: approximately_optimal(delays, scores, 1.0, settings.played),
        "luo2022": lambda: luo_probabilities(delays, scores, 1.0),
    }
    if settings.approx_opt == "trust-constr":
        tasks["approx_opt_slsqp"] = tasks["approx_opt"]
        options = (1.0, settings.played, last, "trust-constr", "2-point")
        tasks["approx_opt"] = lambda: approximately_optimal(delays, scores, *options)
    for name, task in tasks.items():
        times = [timeit(task, timer=clock, number=1)]
        if times[0] < 1:
            times += repeat(task, timer=clock, repeat=TIMES - 1, number=1)
        seconds[name] = median(times)
    return seconds


STUDIES: dict[str, Callable[[Selection, int, int], Mapping[str, Any]]] = {
    "assumptions": assumptions,
    "enumeration": enumeration,
    "minnorm": minnorm,
    "distribution": distribution,
    "overhead": overhead,
}


def _assumption3(B: Array) -> float:
    return float(np.sqrt(2) * B.mean(axis=1).max())


def _assumption4(B: Array) -> float:
    return float(2 * (B**2).mean(axis=1).max())
