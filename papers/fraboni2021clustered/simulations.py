"""Run kind ``allocation``: the distributions r_ki of clustered samplers on real clients.

Distributions by sample counts need no training.  Algorithm 2 needs the clients' updates: a network
is trained as in :mod:`fedsampling.experiments.networks.training`, and the distributions are
computed from the updates that the sampler remembers.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import NetworkData
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.networks.settings import Evaluation
from fedsampling.experiments.networks.training import build_learner, build_sampler
from fedsampling.experiments.simulations.network import NetworkSimulation, load_problem
from fedsampling.experiments.simulations.simulation import (
    Progress,
    RunContext,
    Seed,
    Simulated,
    Simulation,
    tidy,
)
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import measuring, train
from fedsampling.samplers.basic import MD
from fedsampling.samplers.clustered import (
    ClusteredSimilarity,
    ClusteredSize,
    shares,
    units_by_similarity,
    units_by_size,
)
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.in_settings import one_of
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.similarity import from_pairs, ward_groups

from .theory import inclusion, md_distributions, most_draws, variance

if TYPE_CHECKING:
    import pandas as pd


class Allocation(Simulation, name="allocation"):
    """Train while the distributions depend on updates, and keep the distributions."""

    step_seconds: ClassVar[float] = 0.1
    gpu: ClassVar[bool] = True

    dataset: NetworkData
    inputs: Literal["unit", "centred", "raw", "tokens"] = Field(
        description="what stored samples become, as of a training run"
    )
    model: Model
    work: LocalWork
    sampler: Annotated[Scheme, one_of("md", "clustered_size", "clustered_similarity")]
    rounds: Positive = Field(description="rounds after which every client's r_ki is kept")
    every: Positive = Field(description="rounds between summaries of the distributions")
    problem_seed: Seed = Field(0, description="draws the partition: the same for all seeds")

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        where: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Train if the distributions depend on updates, and record them.

        Returns at each measured round: the metrics of :func:`summary`, ``groups`` (K of Algorithm
        2) and ``seen`` (clients whose update is known).  For each client, from the last round's
        distributions: ``samples``, ``label`` (the most frequent), ``group`` (rank of its group by
        samples, 0 for the largest; −1 for none), ``variance``, ``inclusion``, ``draws``
        (distributions that can draw it) and ``share/k=<k>`` = r_ki.
        """
        import pandas as pd

        shared = self.model_dump(exclude={"kind", "every"})
        network = NetworkSimulation(evaluation=Evaluation(every=self.every), **shared)
        problem = load_problem(network, data, where)
        learner = build_learner(network, problem, data, where)
        sampler = build_sampler(network, learner, seeds)
        labels = problem.label_counts().argmax(1)
        learns = isinstance(self.sampler, ClusteredSimilarity)

        def measure(theta: object, sampler: Prepared) -> Mapping[str, Array]:
            rows = []
            for run, seed in enumerate(seeds):
                units, group = allocate(problem.n_samples, sampler, run, seed)
                seen = sampler.state.G[run].any(1).sum() if learns else 0
                measured = summary(units, problem.n_samples, labels)
                rows.append(measured | {"groups": group.max() + 1.0, "seen": float(seen)})
            return {name: np.array([row[name] for row in rows]) for name in rows[0]}

        rounds = self.rounds if learns else 0
        callbacks = [measuring(self.every, measure), lambda moment: progress(moment.round)]
        tables = train(learner, sampler, seeds, rounds, callbacks, where.checkpoint).tables()
        finished = [
            pd.concat([table, _clients(problem, *allocate(problem.n_samples, sampler, *key))])
            for table, *key in zip(tables, range(len(seeds)), seeds, strict=True)
        ]
        return Simulated(
            [table.reset_index(drop=True) for table in finished], problem.inputs, problem.unverified
        )


def allocate(n_samples: Ints, sampler: Prepared, run: int, seed: int) -> tuple[Ints, Ints]:
    """Return a run's r'_ki = M r_ki, shape (m, n), and the rank of each client's group, or −1.

    The order of clients in remaining groups is drawn from a separate stream, so that computing the
    distributions does not change the training.
    """
    none = np.full(len(n_samples), -1)
    scheme = sampler.scheme
    if isinstance(scheme, MD):
        return np.tile(n_samples, (scheme.m, 1)), none
    if isinstance(scheme, ClusteredSize):
        return units_by_size(n_samples, scheme.m), none
    assert isinstance(scheme, ClusteredSimilarity)
    rho = from_pairs(sampler.state.pairs[run], scheme.measure, scheme.ward)
    rng = stream(seed, "allocation")
    units = units_by_similarity(n_samples, rho, scheme.m, rng, scheme.ward)
    return units, _groups(n_samples, rho, scheme.m, scheme.ward)


def summary(units: Ints, n_samples: Ints, labels: Ints) -> dict[str, float]:
    """Compare a sampler's distributions with MD sampling's.

    `units` are r'_ki = M r_ki.  Returns ``clients`` and ``labels``, expected to be distinct in a
    round; ``sigma`` = Σ_i Var[ω_i]; the largest deviations from Proposition 1, in units:
    ``rows_off`` (7), ``columns_off`` (8); and the largest excess over a client's bound, none if not
    positive: ``variance_above_md`` (17), ``inclusion_below_md`` (23) and ``draws_above_bound``,
    ⌊m p_i⌋ + 2 of section 4.
    """
    m, M = len(units), int(n_samples.sum())
    r, md = shares(units), md_distributions(n_samples / M, m)
    by_label = r @ np.eye(labels.max() + 1)[labels]
    return {
        "clients": float(inclusion(r).sum()),
        "labels": float(inclusion(by_label).sum()),
        "sigma": float(variance(r).sum()),
        "rows_off": float(np.abs(units.sum(1) - M).max()),
        "columns_off": float(np.abs(units.sum(0) - m * n_samples).max()),
        "variance_above_md": float((variance(r) - variance(md)).max()),
        "inclusion_below_md": float((inclusion(md) - inclusion(r)).max()),
        "draws_above_bound": float((most_draws(r) - m * n_samples // M - 2).max()),
    }


def _clients(problem: FederatedDataset, units: Ints, group: Ints) -> "pd.DataFrame":
    r, client = shares(units), np.arange(problem.n_clients)
    values = {
        "samples": problem.n_samples,
        "label": problem.label_counts().argmax(1),
        "group": group,
        "variance": variance(r),
        "inclusion": inclusion(r),
        "draws": most_draws(r),
        **{f"share/k={k}": row for k, row in enumerate(r)},
    }
    return tidy({name: (client, value.astype(np.float64)) for name, value in values.items()})


def _groups(n_samples: Ints, rho: Array, m: int, ward: str) -> Ints:
    """Rank each client's group by samples; −1 for a client whose distributions are all its own."""
    M = int(n_samples.sum())
    u = m * n_samples % M
    remaining = np.flatnonzero(u)
    rank = np.full(len(n_samples), -1)
    if remaining.size:
        groups = ward_groups(rho[np.ix_(remaining, remaining)], u[remaining], M, ward)
        order = np.argsort([-u[remaining][group].sum() for group in groups], kind="stable")
        for k, chosen in enumerate(order):
            rank[remaining[groups[chosen]]] = k
    return rank
