"""The run kind ``network``: clients with data, a stacked network, a sampler, and measurements.

:class:`NetworkSimulation` loads the clients; :mod:`fedsampling.experiments.networks` has the
settings and the training.
"""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, model_validator

from fedsampling.base.errors import naming
from fedsampling.base.records import Share
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import NetworkData
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.experiments.networks.settings import Training
from fedsampling.experiments.networks.training import Additions, train_network
from fedsampling.experiments.simulations.simulation import (
    Progress,
    RunContext,
    Simulated,
    Simulation,
)

STACKED_BYTES = 5e6  # of one run's batches; larger ones gain nothing from stacking across cases


class NetworkSimulation(Training, Simulation, name="network"):
    """A training run of a network."""

    gpu: ClassVar[bool] = True
    dataset: NetworkData
    holdout: Share | None = Field(
        None, description="part of each client's training data that is the test set, for tuning"
    )

    @model_validator(mode="after")
    def _enough_clients(self) -> "NetworkSimulation":
        if self.dataset.max_clients is not None:
            self.sampler.check_population(self.dataset.max_clients)
        return self

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Load the clients, partitioned with ``problem_seed``, and train all seeds on them."""
        return self.simulate_stacked([self] * len(seeds), data, seeds, context, progress)

    def stacks_with(self, other: Simulation) -> bool:
        """Whether both runs can be trained together: they differ only in learning rates."""
        if not isinstance(other, NetworkSimulation) or self.server or other.server:
            return False
        work = self.work.model_copy(update={"step": other.work.step})
        adapted = self.model_copy(update={"work": work, "server_step": other.server_step})
        return adapted == other and self.least_bytes(1, d=0) < STACKED_BYTES

    def simulate_stacked(
        self,
        variants: Sequence["NetworkSimulation"],
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Train runs with the learning rates of `variants`, all on the same clients."""
        problem = load_problem(self, data, context)
        differing = variants if any(variant != self for variant in variants) else ()
        additions = Additions(progress=progress)
        tables = train_network(self, problem, data, seeds, context, additions, differing)
        return Simulated(tables, problem.inputs, problem.unverified)


def load_problem(settings: NetworkSimulation, data: str, context: RunContext) -> FederatedDataset:
    """Generate or read the data and partition them; split off the holdout, if there is one."""
    seed = settings.problem_seed
    problem = settings.dataset.load(data, seed, context.cache, context.mirror)
    if settings.holdout is None:
        return problem
    with naming("holdout"):
        return hold_out(problem, settings.holdout, stream(seed, "holdout"))
