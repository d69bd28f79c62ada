"""Training of the convex models: the learner for the server loop, and local training.

All slots of a round are one computation in NumPy, in double precision.  Slots with fewer epochs
leave the stack when they are finished; smaller batches are padded with weight zero.  There is no
loop over clients or runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Counts, Strict, Variance
from fedsampling.base.streams import Draws, stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.linear import Linear
from fedsampling.samplers.scheme import Batch, DataScheme, Scheme, Slots


class ConvexWork(Strict):
    """Local training of each selected client; ranges are drawn once per client, uniformly.

    With `correct` the step is divided by E_k, as in equation (6) of Rizk et al. 2022, so that
    clients with many epochs do not bias the average.  McMahan et al.'s FedAvg does not divide.
    """

    step: Variance = Field(description="μ")
    epochs: Counts = Field(description="range of E_k")
    batch: Counts = Field(description="range of B_k")
    correct: bool = Field(True, description="divide the step by E_k")

    def draw(self, seed: int, clients: int) -> tuple[Ints, Ints]:
        """Draw each client's epochs E_k and batch size B_k, each of shape (clients,)."""
        return (
            stream(seed, "epochs").integers(*self.epochs, clients, endpoint=True),
            stream(seed, "batch sizes").integers(*self.batch, clients, endpoint=True),
        )


@dataclass(frozen=True)
class ConvexLearner:
    """Convex models as a :class:`~fedsampling.learning.training.loop.Learner`.

    θ has shape (runs, M) and starts at zero. E and B, shape (K,): epochs, and batch size.
    """

    model: Linear
    data: FederatedDataset
    local: ConvexWork
    E: Ints
    B: Ints

    @property
    def n_samples(self) -> Ints:
        """Samples of each client."""
        return self.data.n_samples

    @property
    def p(self) -> Array:
        """Importance of each client."""
        return self.data.p

    def start(self, seeds: Ints) -> Array:
        """Return zeros, the first model of every run."""
        return np.zeros((len(seeds), self.data.x.shape[1]))

    def offered(self, round: int) -> Ints:
        """Return all clients: they are always available."""
        return np.arange(len(self.p))

    def observe(
        self, needs: frozenset[str], theta: Array, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""
        views = {
            "client_gradients": self.model.client_gradients,
            "mean_norms": self.model.mean_norms,
        }
        return {name: view(theta, self.data) for name, view in views.items() if name in needs}

    def work(self, theta: Array, slots: Slots, sampler: Scheme, rng: Draws) -> Array:
        """Run the local training; return the updates, shape (slots, M)."""
        start = theta[slots.run]
        return local_sgd(self, start, slots, sampler, rng) - start

    def report(self, needs: frozenset[str], updates: Array) -> Mapping[str, Any]:
        """Return nothing: these samplers weigh without observing the updates."""
        return {}

    def advance(
        self,
        theta: Array,
        updates: Array,
        slots: Slots,
        omega: Array,
        added: NDArray[np.float32] | None = None,
    ) -> Array:
        """Add the weighted updates of each run to its model, and the sampler's addition."""
        moved = theta + aggregate(omega[:, None] * updates, slots, len(theta))
        return moved if added is None else moved + added

    def finite(self, theta: Array) -> Bools:
        """Return which runs have a finite model."""
        return np.asarray(np.isfinite(theta).all(-1))

    def reset(self, theta: Array, lost: Bools) -> Array:
        """Set the models of diverged runs to zero."""
        return np.where(lost[:, None], 0.0, theta)

    def charge(
        self, sampler: Scheme, slots: Slots, omega: Array, rng: Draws
    ) -> Mapping[str, Array]:
        """Count the costs of a round: bits sent by clients, and gradients they compute.

        Returns shape (runs,): ``uplink_bits``: 32 per coordinate of each reported model, and 32 per
        score sent to the server.  ``gradients``: number of per-sample gradients, including
        gradients that are computed only to choose samples.
        """
        runs = len(rng.seeds)
        k, E, B = slots.client, self.E, self.B
        reports = np.bincount(slots.run, minlength=runs).astype(np.float64)
        bits: Array = 32 * self.data.x.shape[1] * reports
        gradients = np.bincount(slots.run, E[k] * B[k], minlength=runs).astype(np.float64)
        if "batch_gradients" in sampler.needs:
            bits += 32 * reports
            # Each batch is also evaluated at the round's first model, as its first epoch does.
            gradients += np.bincount(slots.run, (E[k] - 1) * B[k], minlength=runs)
        if "client_gradients" in sampler.needs:  # every client reports one score, from all its data
            bits += 32 * self.data.n_clients
            gradients += self.data.n_samples.sum()
        return {"uplink_bits": bits, "gradients": gradients}

    def state(self, theta: Array) -> Mapping[str, NDArray[Any]]:
        """Return θ; nothing else is carried from round to round."""
        return {"theta": theta}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Array:
        """Return the θ of a state."""
        return state["theta"]


def local_sgd(
    learner: ConvexLearner, start: Array, slots: Slots, sampler: Scheme, rng: Draws
) -> Array:
    """Run every slot's local epochs from its first model.

    w_{k,e} = w_{k,e−1} − μ scale/E_k Σ_b weight_b ∇Q_k(w_{k,e−1}; x_b): equation (8) of
    Rizk et al. 2022, with scale = 1/(K p_k) and weight_b = 1/(B_k N_k p_b).

    `start`, shape (slots, M). Returns shape (slots, M): local models.  A sampler of data is passed
    the gradient norms that it needs.
    """
    model, data, work = learner.model, learner.data, learner.local
    E, B = learner.E[slots.client], learner.B[slots.client]
    importance = sampler if isinstance(sampler, DataScheme) else None
    numbers = 1 if importance else int(learner.B.max())  # per epoch: one variate, or one per sample
    u = rng.client_uniforms("batches", slots.run, slots.client, int(learner.E.max()) * numbers)
    u = u.reshape(len(slots), -1, numbers)
    step = work.step * slots.scale / (E if work.correct else 1)
    if importance and "sample_norms" in importance.needs:
        importance.saw_samples(slots, sample_norms(model, data, start, slots.client))
    gradient, squares = np.zeros_like(start), np.zeros(len(slots))
    w = start.copy()
    for e in range(int(E.max())):
        live = np.flatnonzero(e < E)
        part = Slots(slots.run[live], slots.client[live], slots.scale[live])
        if importance:
            batch = importance.batch(part, u[live, e, 0])
        else:
            batch = with_replacement(data.n_samples[part.client], B[live], u[live, e])
        rows = data.start[part.client][:, None] + batch.index
        x, y = data.x.take(rows, axis=0), data.y.take(rows)
        pull = model.gradient(w[live], x, y, batch.weight)
        if importance and "batch_gradients" in importance.needs:
            first = pull if e == 0 else model.gradient(start[live], x, y, batch.weight)
            norms = model.norms(start[live], x, y)
            gradient[live] += first
            squares[live] += ((norms * batch.weight) ** 2).sum(-1)
            importance.saw_batch(part, batch, norms)
        w[live] -= step[live, None] * pull
    if importance and "batch_gradients" in importance.needs:
        # (23) with (1/N²) Σ_n ‖∇Q_n‖²/p_n estimated from the batch: B_k Σ_b (weight ‖∇Q_b‖)².
        observed = {"gradient": gradient / E[:, None], "sigma2": 6 / E**2 * squares}
        importance.saw_round(slots, observed)
    return w


def with_replacement(n_samples: Ints, size: Ints, u: Array) -> Batch:
    """Draw uniform mini-batches with replacement, with weight 1/B_k for each sample."""
    index = (u * n_samples[:, None]).astype(np.int64)
    weight = (np.arange(u.shape[1]) < size[:, None]) / size[:, None]
    return Batch(index, weight)


def sample_norms(model: Linear, data: FederatedDataset, w: Array, client: Ints) -> Array:
    """Compute the gradient norms of all samples of each slot's client, (slots, N_max), 0-padded."""
    position = np.arange(data.n_samples.max())
    present = position < data.n_samples[client][:, None]
    rows = data.start[client][:, None] + np.where(present, position, 0)
    norms = model.norms(w, data.x.take(rows, axis=0), data.y.take(rows))
    return np.where(present, norms, 0.0)


def aggregate(weighted: Array, slots: Slots, runs: int) -> Array:
    """Sum the slots' weighted updates for each run, shape (runs, M)."""
    total = np.zeros((runs, weighted.shape[1]))
    np.add.at(total, slots.run, weighted)
    return total
