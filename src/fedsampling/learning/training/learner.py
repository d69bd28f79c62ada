"""The learner for networks: what a sampler observes, local training, the server's step, costs.

:mod:`.stacks` trains the slots of a round.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws, stream
from fedsampling.clients.delays import Delays
from fedsampling.clients.failures import Outcome, Reporting, draw
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.devices import stack_bytes
from fedsampling.learning.models.network import Network
from fedsampling.learning.training.costs import bits, request_shares, seconds, wasted
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.loop import Learner
from fedsampling.learning.training.participation import Participation, participation
from fedsampling.learning.training.samples import DeviceSamples, Inputs
from fedsampling.learning.training.selections import Selections
from fedsampling.learning.training.server_optimisers import Server
from fedsampling.learning.training.stacks import Stacks
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Reports, Slots

MOMENTS = ("server m", "server v")  # names in a checkpoint


@dataclass
class NetworkLearner(Learner):
    """Networks; θ is a tensor of shape [runs, size].

    A copy's vector is its d parameters and, for users' modules, its buffers.  Samplers and server
    optimisers see only parameters.  Buffers are averaged: the server's are those of the slots,
    with weights ω_i normalised to sum 1, as FedAvg averages the statistics of BatchNorm.

    References: McMahan et al.: Communication-efficient learning of deep networks from decentralized
    data. AISTATS 2017 (FedAvg averages the whole model). Li et al.: FedBN. ICLR 2021 (clients that
    keep their statistics, which this class does not support).
    """

    network: Network
    data: FederatedDataset
    local: LocalWork
    inputs: Inputs = "unit"  # conversion of stored samples; see :class:`.samples.DeviceSamples`
    server_step: float | Array = 1.0  # shape (runs,): η_g
    server: Server | None = None  # server optimiser; by default plain averaging
    device: str = "cpu"  # PyTorch's name of the device
    # estimated bytes of one slot's step; stacks are split so that they fit into the device's memory
    activation_bytes: int = 1
    # shape (rounds, n): the clients available in each round; all by default
    trace: Bools | None = None
    delays: Delays | None = None  # seconds of the clients
    reporting: Reporting | None = None  # which selected clients report; all by default
    # number of samples whose features are sent.  If set, a request before the round is charged for
    # the passes over data that it needs; otherwise for the client's whole delay
    feature_batch: int | None = None
    # counts how often each client takes part
    participation: Participation = field(default_factory=Participation)
    selections: Selections | None = None  # records who was selected
    # rounds between comparisons of the update with the update of all clients
    full_update: int | None = None
    # the information that the sampler needs before it selects, each a
    # :class:`fedsampling.learning.training.observing.Observation`
    observations: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.label_counts = None if self.data.classes is None else self.data.label_counts()
        self.labels = None if self.label_counts is None else self.label_counts.argmax(1)
        self.samples = DeviceSamples(self.data, self.inputs, self.device)
        size = max(1, int(stack_bytes(self.device) // self.activation_bytes))
        self.stacks = Stacks(self.network, self.data, self.local, self.samples, self.device, size)
        self.chance = None if self.reporting is None else self.reporting.chance
        # Of the last round:
        self.training_costs: dict[str, Array] = {}
        self.work_losses: Array = np.empty(0)
        self.selected: Slots | None = None  # in runs with failures
        self.outcome: Outcome | None = None
        self.step_taken: tuple[Tensor, Tensor]  # the models before and after the server's step
        # Of the server's optimiser:
        self.moments: tuple[Tensor, Tensor] | None = None

    def start(self, seeds: Ints) -> Tensor:
        """Draw each run's first model, from its own seed."""
        self.participation.start(len(seeds), len(self.p))
        models = [self.network.initial(stream(int(seed), "model")) for seed in seeds]
        return torch.from_numpy(np.stack(models)).to(self.device)

    def offered(self, round: int) -> Ints:
        """Return the clients that are available in a round."""
        return super().offered(round) if self.trace is None else np.flatnonzero(self.trace[round])

    def awaited(self, slots: Slots, rng: Draws) -> Reports | None:
        """Return which of the selected slots report; None if clients never fail."""
        if self.reporting is None:
            return None
        self.selected = slots
        self.outcome = draw(self.reporting, slots.run, slots.client, rng)
        return Reports(slots, self.outcome.reported, self.chance)

    def observe(
        self, needs: Set[str], theta: Tensor, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""
        observed = {
            name: observation(theta, offered)
            for name, observation in self.observations.items()
            if name in needs
        }
        if "delays" in needs and self.delays is not None:
            observed["delays"] = self.delays.mean
        return observed

    def work(self, theta: Tensor, slots: Slots, sampler: Prepared, rng: Draws) -> Tensor:
        """Run every slot's local SGD; return trained minus first models, shape [slots, d]."""
        if not len(slots):
            self.work_losses = np.empty(0)
            # As in a round in which only some runs of a job have clients.
            nothing = {name: np.zeros(len(theta)) for name in ("train_loss", "gradients")}
            self.training_costs = nothing | self._observation_bits(theta, slots, sampler)
            return theta.new_empty(0, theta.shape[1])
        updates, losses = self.stacks.train(theta, slots, rng)
        self.work_losses = np.sqrt(losses.squares / np.maximum(losses.samples, 1))
        samples = np.bincount(slots.run, losses.samples, len(theta))
        total = np.bincount(slots.run, losses.total, len(theta))
        self.training_costs = {
            "train_loss": total / np.maximum(samples, 1),
            "gradients": samples.astype(np.float64),
            **self._observation_bits(theta, slots, sampler),
        }
        return updates

    def _parameters(self, vectors: Tensor) -> Tensor:
        """Return the parameters in the vectors of models, [..., d]."""
        return vectors[:, : self.network.dimension]

    def _observation_bits(self, theta: Tensor, slots: Slots, sampler: Prepared) -> dict[str, Array]:
        """Update the participants' reports; return the bits of all observations, shape (runs,)."""
        observations = [part for name, part in self.observations.items() if name in sampler.needs]
        for observation in observations:
            observation.renew(theta, slots)
        sent = [observation.bits(sampler.asked()) for observation in observations]
        if "work_losses" in sampler.needs:  # one number for each slot, sent with its update
            sent.append(32.0 * np.bincount(slots.run, minlength=len(theta)))
        return {"observation_bits": sum(sent)} if sent else {}

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values).to(self.device, torch.float32)

    def report(self, needs: Set[str], updates: Tensor) -> Mapping[str, Any]:
        """Compute the observations of the updates that a sampler needs before it weighs."""
        report: dict[str, NDArray[Any]] = {}
        updates = self._parameters(updates)
        if "updates" in needs:
            report["updates"] = updates.cpu().numpy()
        if "update_norms" in needs:
            report["update_norms"] = updates.double().norm(dim=1).cpu().numpy()
        if "work_losses" in needs:
            report["work_losses"] = self.work_losses
        if "bias_updates" in needs:
            report["bias_updates"] = updates[:, -self.network.biases :].double().cpu().numpy()
        return report

    def advance(
        self,
        theta: Tensor,
        updates: Tensor,
        slots: Slots,
        omega: Array,
        added: NDArray[np.float32] | None = None,
    ) -> Tensor:
        """Return θ + η_g (Σ ω_i (θ_i − θ) + added).

        Runs are added one by one, because one matrix product of all runs rounds differently.
        """
        vectors, theta = theta, self._parameters(theta)
        moved = theta.clone()
        if added is not None:
            rates = self._tensor(np.full(len(theta), self.server_step))
            moved += rates[:, None] * torch.from_numpy(added).to(self.device)
        weight = self._tensor(self._server_step_of(slots.run) * omega)
        ends = np.searchsorted(slots.run, np.arange(len(theta) + 1))
        before = vectors[:, self.network.dimension :]
        buffers = before.clone()
        for run, (begin, end) in enumerate(pairwise(ends)):
            moved[run] += weight[begin:end] @ self._parameters(updates)[begin:end]
            if buffers.shape[1]:
                trained = updates[begin:end, self.network.dimension :]
                positive = np.maximum(omega[begin:end], 0)  # statistics need a convex average
                shares = self._tensor(positive / max(positive.sum(), 1e-300))
                buffers[run] += shares @ (trained - buffers[run])
        self.step_taken = _joined(theta, before), _joined(moved, buffers)
        if self.server is None:
            return self.step_taken[1]
        if self.moments is None:
            self.moments = self.server.start(theta)
        step = float(self.server_step)  # the same for all runs, where the server has an optimiser
        change = (moved - theta).div_(step)
        return _joined(theta + step * self.server.step(change, *self.moments), buffers)

    def _server_step_of(self, run: Ints | int) -> Array | float:
        """Return η_g of some runs."""
        step = self.server_step
        return step[run] if isinstance(step, np.ndarray) else step

    def finite(self, theta: Tensor) -> Bools:
        """Return which runs have a finite model."""
        return np.asarray(torch.isfinite(theta).all(dim=1).cpu().numpy())

    def reset(self, theta: Tensor, lost: Bools) -> Tensor:
        """Set the models of diverged runs to zero."""
        theta[torch.from_numpy(lost).to(self.device)] = 0.0
        return theta

    def charge(
        self, sampler: Prepared, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count costs and participants of the round; see :mod:`.costs`.

        Returns shape (runs,): in addition to participation, bits and seconds: ``gradients``, the
        number of per-sample gradients; ``train_loss``, the mean loss over local training;
        ``observation_bits`` for the sampler's observations; if requested,
        :func:`.participation.evenness` and the comparison with the update of all clients; and the
        sampler's own measurements.
        """
        runs, offered = len(rng.seeds), self.offered(rng.round)
        costs = {
            **participation(slots, omega, self.labels, runs),
            **bits(sampler, slots, omega, self.network.size, runs, self._labels_sent(rng.round)),
            **self.training_costs,
        }
        if self.delays is not None:
            shares = None
            if self.feature_batch is not None:
                trained = self.local.samples(self.n_samples)
                shares = request_shares(
                    sampler.needs, self.n_samples, trained, self.feature_batch, self.local.batch
                )
            costs |= seconds(sampler, slots, self.delays, offered, rng, shares)
        if self.selected is not None and self.outcome is not None:
            has_clock = self.delays is not None
            costs |= wasted(self.selected, slots, self.outcome, self.network.size, has_clock)
        if self.trace is not None:
            costs["offered"] = np.full(runs, float(len(offered)))
        costs |= self.participation.count(slots, omega)
        if self.selections is not None:
            of_failures = self.selected, self.outcome
            self.selections.add(rng, slots, omega, self.delays, *of_failures)
        if self.full_update and rng.round % self.full_update == 0:
            costs |= self._compare_with_full_update(rng)
        measured = sampler.measured()
        if clash := sorted(costs.keys() & measured):
            raise InputError(
                f"sampler {sampler.named}: measured returns {clash[0]!r}, which the server counts; "
                "use another name"
            )
        return {**costs, **measured}

    def _labels_sent(self, round: int) -> int:
        """Return how many numbers of label counts all clients send in a round: in the first one."""
        return 0 if round or self.label_counts is None else self.label_counts.size

    def _compare_with_full_update(self, rng: Draws) -> Mapping[str, Array]:
        """Compare the update of a round with Σ p_i U_i over all available clients.

        Returns shape (runs,): ``update_error``, ‖Σ ω_i U_i − Σ p_i U_i‖²; ``update_square``, ‖Σ p_i
        U_i‖²; and ``update_cosine``, the cosine between the two updates.
        """
        theta, moved = self.step_taken
        offered = self.offered(rng.round)
        p = self._tensor(self.p[offered] / self.p[offered].sum()).double()
        rows = []
        for run, after in enumerate(moved):
            everyone = Slots(np.full(len(offered), run), offered, np.ones(len(offered)))
            full = p @ self._parameters(self.stacks.train(theta, everyone, rng)[0]).double()
            d = self.network.dimension
            update = (after - theta[run])[:d].double() / self._server_step_of(run)
            error, full_square = (update - full).square().sum(), full.square().sum()
            norms = (full_square * update.square().sum()).sqrt()
            cosine = update @ full / norms.clamp(min=1e-300)
            rows.append(torch.stack([error, full_square, cosine]).cpu().numpy())
        names = ("update_error", "update_square", "update_cosine")
        return dict(zip(names, np.stack(rows, axis=1), strict=True))

    def by_client_metrics(self, rounds: int) -> Mapping[str, Array]:
        """Return each client's participation in the first `rounds` rounds, shape (runs, n)."""
        n = len(self.p)
        offered = np.full(n, rounds) if self.trace is None else self.trace[:rounds].sum(0)
        return self.participation.by_client_metrics(self.data, offered)

    def state(self, theta: Tensor) -> Mapping[str, NDArray[Any]]:
        """Return θ and everything that is remembered about the clients."""
        parts = self._remembering()
        remembered = {
            f"{name}/{key}": value
            for name, part in parts.items()
            for key, value in part.state().items()
        }
        moments = [m.cpu().numpy() for m in self.moments or ()]
        vectors, d = theta.cpu().numpy(), self.network.dimension
        return {
            "theta": vectors[:, :d],
            "stack": np.array([self.stacks.size, self.stacks.halved]),
            **({"buffers": vectors[:, d:]} if self.network.buffers else {}),
            **dict(zip(MOMENTS, moments, strict=False)),  # none without an optimiser
            **remembered,
        }

    def _remembering(self) -> dict[str, Any]:
        """Return the parts that remember something about the clients."""
        recorded = {} if self.selections is None else {"selections": self.selections}
        return {"participation": self.participation, **recorded, **self.observations}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Tensor:
        """Restore a state, and return its θ."""
        for name, part in self._remembering().items():
            part.restore({key: state[f"{name}/{key}"] for key in part.state()})
        self.stacks.size, self.stacks.halved = int(state["stack"][0]), bool(state["stack"][1])
        if MOMENTS[0] in state:
            m, v = (torch.from_numpy(state[name].copy()).to(self.device) for name in MOMENTS)
            self.moments = m, v
        vectors = [state["theta"], *([state["buffers"]] if self.network.buffers else [])]
        return torch.from_numpy(np.concatenate(vectors, axis=1)).to(self.device)


def _joined(parameters: Tensor, buffers: Tensor) -> Tensor:
    """Return the vectors of models; without a copy if they have no buffers."""
    return torch.cat([parameters, buffers], dim=1) if buffers.shape[1] else parameters
