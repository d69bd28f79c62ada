"""Training runs of convex models.

This run kind is called ``federated`` in the papers' files because it was the first, and the hashes
of finished runs contain that name.  Networks have the kind ``network``.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array
from fedsampling.base.lazy import pd
from fedsampling.base.records import NotNegative, Positive, Strict
from fedsampling.data.datasets.dataset import ConvexData
from fedsampling.data.datasets.ijcnn1 import Ijcnn1
from fedsampling.data.datasets.regression import Regression
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.simulations.simulation import (
    Progress,
    RunContext,
    Seed,
    Simulated,
    Simulation,
    tidy,
)
from fedsampling.learning.training.convex import (
    MODELS,
    ConvexLearner,
    ConvexWork,
    Linear,
    sample_norms,
)
from fedsampling.learning.training.loop import Measure, measuring, train
from fedsampling.samplers.isfedavg import ISFedAvg
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.in_settings import ConvexScheme
from fedsampling.samplers.protocol.prepared import Prepared, prepared
from fedsampling.samplers.protocol.slots import Setup


class ConvexModel(Strict):
    """A convex model with ridge rho."""

    name: Literal["linear", "logistic"]
    rho: NotNegative


class Federated(Simulation, name="federated"):
    """A training run of a convex model."""

    step_seconds: ClassVar[float] = 0.0003

    dataset: ConvexData
    model: ConvexModel
    work: ConvexWork
    sampler: ConvexScheme
    rounds: Positive
    every: Positive = Field(description="rounds between measurements")
    problem_seed: Seed = Field(
        0, description="draws data, partition, B_k and E_k: the same for all seeds"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "Federated":
        check_fits(self.dataset, self.sampler, self.work.batch, "work.")
        return self

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Train all seeds of a job together.

        The problem (data, partition, B_k, E_k) is drawn once from ``problem_seed``; a seed draws
        the agents and batches of its repetition.

        Returns per round: ``msd`` (regression: ‖w_i − w^o‖², equation 56) or the metrics of
        :func:`test_measures` (classification; for the whole run also ``…_at_optimum``); and, if the
        sampler has probabilities, their distances from the optimal probabilities:
        ``agent_distance`` = ‖p^o − p̂‖ and ``data_distance`` = (1/K) Σ_k ‖p_n^(k),o − p̂_n^(k)‖.
        """
        problem = self.dataset.load(data, self.problem_seed, context.cache, context.mirror)
        learner = build_learner(self.model, self.work, problem, self.problem_seed)
        model = learner.model
        optimum = at_optimum(model, problem)
        sampler = build_sampler(self.sampler, learner, len(seeds), optimum)
        callbacks = [measuring(self.every, goal(model, problem, optimum))]
        if isinstance(self.sampler, ISFedAvg):
            # At most twenty times: computing these distances takes longer than a round.
            period = max(self.every, self.rounds // 20)
            callbacks.append(measuring(period, distances(sampler, learner, optimum)))
        callbacks.append(lambda moment: progress(moment.round))
        tables = train(learner, sampler, seeds, self.rounds, callbacks).tables()
        if model.name == "logistic":
            best = {
                f"{name}_at_optimum": (np.array([-1]), value)
                for name, value in test_measures(optimum["w"][None], problem).items()
            }
            tables = [pd.concat([table, tidy(best)], ignore_index=True) for table in tables]
        return Simulated(tables, problem.inputs, problem.unverified)


def check_fits(data: ConvexData, sampler: Scheme, batch: tuple[int, int], place: str = "") -> None:
    """Raise ValueError unless sampler and work fit the data; `place` is the prefix of the key."""
    assert isinstance(data, Regression | Ijcnn1)
    sampler.check_population(data.agents)
    fewest = data.samples if isinstance(data, Regression) else data.smallest
    if batch[1] > fewest:
        raise ValueError(
            f"{place}batch: {batch[1]} exceeds the {fewest} samples of the smallest "
            f"agent; give at most {fewest}"
        )


def build_learner(
    model: ConvexModel, work: ConvexWork, problem: FederatedDataset, problem_seed: int
) -> ConvexLearner:
    """Combine model, data and local work."""
    drawn = work.draw(problem_seed, problem.n_clients)
    return ConvexLearner(MODELS[model.name](model.rho), problem, work, *drawn)


def at_optimum(model: Linear, problem: FederatedDataset) -> Mapping[str, Array]:
    """Return the minimiser w^o, and the gradients and norms at w^o for optimal probabilities."""
    w = model.minimiser(problem)
    clients = np.arange(problem.n_clients)
    norms = sample_norms(model, problem, np.repeat(w[None], len(clients), axis=0), clients)
    return {
        "w": w,
        "gradient": model.client_gradients(w[None], problem)[0],
        "mean_norm": model.mean_norms(w[None], problem)[0],
        "sample_norms": norms,
    }


def build_sampler(
    scheme: Scheme, learner: ConvexLearner, runs: int, optimum: Mapping[str, Array]
) -> Prepared:
    """Prepare a sampler for the rounds of a job."""
    setup = Setup(learner.n_samples, learner.p, runs, learner.E, learner.B, optimum)
    return prepared(scheme, setup)


def goal(model: Linear, problem: FederatedDataset, optimum: Mapping[str, Array]) -> Measure:
    """Return the measure that the figures show: MSD, or the test set's errors and loss."""
    if model.name == "linear":
        return lambda theta, sampler: {"msd": ((theta - optimum["w"]) ** 2).sum(-1)}
    return lambda theta, sampler: test_measures(theta, problem)


def test_measures(theta: Array, problem: FederatedDataset) -> Mapping[str, Array]:
    """Measure classifiers `theta`, shape (runs, M), on the test set.

    ``error`` is the share of labels that differ from the margin's sign (a margin of zero counts as
    wrong), ``balanced_error`` its average over the two classes, and ``loss`` the mean logistic
    loss, without the ridge.
    """
    # Run by run: the rounding of one product would depend on the number of runs.
    margins = np.stack([problem.x_test @ w for w in theta]) * problem.y_test
    wrong = margins <= 0
    positive = problem.y_test > 0
    return {
        "error": wrong.mean(1),
        "balanced_error": (wrong[:, positive].mean(1) + wrong[:, ~positive].mean(1)) / 2,
        "loss": np.logaddexp(0, -margins).mean(1),
    }


def distances(sampler: Prepared, learner: ConvexLearner, optimum: Mapping[str, Array]) -> Measure:
    """Return the function that measures the distance of probabilities from (44) and (48)."""
    optimal = ISFedAvg(m=1, probabilities="optimal")
    best = build_sampler(optimal, learner, 1, optimum).state
    p_agents, p_data = best.p_agents[0], best.p_data

    def measure(theta: Array, _: Prepared) -> Mapping[str, Array]:
        held = sampler.state
        agents = np.linalg.norm(held.p_agents - p_agents, axis=-1)
        data = np.linalg.norm(held.p_data - p_data, axis=-1).mean(-1)
        return {"agent_distance": agents, "data_distance": np.broadcast_to(data, agents.shape)}

    return measure
