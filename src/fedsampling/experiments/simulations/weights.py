"""Monte Carlo estimates of the moments of aggregation weights, with their closed forms.

For each seed :meth:`Weights.table` draws rounds with the same sampler classes that training uses,
each round as a separate run.  The run table holds every estimate with its standard error and its
closed form from :mod:`fedsampling.theory`.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211), Table 1 and Appendix A.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.lazy import pd
from fedsampling.base.records import Positive, Strict
from fedsampling.base.streams import Draws
from fedsampling.experiments.simulations.simulation import Progress, Simulation, at_most_all, tidy
from fedsampling.samplers.basic import MD, Binomial, Full, Poisson, Uniform
from fedsampling.samplers.clustered import ClusteredSize, allocate_by_size
from fedsampling.samplers.optimal import Available, probabilities
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, View
from fedsampling.theory.weights import (
    PER_CLIENT,
    clustered_participation,
    clustered_statistics,
    independent_participation,
    optimal_statistics,
    participation,
    pooled_alpha,
    statistics,
)

BLOCK = 2000  # rounds drawn at once: some megabytes of weights for a hundred clients


class SchemeName(Strict):
    """Name of a sampler in the Monte Carlo tables."""

    name: Literal["full", "md", "uniform", "poisson", "binomial", "clustered", "optimal"]


class Weights(Simulation, name="weights"):
    """Monte Carlo estimates for the aggregation weights ω of one sampler."""

    step_seconds: ClassVar[float] = 2e-05

    clients: Positive
    m: Positive
    importance: Literal["equal", "linear"]
    draws: Annotated[int, Field(ge=2)]
    sampler: SchemeName

    @model_validator(mode="after")
    def _consistent(self) -> "Weights":
        at_most_all(self.m, self.clients)
        return self

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Draw many rounds of one sampler; return estimates and closed forms.

        "clustered" is Algorithm 1 of Fraboni et al. 2021 on sample counts in proportion to p;
        "optimal" gets update norms 1 + i mod 4, so that importance and norm differ.  All samplers
        use the same random numbers.

        Returns per client (``at`` = 0, …, n − 1): ``mean`` and ``variance`` of ω_i.  For the run
        (``at`` = −1): ``sigma`` = Σ_i Var[ω_i], ``alpha``, ``variance_of_sum``, ``clients_mean``
        and ``clients_variance`` (E[N], Var[N]).  Each comes with ``…_se``, its standard error, and
        ``closed_…``, its closed form.

        Every estimate is a mean over rounds with standard error s/√D.  Variances are means of
        squares about the *claimed* mean (p_i, 1, E[N]), which ``mean`` and ``clients_mean`` test
        separately.  Estimates about the sample mean would have no usable standard error if a weight
        takes two values with equal probability.  α of one round is eq. (22) with squares in place
        of variances, which pools the covariances of all pairs.  If no single α exists (Clustered),
        its closed form is eq. (22) applied to the closed forms.
        """
        clients = np.arange(self.clients)
        n_samples = np.ones_like(clients) if self.importance == "equal" else clients + 1
        p = n_samples / n_samples.sum()
        case = _case(self.sampler.name, n_samples, p, self.m)
        mean, error = _estimate(case, n_samples, self.draws, seed, progress)
        columns = {}
        for name, value in case.closed.items():
            at = clients if name in PER_CLIENT else np.array([-1])
            columns[name] = (at, mean[name])
            columns[f"{name}_se"] = (at, error[name])
            columns[f"closed_{name}"] = (at, np.asarray(value))
        return tidy(columns)


class _Case(NamedTuple):
    """A sampler, the update norms ‖U_i‖ that it may observe, and the closed forms by metric."""

    scheme: Scheme
    norms: Array
    closed: Mapping[str, Array | float]


def _case(name: str, n_samples: Ints, p: Array, m: int) -> _Case:
    n = len(p)
    norms = (1 + np.arange(1, n + 1) % 4).astype(np.float64)
    scheme: Scheme
    if name == "clustered":
        r, scheme = allocate_by_size(n_samples, m), ClusteredSize(m=m)
        moments, clients = clustered_statistics(r), clustered_participation(r)
    elif name == "optimal":
        q, scheme = probabilities(p * norms, m), Available(available=n, m=m, report="optimal")
        moments, clients = optimal_statistics(p, q), independent_participation(q)
    else:
        schemes = Full(), MD(m=m), Uniform(m=m), Poisson(m=m), Binomial(m=m)
        scheme = next(scheme for scheme in schemes if scheme.named == name)
        moments, clients = statistics(name, p, m), participation(name, p, m)
    closed: dict[str, Array | float] = {
        "mean": p,
        "variance": moments.variance,
        "sigma": float(moments.variance.sum()),
        "alpha": pooled_alpha(moments, p) if np.isnan(moments.alpha) else moments.alpha,
        "variance_of_sum": moments.variance_of_sum,
        "clients_mean": clients.mean,
        "clients_variance": clients.variance,
    }
    return _Case(scheme, norms, closed)


def _weights(case: _Case, setup: Setup, seed: int, first: int) -> Array:
    """Return ω of some rounds, shape (rounds, n).

    Each round is a separate run.  The draw's number, starting at `first`, is the run's seed; the
    table's seed is its round number.
    """
    n, runs = len(setup.p), setup.runs
    rng = Draws(np.arange(first, first + runs), seed)
    sampler = prepared(case.scheme, setup)
    view = View(setup.n_samples, setup.p, seed, runs)
    slots = sampler.select(view, rng)
    view = replace(view, observed={"update_norms": case.norms[slots.client]})
    omega = sampler.weigh(slots, view, rng)
    weights: Array = np.zeros((runs, n))
    np.add.at(weights, (slots.run, slots.client), omega)
    return weights


def _estimate(
    case: _Case, n_samples: Ints, draws: int, seed: int, progress: Progress
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Draw the rounds in blocks; return means and standard errors by metric."""
    p, closed = n_samples / n_samples.sum(), case.closed
    first = {name: np.zeros_like(value) for name, value in closed.items()}
    second = {name: np.zeros_like(value) for name, value in closed.items()}
    for start in range(0, draws, BLOCK):
        setup = Setup(n_samples, p, min(BLOCK, draws - start))
        omega = _weights(case, setup, seed, start)
        for name, value in _per_round(omega, p, closed["clients_mean"]).items():
            # Relative to the closed form, so that constants have no rounding error.
            offset = value - closed[name]
            first[name] += offset.sum(axis=0)
            second[name] += (offset**2).sum(axis=0)
        progress(start)
    mean = {name: closed[name] + first[name] / draws for name in closed}
    error = {
        name: np.sqrt(np.maximum(second[name] - first[name] ** 2 / draws, 0) / draws / (draws - 1))
        for name in closed
    }
    return mean, error


def _per_round(omega: Array, p: Array, expected_clients: Array | float) -> dict[str, Array]:
    """Return the quantities to average, from weights of shape (rounds, n)."""
    squares = (omega - p) ** 2
    sigma = squares.sum(axis=1)
    variance_of_sum = (omega.sum(axis=1) - 1) ** 2
    count = (omega > 0).sum(axis=1)
    return {
        "mean": omega,
        "variance": squares,
        "sigma": sigma,
        "alpha": (sigma - variance_of_sum) / (1 - (p**2).sum()),
        "variance_of_sum": variance_of_sum,
        "clients_mean": count,
        "clients_variance": (count - expected_clients) ** 2,
    }
