"""The learner for networks: local training of all slots of a round as one batched computation.

Parameters have shape [slots, d], batches are gathered by index from one pooled tensor, and there is
no loop over clients.  Slots are sorted by their number of steps, so that finished slots drop off
the end of the stack and no masks are needed.  CPU and GPU run the same code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base import memory
from fedsampling.base.streams import Draws, stream
from fedsampling.clients.delays.delays import Delays
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.networks.network import Network
from fedsampling.learning.training.charges import (
    bits,
    evenness,
    participation,
    request_shares,
    seconds,
)
from fedsampling.learning.training.network.gpu import device
from fedsampling.learning.training.network.local_work import Batches, LocalWork, dropout_keys
from fedsampling.learning.training.network.replay import Replays, Stretch, walk
from fedsampling.learning.training.network.step import keeper, sgd_step
from fedsampling.learning.training.server import Server
from fedsampling.samplers.scheme import Scheme, Slots

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Inputs = Literal["unit", "centred", "raw", "tokens"]

MOMENTS = ("server m", "server v")  # names in a checkpoint
ROOM = 2**30  # bytes of activations that the slots of one stack may use


@dataclass
class Stacked:
    """A :class:`fedsampling.learning.training.loop.Learner`; θ is a tensor of shape [runs, d].

    Parameters
    ----------
    network : Network
    data : FederatedDataset
    local : LocalWork
    inputs : str
        Conversion of stored samples: ``"unit"`` x/255, ``"centred"`` (x/255 − 1/2)/(1/2), ``"raw"``
        x, and ``"tokens"`` integers.
    server_step : float or float array, shape (runs,)
        η_g.
    device : str
        PyTorch's name.
    activation_bytes : int
        Estimated bytes of one slot's step; stacks are split so that they use at most ``ROOM``.
    bf16 : bool
        Compute local steps in bfloat16 where PyTorch's autocast considers it safe.
    delays : Delays, optional
        Seconds of the clients.
    trace : bool array, shape (rounds, n), optional
        The clients available in each round; all by default.
    counting : bool
        Record how evenly clients take part.
    by_client : bool
        Count each client's rounds and sum its weights, for :meth:`tallies`.
    full_update : int, optional
        Rounds between comparisons of the update with the update of all clients.
    converted_share : float
        Fraction of the free memory that converted samples may use.
    server : Server, optional
        Server optimiser; by default plain averaging.
    feature_batch : int, optional
        Number of samples whose features are sent.  If set, a request before the round is charged
        for the passes over data that it needs; otherwise for the client's whole delay.
    steps : float array, shape (runs,), optional
        Local learning rate of each run; by default the rate in `local`.
    sights : dict
        The sampler's observations, each a
        :class:`fedsampling.learning.training.network.observing.Sight`.
    """

    network: Network
    data: FederatedDataset
    local: LocalWork
    inputs: Inputs = "unit"
    server_step: float | Array = 1.0
    device: str = "cpu"
    activation_bytes: int = 1
    bf16: bool = False
    delays: Delays | None = None
    trace: NDArray[np.bool_] | None = None
    counting: bool = False
    by_client: bool = False
    full_update: int | None = None
    converted_share: float = 0.0
    server: Server | None = None
    feature_batch: int | None = None
    steps: Array | None = None
    sights: dict[str, Any] = field(default_factory=dict)
    costs: dict[str, Array] = field(default_factory=dict)
    work_losses: Array = field(default_factory=lambda: np.empty(0))
    took: Array = field(default_factory=lambda: np.empty((0, 0)))
    weight_sums: Array = field(default_factory=lambda: np.empty((0, 0)))
    step_taken: tuple[Tensor, Tensor] = field(init=False)
    moments: tuple[Tensor, Tensor] | None = None
    walk: Callable[[Stretch], None] = field(init=False)
    _converted: dict[int, Tensor | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.walk = partial(walk, self._step)
        if record := device(self.device).record:
            self.walk = Replays(self._step, record).run
        self.n_samples, self.p = self.data.n_samples, self.data.p
        self.x = torch.from_numpy(self.data.x).to(self.device)
        self.y = torch.from_numpy(self.data.y).to(self.device)
        self.label_counts = None if self.data.classes is None else self.data.label_counts()
        self.labels = None if self.label_counts is None else self.label_counts.argmax(1)
        if self.y.is_floating_point():
            self.y = self.y.float()

    def convert(self, x: Tensor) -> Tensor:
        """Convert stored samples to the network's inputs."""
        if self.inputs == "tokens":
            return x.long()
        if self.inputs == "raw":
            return x.float()
        unit = x.to(torch.float32, copy=True).div_(255)
        return unit if self.inputs == "unit" else unit.sub_(0.5).div_(0.5)

    def converted(self, x: Tensor) -> Tensor | None:
        """Convert all of `x` and keep the result; return None if that takes too much memory.

        Parameters
        ----------
        x : tensor
            Stored samples that stay in place as long as this learner exists.
        """
        if self.device != "cpu":
            return None
        if (key := x.data_ptr()) not in self._converted:
            fits = 4 * x.numel() <= self.converted_share * memory.free()
            self._converted[key] = self.convert(x) if fits else None
        return self._converted[key]

    def start(self, seeds: Ints) -> Tensor:
        """Draw each run's first model, from its own seed."""
        if self.counting or self.by_client:
            self.took = np.zeros((len(seeds), len(self.p)))
        if self.by_client:
            self.weight_sums = np.zeros((len(seeds), len(self.p)))
        drawn = [self.network.initial(stream(int(seed), "model")) for seed in seeds]
        return torch.from_numpy(np.stack(drawn)).to(self.device)

    def offered(self, round: int) -> Ints:
        """Return the clients that are available in a round."""
        return np.arange(len(self.p)) if self.trace is None else np.flatnonzero(self.trace[round])

    def observe(
        self, needs: frozenset[str], theta: Tensor, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""
        observed = {
            name: self.sights[name](theta, offered) for name in self.sights if name in needs
        }
        if "delays" in needs and self.delays is not None:
            observed["delays"] = self.delays.mean
        return observed

    def work(
        self,
        theta: Tensor,
        slots: Slots,
        sampler: Scheme,
        rng: Draws,
        start: NDArray[np.floating] | None = None,
    ) -> Tensor:
        """Run every slot's local SGD; return trained minus first models, shape [slots, d].

        Parameters
        ----------
        start : float array, shape (slots, d), optional
            The slots' first models; by default their run's global model.
        """
        if not len(slots):
            self.costs, self.work_losses = {}, np.empty(0)
            return theta.new_empty(0, theta.shape[1])
        first = None if start is None else torch.from_numpy(start).to(theta)
        updates, losses, squares, total = self._train(theta, slots, rng, first)
        self.work_losses = np.sqrt(squares / np.maximum(total, 1))
        runs = len(theta)
        weight = np.bincount(slots.run, total, runs)
        self.costs = {
            "train_loss": np.bincount(slots.run, losses, runs) / np.maximum(weight, 1),
            "gradients": weight.astype(np.float64),
        }
        sights = [self.sights[name] for name in self.sights if name in sampler.needs]
        for sight in sights:
            sight.renew(theta, slots)
        sent = [sight.bits(sampler.asked()) for sight in sights]
        if "work_losses" in sampler.needs:  # one number for each slot, sent with its update
            sent.append(32.0 * np.bincount(slots.run, minlength=runs))
        if sent:
            self.costs["observation_bits"] = sum(sent)
        if "updates" in sampler.needs:
            sampler.saw_updates(slots, updates.cpu().numpy())
        return updates

    def _train(
        self, theta: Tensor, slots: Slots, rng: Draws, first: Tensor | None = None
    ) -> tuple[Tensor, Array, Array, Ints]:
        """Train all slots, in stacks that fit into memory.

        Parameters
        ----------
        first : tensor, shape [slots, d], optional
            Each slot's first model; by default its run's model.

        Returns
        -------
        updates : Tensor
        losses, squares : float array, shape (slots,)
            See :meth:`_descend`.
        total : int array, shape (slots,)
            Number of samples in each slot's batches.
        """
        plan = self.local.batches(self.n_samples[slots.client], slots, rng)
        count = (plan.size > 0).sum(0)
        order = np.argsort(-count, kind="stable")
        updates = theta.new_empty(len(slots), theta.shape[1])
        losses, squares = np.zeros(len(slots)), np.zeros(len(slots))
        chunk = max(1, int(ROOM // self.activation_bytes))
        for begin in range(0, len(slots), chunk):
            part = order[begin : begin + chunk]
            rows = theta[torch.from_numpy(slots.run[part])] if first is None else first[part]
            updates[part], losses[part], squares[part] = self._descend(rows, slots, plan, part, rng)
        return updates, losses, squares, plan.size.sum(0)

    def _descend(
        self, start: Tensor, slots: Slots, plan: Batches, part: Ints, rng: Draws
    ) -> tuple[Tensor, Array, Array]:
        """Train the slots of `part`, sorted by decreasing number of steps, from their first models.

        Returns
        -------
        updates : Tensor
        losses, squares : float array, shape (slots of `part`,)
            Mean loss of each mini-batch, and its square, summed over samples.
        """
        client = slots.client[part]
        w = start.clone()
        velocity = torch.zeros_like(w) if self.local.momentum else w.new_empty(len(w), 0)
        size = plan.size[:, part]
        rows = self.data.start[client][:, None] + plan.index[:, part]
        present = np.arange(rows.shape[2]) < size[..., None]
        weight = self._tensor(present / np.maximum(size, 1)[..., None])
        step = self._tensor(self.local.steps_of(slots, rng.round, self.steps)[part])[:, None]
        keys = torch.from_numpy(dropout_keys(slots, rng)[part]).to(self.device)
        batches = torch.from_numpy(rows).to(self.device)
        losses = torch.zeros(size.shape, device=self.device)
        live = (size > 0).sum(1)
        ends = [*np.flatnonzero(np.diff(live)) + 1, len(live)]
        for begin, end in pairwise([0, *ends]):
            if n := live[begin]:
                now = np.s_[begin:end, :n]
                arrays = w[:n], start[:n], velocity[:n], step[:n], keys[:n]
                first = torch.tensor(begin, device=self.device)
                self.walk(Stretch(*arrays, batches[now], weight[now], first, losses[now]))
        mean = losses.cpu().double().numpy()
        return w.sub_(start), (mean * size).sum(0), (mean**2 * size).sum(0)

    def _step(
        self, w: Tensor, start: Tensor, velocity: Tensor, step: Tensor, keys: Tensor, rows: Tensor,
        weight: Tensor, number: Tensor,
    ) -> Tensor:  # fmt: skip
        """Take a local step of each slot, with the signature that :mod:`.replay` requires."""
        x, y = self.gather(rows)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            keep = keeper(keys, number)
            return sgd_step(self.network, self.local, w, start, velocity, step, x, y, weight, keep)

    def _tensor(self, values: Array) -> Tensor:
        return torch.from_numpy(values).to(self.device, torch.float32)

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of pooled rows [slots, B]."""
        flat = rows.flatten()
        x = self.x.index_select(0, flat).view(*rows.shape, *self.x.shape[1:])
        y = self.y.index_select(0, flat).view(*rows.shape, *self.y.shape[1:])
        return self.convert(x), y

    def report(self, needs: frozenset[str], updates: Tensor) -> Mapping[str, Any]:
        """Compute the observations of the updates that a sampler needs before it weighs."""
        report: dict[str, Array] = {}
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
        base: NDArray[np.floating] | None = None,
    ) -> Tensor:
        """Return θ + η_g Σ ω_i (θ_i − θ); run by run, since one product would round differently.

        Parameters
        ----------
        added : float array, shape (runs, d), optional
            The sampler's addition to Σ ω_i (θ_i − θ).
        base : float array, shape (runs, d), optional
            Models to step from, in place of θ.
        """
        if base is not None:
            theta = torch.from_numpy(base).to(theta)
        moved = theta.clone()
        if added is not None:
            steps = self._tensor(np.full(len(theta), self.server_step))
            moved += steps[:, None] * torch.from_numpy(added).to(self.device)
        weight = self._tensor(self._server_steps(slots.run) * omega)
        ends = np.searchsorted(slots.run, np.arange(len(theta) + 1))
        for run, (begin, end) in enumerate(pairwise(ends)):
            moved[run] += weight[begin:end] @ updates[begin:end]
        self.step_taken = theta, moved
        if self.server is None:
            return moved
        if self.moments is None:
            self.moments = self.server.start(theta)
        step = float(self.server_step)  # the same for all runs, where the server has an optimiser
        change = (moved - theta).div_(step)
        return theta + step * self.server.step(change, *self.moments)

    def _server_steps(self, run: Ints | int) -> Array | float:
        """Return η_g of some runs."""
        step = self.server_step
        return step[run] if isinstance(step, np.ndarray) else step

    def _against_everybody(self, rng: Draws) -> Mapping[str, Array]:
        """Compare the update of a round with Σ p_i U_i over all available clients.

        Returns
        -------
        mapping of float arrays, shape (runs,)
            ``update_error``, ‖Σ ω_i U_i − Σ p_i U_i‖²; ``update_square``, ‖Σ p_i U_i‖²; and
            ``update_cosine``, the cosine between the two updates.
        """
        theta, moved = self.step_taken
        offered = self.offered(rng.round)
        p = self._tensor(self.p[offered] / self.p[offered].sum()).double()
        angles = []
        for run, after in enumerate(moved):
            everybody = Slots(np.full(len(offered), run), offered, np.ones(len(offered)))
            full = p @ self._train(theta, everybody, rng)[0].double()
            update = (after - theta[run]).double() / self._server_steps(run)
            norms = (update - full).square().sum(), full.square().sum(), update.square().sum()
            cosine = update @ full / (norms[1] * norms[2]).sqrt().clamp(min=1e-300)
            angles.append(torch.stack([*norms[:2], cosine]).cpu().numpy())
        named = ("update_error", "update_square", "update_cosine")
        return dict(zip(named, np.stack(angles, axis=1), strict=True))

    def finite(self, theta: Tensor) -> NDArray[np.bool_]:
        """Return which runs have a finite model."""
        return np.asarray(torch.isfinite(theta).all(dim=1).cpu().numpy())

    def reset(self, theta: Tensor, lost: NDArray[np.bool_]) -> Tensor:
        """Set the models of diverged runs to zero."""
        theta[torch.from_numpy(lost).to(self.device)] = 0.0
        return theta

    def charge(
        self, sampler: Scheme, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count costs and participants of the round; see :mod:`.charges`.

        Returns
        -------
        mapping of float arrays, shape (runs,)
            In addition to participation, bits and seconds: ``gradients``, the number of per-sample
            gradients; ``train_loss``, the mean loss over local training; ``observation_bits`` for
            the sampler's observations; if requested, :func:`.charges.evenness` and the comparison
            with the update of all clients; and the sampler's own measurements.
        """
        runs = len(rng.seeds)
        counted = {
            **participation(slots, omega, self.labels, runs),
            **bits(sampler, slots, omega, self.network.dimension, runs),
            **self.costs,
        }
        if self.delays is not None:
            there, shares = self.offered(rng.round), None
            if self.feature_batch is not None:
                trained = self.local.samples(self.n_samples)
                shares = request_shares(
                    sampler.needs, self.n_samples, trained, self.feature_batch, self.local.batch
                )
            counted |= seconds(sampler, slots, self.delays, there, rng, shares)
        if self.trace is not None:
            counted["offered"] = np.full(runs, float(self.trace[rng.round].sum()))
        if self.counting or self.by_client:
            used = omega != 0
            selected = np.zeros(self.took.shape, np.bool_)
            selected[slots.run[used], slots.client[used]] = True
            self.took += selected
        if self.counting:
            counted |= evenness(self.took)
        if self.by_client:
            np.add.at(self.weight_sums, (slots.run, slots.client), omega)
        if self.full_update and rng.round % self.full_update == 0:
            counted |= self._against_everybody(rng)
        return {**counted, **sampler.measured()}

    def tallies(self, rounds: int) -> Mapping[str, Array]:
        """Return each client's participation in the rounds so far; requires `by_client`.

        Parameters
        ----------
        rounds : int
            Number of finished rounds.

        Returns
        -------
        mapping of float arrays, shape (runs, n)
            ``client_samples``: training samples; ``client_importance``: p_i; ``client_rounds``:
            rounds in which the client's update was used; ``client_weight``: Σ_t ω_i(t), without
            updates that a sampler remembers and adds later; ``client_offered``: rounds in which the
            client was available.
        """
        n = len(self.p)
        facts = {
            "client_samples": self.n_samples,
            "client_importance": self.p,
            "client_offered": np.full(n, rounds)
            if self.trace is None
            else self.trace[:rounds].sum(0),
        }
        of_runs = {
            name: np.tile(np.asarray(values, np.float64), (len(self.took), 1))
            for name, values in facts.items()
        }
        return {**of_runs, "client_rounds": self.took, "client_weight": self.weight_sums}

    def state(self, theta: Tensor) -> Mapping[str, NDArray[Any]]:
        """Return θ and everything that is remembered about the clients."""
        sights = {
            f"{name}/{key}": value
            for name, sight in self.sights.items()
            for key, value in sight.state().items()
        }
        took = {"took": self.took} if self.counting or self.by_client else {}
        if self.by_client:
            took["weight sums"] = self.weight_sums
        arrays = [] if self.moments is None else [m.cpu().numpy() for m in self.moments]
        moments = dict(
            zip(MOMENTS, arrays, strict=False)
        )  # none unless the server has an optimiser
        return {"theta": theta.cpu().numpy(), **moments, **took, **sights}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Tensor:
        """Restore a state, and return its θ."""
        self.took = state.get("took", self.took)
        self.weight_sums = state.get("weight sums", self.weight_sums)
        for name, sight in self.sights.items():
            sight.restore({key: state[f"{name}/{key}"] for key in sight.state()})
        if MOMENTS[0] in state:
            m, v = (torch.from_numpy(state[name].copy()).to(self.device) for name in MOMENTS)
            self.moments = m, v
        return torch.from_numpy(state["theta"]).to(self.device)
