"""Training runs of networks: clients with data, a stacked network, a sampler, and measurements.

:meth:`Training.on` combines the parts and passes them to the server loop
(:mod:`fedsampling.learning.training.loop`).  The run kind :class:`Network` loads its clients;
:func:`fedsampling.train` uses clients that are already loaded.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsampling.base import memory
from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import CodeError, InputError, naming
from fedsampling.base.lazy import pd, torch
from fedsampling.base.records import Positive, PositiveFloat, Share, Strict, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.clients.availability import Availability
from fedsampling.clients.delays import DelayModel
from fedsampling.clients.failures import Failures
from fedsampling.data.datasets.dataset import NetworkData
from fedsampling.data.federated import FederatedDataset, hold_out
from fedsampling.experiments.simulations.simulation import (
    Progress,
    RunContext,
    Seed,
    Simulated,
    Simulation,
)
from fedsampling.learning.models.settings import Model, ModelFile
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import Callback, Moment, Watch, ended_by, measuring, train
from fedsampling.learning.training.server_optimisers import Server
from fedsampling.learning.training.until import Until
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.in_settings import NetworkScheme
from fedsampling.samplers.protocol.prepared import Prepared, prepared
from fedsampling.samplers.protocol.slots import Setup

if TYPE_CHECKING:
    from fedsampling.learning.models.network import Network as StackedNetwork
    from fedsampling.learning.training.learner import NetworkLearner
    from fedsampling.learning.training.own_metrics import Metric


STACKED_BYTES = 5e6  # of one run's batches; larger ones gain nothing from stacking across cases
OPAQUE = (
    "model: {} needs the inputs of the last layer, which a module does not tell; use a model of "
    "`fedsampling list models`, or another sampler"
)


class Evaluation(Strict):
    """How global models are measured."""

    every: Positive = Field(description="rounds between measurements")
    each_until: int = hashed_if_set(0, "every round up to this one is measured, too", ge=0)
    dropout: bool = Field(False, description="leave dropout on, as some authors' code does")
    training_loss: bool = hashed_if_set(True, "pass over all clients' training data")
    clients: bool = hashed_if_set(
        False, "quantiles of the accuracy over clients, and how evenly they take part"
    )
    by_client: bool = hashed_if_set(
        False, "each client's rounds and weight, and the final model on its own samples"
    )
    selections: bool = hashed_if_set(
        False, "who was selected in each round, its weight and seconds, and whether it reported"
    )
    thin: bool = hashed_if_set(
        False, "sum bits and seconds between measurements, and keep no other cost"
    )
    full_update: Positive | None = hashed_if_set(
        None,
        "rounds between comparisons of the update with that of full participation, each of which "
        "costs a round with all clients; null: none",
    )


class Precision(Strict):
    """Single precision, the only choice; part of the hashes of all runs."""

    tf32: Literal[False] = False
    bf16: Literal[False] = False


class Training(Strict):
    """How a network is trained, for any data."""

    inputs: Literal["unit", "centred", "raw", "tokens"] = Field(
        description="conversion of stored samples: x/255, (x/255 − 1/2)/(1/2), x, or integers"
    )
    model: Model
    work: LocalWork
    server_step: PositiveFloat = Field(1.0, description="η_g")
    server: Server | None = hashed_if_set(None, "the server's optimiser; null: averaging")
    sampler: NetworkScheme
    rounds: Positive
    evaluation: Evaluation
    precision: Precision = Precision()
    problem_seed: Seed = Field(
        0, description="draws partition, delays and availability: the same for all seeds"
    )
    delays: DelayModel | None = Field(None, description="the clients' seconds; null: no clock")
    feature_batch: Positive = Field(
        100, description="samples of a client's batch, where a scheme needs their features"
    )
    feature_cutoff: Literal["float64", "float32"] = hashed_if_set(
        "float64", "precision whose ε is the pseudo-inverse's cutoff for the features' moments"
    )
    feature_renewal: Literal["participants", "everyone"] = hashed_if_set(
        "participants", "whose features a round renews"
    )
    request: Literal["round", "passes"] = hashed_if_set(
        "round",
        "delay of a request before the round: the client's whole delay, or the part for the "
        "passes over data that the request needs",
    )
    availability: Availability | None = hashed_if_set(
        None, "which clients are there in a round; null: all"
    )
    failures: Failures | None = hashed_if_set(
        None, "which selected clients report, and how long the server waits; null: all report"
    )
    until: Until | None = hashed_if_set(None, "condition that ends a run early; null: none")

    @model_validator(mode="after")
    def _check_combinations(self) -> "Training":
        if self.availability and not self.sampler.intermittent:
            is_ours = type(self.sampler).__module__.startswith("fedsampling.")
            fix = (
                "use another sampler (docs/schemes.md lists them)"
                if is_ours
                else "set intermittent = True in its class if it selects only from view.offered"
            )
            raise ValueError(
                f"sampler.name: {self.sampler.named} requires every client to be "
                f"available in every round; {fix}, or remove availability"
            )
        if "delays" in self.sampler.needs and self.delays is None:
            raise ValueError(
                f"sampler.name: {self.sampler.named} needs the clients' delays, which are missing; "
                "set delays, such as synthetic, or use another sampler"
            )
        self._check_failures()
        if isinstance(self.model, ModelFile) and "heterogeneity" in self.sampler.needs:
            raise ValueError(OPAQUE.format(self.sampler.named))
        if self.evaluation.by_client and self.until:
            raise ValueError(
                "evaluation.by_client: measures the models after the last round, before which "
                "until may end a run; remove one of the two"
            )
        return self

    def _check_failures(self) -> None:
        """Raise ValueError if a setting of the failures has no effect."""
        if self.failures is None:
            return
        for key in ("deadline", "first"):
            if getattr(self.failures, key) is not None and self.delays is None:
                raise ValueError(
                    f"failures.{key}: no effect without delays; set delays, such as synthetic, or "
                    f"remove failures.{key}"
                )
        first, selected = self.failures.first, self.sampler.expected_clients(2**31, self.rounds)
        if first is not None and first >= selected:
            raise ValueError(
                f"failures.first: {first} is no less than the {selected:g} clients that sampler "
                f"{self.sampler.named} selects; select more, or remove failures.first"
            )

    def least_bytes(self, seeds: int, d: int) -> float:
        """Return a lower bound on the bytes for models, updates and the batches of a round."""
        slots, work = self.sampler.expected_clients(1, self.rounds), self.work
        rows = work.batch * (2 * (work.steps or 0) + (work.epochs or 0))
        return seeds * (4.0 * d * (2 + slots) + 8.0 * slots * rows)

    def check_memory(self, seeds: int, d: int, n: int) -> None:
        """Raise InputError if the models or the pairs of n clients exceed the memory."""
        check_pairs(self.sampler, n, memory.available())
        reports = 4.0 * seeds * n * d * ("gradients" in self.sampler.needs)
        least = self.least_bytes(seeds, d) + pair_bytes(self.sampler, n) + reports
        if line := memory.lacking(least):
            raise InputError(line)

    def on(
        self,
        problem: FederatedDataset,
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
        network: "StackedNetwork | None" = None,
        metrics: "Mapping[str, Metric] | None" = None,
        watch: Watch | None = None,
        variants: Sequence["Training"] = (),
    ) -> list["pd.DataFrame"]:
        """Train all seeds of a job together; return a table for each.

        `data`: source of the delays' data. `progress`: called with the number of finished rounds.
        `network`: replaces the network that the settings' model builds. `metrics`: of the user, as
        in :mod:`fedsampling.learning.training.evaluation`. `watch`: see
        :func:`fedsampling.learning.training.loop.train`. `variants`: settings of each run in
        `seeds`, which differ in learning rates; see :meth:`stacks_with`.
        """
        from fedsampling.learning.models.devices import keep_memory, precise
        from fedsampling.learning.training.evaluation import evaluate, on_own_samples
        from fedsampling.learning.training.observing import observations_for
        from fedsampling.learning.training.own_metrics import measure

        keep_memory()
        learner = build_learner(self, problem, data, context, network)
        if variants:
            learner.learning_rates = np.array([variant.work.step for variant in variants])
            learner.server_step = np.array([variant.server_step for variant in variants])
        self.check_memory(len(seeds), learner.network.dimension, problem.n_clients)
        sampler = build_sampler(self, learner, seeds)
        features = self.feature_batch, stream(self.problem_seed, "features")
        learner.observations = observations_for(
            self.sampler, learner, *features, self.feature_cutoff, self.feature_renewal
        )
        measured = self.evaluation.model_dump(include={"dropout", "training_loss", "clients"})
        every, each_until = self.evaluation.every, self.evaluation.each_until

        def by_client(moment: Moment) -> None:
            if moment.ending:
                final = on_own_samples(learner, moment.theta, self.evaluation.dropout)
                rounds = learner.by_client_metrics(moment.round)
                moment.history.by_client = {**rounds, **final}

        def keep_selections(moment: Moment) -> None:
            moment.history.selections = learner.selections

        def check_names(moment: Moment) -> None:
            if moment.round == 1:  # the first costs are known
                moment.history.check_names()

        def measure_all(theta: Any, _: Prepared) -> Mapping[str, Array]:
            return evaluate(learner, theta, **measured)

        callbacks: list[Callback] = [measuring(every, measure_all, each_until)]
        if metrics:
            users = partial(measure, learner, metrics)
            callbacks.append(measuring(every, lambda theta, _: users(theta), each_until))
        callbacks += [check_names, lambda moment: progress(moment.round)]
        if self.until:
            callbacks.append(self.until.end)
        if watch:
            callbacks.append(ended_by(watch))
        if self.evaluation.by_client:
            callbacks.append(by_client)
        if self.evaluation.selections:
            callbacks.append(keep_selections)
        with precise(context.device):
            history = train(learner, sampler, seeds, self.rounds, callbacks, context.checkpoint)
        context.notes["stack"] = learner.stack
        learner.network.verify()
        return history.tables("since measurement" if self.evaluation.thin else "each")


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
        tables = self.on(problem, data, seeds, context, progress, variants=differing)
        return Simulated(tables, problem.inputs, problem.unverified)


def load_problem(settings: NetworkSimulation, data: str, context: RunContext) -> FederatedDataset:
    """Generate or read the data and partition them; split off the holdout, if there is one."""
    seed = settings.problem_seed
    problem = settings.dataset.load(data, seed, context.cache, context.mirror)
    if settings.holdout is None:
        return problem
    with naming("holdout"):
        return hold_out(problem, settings.holdout, stream(seed, "holdout"))


def load_trace(
    settings: Training, clients: int, labels: Ints | None = None, names: NDArray[Any] | None = None
) -> Bools | None:
    """Draw the available clients, shape (rounds, clients); None if all are always available."""
    model = settings.availability
    if model is None:
        return None
    return model.trace(settings.problem_seed, settings.rounds, clients, labels, names)


def build_learner(
    settings: Training,
    problem: FederatedDataset,
    data: str,
    context: RunContext,
    network: "StackedNetwork | None" = None,
) -> "NetworkLearner":
    """Combine network, data, local work, delays, failures and availability."""
    from fedsampling.learning.training.launches import slot_bytes
    from fedsampling.learning.training.learner import NetworkLearner
    from fedsampling.learning.training.participation import Participation
    from fedsampling.learning.training.selections import Selections

    torch.backends.cudnn.allow_tf32 = False  # a GPU computes in single precision, as a CPU does
    network = network or settings.model.build(problem.x.shape[1:], problem.classes)
    work = settings.work.for_rounds(settings.rounds)
    labels = None if problem.classes is None else problem.label_counts().argmax(1)
    names = np.asarray(problem.names or range(problem.n_clients))
    delays = None
    if model := settings.delays:
        simulated = model.network(data, context.cache, context.mirror)
        size = problem.n_samples, 4.0 * network.dimension, settings.rounds
        delays = model.for_clients(settings.problem_seed, simulated, names, *size)
    reporting = None
    if settings.failures:
        reporting = settings.failures.reporting(names, settings.rounds, delays)
    return NetworkLearner(
        network,
        problem,
        work,
        settings.inputs,
        server_step=settings.server_step,
        device=context.device,
        activation_bytes=slot_bytes(network, problem.x.shape[1:], work, context.device),
        delays=delays,
        reporting=reporting,
        trace=load_trace(settings, problem.n_clients, labels, names),
        participation=Participation(
            evenness=settings.evaluation.clients, by_client=settings.evaluation.by_client
        ),
        selections=Selections() if settings.evaluation.selections else None,
        full_update=settings.evaluation.full_update,
        server=settings.server,
        feature_batch=settings.feature_batch if settings.request == "passes" else None,
    )


def check_pairs(sampler: Scheme, n: int, max_bytes: float) -> None:
    """Raise InputError if a sampler's matrices of all pairs of n clients exceed `max_bytes`."""
    if (stored := pair_bytes(sampler, n)) > max_bytes:
        raise InputError(
            f"sampler: {sampler.named} compares all pairs of {n:,} clients, which needs "
            f"{stored / 1e9:,.0f} GB; must be at most {int(n * (max_bytes / stored) ** 0.5):,} "
            "clients here"
        )


def pair_bytes(sampler: Scheme, n: int) -> float:
    """Return the bytes of a sampler's matrices of all pairs of n clients."""
    return 8.0 * sampler.pair_matrices * n**2


def build_sampler(settings: Training, learner: "NetworkLearner", seeds: Sequence[int]) -> Prepared:
    """Prepare the sampler of the settings, with the labels only if it declares to need them."""
    needs = settings.sampler.needs
    setup = Setup(
        learner.n_samples,
        learner.p,
        len(seeds),
        labels=learner.labels if "labels" in needs else None,
        label_counts=learner.label_counts if "label_counts" in needs else None,
        dimension=learner.network.dimension,
        delays=None if learner.delays is None else learner.delays.mean,
        info=learner.data.info,
    )
    if "bias_updates" in settings.sampler.needs and not learner.network.biases:
        raise InputError(
            f"sampler.name: {settings.sampler.named} needs the bias of the output layer, which "
            f"model {learner.network.name} does not have; use another model or sampler"
        )
    try:
        return prepared(settings.sampler, setup)
    except CodeError as error:
        if "NoneType" in str(error):
            raise CodeError(
                f"{error}; `needs` must list labels and label_counts to get them"
            ) from error
        raise
