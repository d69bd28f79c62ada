"""Train a network with the settings of an experiment: combine the parts, and run the server loop.

:func:`train_network` trains on clients that are already loaded, for the run kind ``network`` and
for :func:`fedsampling.train`.  The loop is :mod:`fedsampling.learning.training.loop`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import CodeError, InputError
from fedsampling.base.lazy import pd, torch
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.networks.settings import Training
from fedsampling.experiments.simulations.simulation import Progress, RunContext
from fedsampling.learning.training.loop import Callback, Moment, Watch, ended_by, measuring, train
from fedsampling.samplers.protocol.prepared import Prepared, prepared
from fedsampling.samplers.protocol.slots import Setup

if TYPE_CHECKING:
    from fedsampling.learning.models.network import Network
    from fedsampling.learning.training.learner import NetworkLearner
    from fedsampling.learning.training.own_metrics import Metric


@dataclass(frozen=True, kw_only=True)
class Additions:
    """What a caller adds to the settings of a training."""

    progress: Progress = lambda _: None  # called with the number of finished rounds
    network: "Network | None" = None  # replaces the network that the settings' model builds
    # of the user, as in :mod:`fedsampling.learning.training.evaluation`
    metrics: "Mapping[str, Metric] | None" = None
    # may end the job, as in :func:`fedsampling.learning.training.loop.ended_by`
    watch: Watch | None = None


NO_ADDITIONS = Additions()


def train_network(
    settings: Training,
    problem: FederatedDataset,
    data: str,
    seeds: Sequence[int],
    context: RunContext,
    additions: Additions = NO_ADDITIONS,
    variants: Sequence[Training] = (),
) -> list["pd.DataFrame"]:
    """Train all seeds of a job together; return a table for each.

    `data`: source of the delays' data. `variants`: settings of each run in `seeds`, which differ in
    learning rates.
    """
    from fedsampling.learning.models.devices import keep_memory, precise
    from fedsampling.learning.training.observing import observations_for

    keep_memory()
    learner = build_learner(settings, problem, data, context, additions.network)
    if variants:
        learner.stacks.learning_rates = np.array([variant.work.step for variant in variants])
        learner.server_step = np.array([variant.server_step for variant in variants])
    settings.check_memory(len(seeds), learner.network.dimension, problem.n_clients)
    sampler = build_sampler(settings, learner, seeds)
    features = settings.feature_batch, stream(settings.problem_seed, "features")
    learner.observations = observations_for(
        settings.sampler, learner, *features, settings.feature_cutoff, settings.feature_renewal
    )
    callbacks = _callbacks(settings, learner, additions)
    with precise(context.device):
        history = train(learner, sampler, seeds, settings.rounds, callbacks, context.checkpoint)
    context.notes["stack"] = learner.stacks.size
    learner.network.verify()
    return history.tables("since measurement" if settings.evaluation.thin else "each")


def _callbacks(
    settings: Training, learner: "NetworkLearner", additions: Additions
) -> list[Callback]:
    """Return what happens between rounds: measurements, progress, conditions that end the job."""
    callbacks = [*_measurements(settings, learner, additions), _check_names]
    callbacks.append(lambda moment: additions.progress(moment.round))
    if settings.until:
        callbacks.append(settings.until.end)
    if additions.watch:
        callbacks.append(ended_by(additions.watch))
    if settings.evaluation.by_client:
        callbacks.append(_recording_clients(settings, learner))
    if settings.evaluation.selections:
        callbacks.append(_recording_selections(learner))
    return callbacks


def _measurements(
    settings: Training, learner: "NetworkLearner", additions: Additions
) -> list[Callback]:
    """Return the callbacks that measure the global model, also by the user's metrics."""
    from fedsampling.learning.training.evaluation import evaluate
    from fedsampling.learning.training.own_metrics import measure

    evaluation = settings.evaluation
    every, each_until = evaluation.every, evaluation.each_until
    measured = evaluation.model_dump(include={"dropout", "training_loss", "clients"})

    def measure_all(theta: Any, _: Prepared) -> Mapping[str, Array]:
        return evaluate(learner, theta, **measured)

    callbacks = [measuring(every, measure_all, each_until)]
    if additions.metrics:
        users = partial(measure, learner, additions.metrics)
        callbacks.append(measuring(every, lambda theta, _: users(theta), each_until))
    return callbacks


def _check_names(moment: Moment) -> None:
    if moment.round == 1:  # the first costs are known
        moment.history.check_names()


def _recording_clients(settings: Training, learner: "NetworkLearner") -> Callback:
    """Record each client's participation, and the final model on its own samples."""
    from fedsampling.learning.training.evaluation import on_own_samples

    def callback(moment: Moment) -> None:
        if moment.ending:
            final = on_own_samples(learner, moment.theta, settings.evaluation.dropout)
            rounds = learner.by_client_metrics(moment.round)
            moment.history.by_client = {**rounds, **final}

    return callback


def _recording_selections(learner: "NetworkLearner") -> Callback:
    """Record who was selected in each round."""

    def callback(moment: Moment) -> None:
        moment.history.selections = learner.selections

    return callback


def build_learner(
    settings: Training,
    problem: FederatedDataset,
    data: str,
    context: RunContext,
    network: "Network | None" = None,
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
            f"is not the last parameter of model {learner.network.name}; use another model or "
            "sampler, or define that layer last"
        )
    try:
        return prepared(settings.sampler, setup)
    except CodeError as error:
        if "NoneType" in str(error):
            raise CodeError(
                f"{error}; `needs` must list labels and label_counts to get them"
            ) from error
        raise


def load_trace(
    settings: Training, clients: int, labels: Ints | None = None, names: NDArray[Any] | None = None
) -> Bools | None:
    """Draw the available clients, shape (rounds, clients); None if all are always available."""
    model = settings.availability
    if model is None:
        return None
    return model.trace(settings.problem_seed, settings.rounds, clients, labels, names)
