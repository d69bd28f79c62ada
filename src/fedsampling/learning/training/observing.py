"""Information that the server computes only for samplers that need it: losses, features, gradients.

Each class implements one entry of ``needs``; :func:`observations_for` creates those of a sampler.
Called with the global models, such an object returns the observation.  Features and gradients are
requested from all clients once, at the first call, and later only from participants, as in the
papers.  The costs are charged with the round's seconds and bits.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.streams import stream
from fedsampling.learning.models.dropout import everything
from fedsampling.learning.training.evaluation import client_losses
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import fresh
from fedsampling.learning.training.step import sample_losses
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Slots
from fedsampling.theory.heterogeneity import Precision, pairwise, refresh

State = Mapping[str, NDArray[Any]]
Renewal = Literal["participants", "everyone"]


class Observation:
    """An observation of a sampler before it selects.

    `batch`: samples per client, for observations that do not use all of them. `rng`: draws these
    samples.
    """

    remembered: ClassVar[tuple[str, ...]] = ()  # names of its attributes

    def __init__(self, learner: NetworkLearner, batch: int, rng: np.random.Generator) -> None:
        self.learner = learner
        self.sent: Array = np.zeros(0)

    def __call__(self, theta: Tensor, offered: Ints | None = None) -> Array:
        """Return the observation, with a leading axis of runs; of all clients by default."""
        raise NotImplementedError

    def renew(self, theta: Tensor, slots: Slots) -> None:
        """Update the memory with the participants' reports on the models they received."""

    def bits(self, requested: Bools | None = None) -> Array:
        """Return the bits sent since the last call, shape (runs,), by `requested` clients."""
        sent, self.sent = self.sent, np.zeros_like(self.sent)
        return sent

    def state(self) -> State:
        """Return everything that is remembered."""
        return {name: np.asarray(getattr(self, name)) for name in self.remembered}

    def restore(self, state: State) -> None:
        """Restore the result of :meth:`state`."""
        for name in self.remembered:
            setattr(self, name, state[name].copy())


class Losses(Observation):
    """Training loss of every client at the global model, shape (runs, n)."""

    def __call__(self, theta: Tensor, offered: Ints | None = None) -> Array:
        """Return the losses; NaN for clients that are not available."""
        available = np.ones(len(self.learner.p), np.bool_)
        if offered is not None:
            available = np.isin(np.arange(len(available)), offered)
        self.sent = np.full(len(theta), 32.0 * available.sum())
        return np.where(available, client_losses(self.learner, theta), np.nan)

    def bits(self, requested: Bools | None = None) -> Array:
        """Return 32 bits for each client that computed its loss: by default all available ones."""
        sent = super().bits(requested)
        return sent if requested is None else 32.0 * requested.sum(1)


class BatchLosses(Losses):
    """Loss of every client at the global model on a new mini-batch, shape (runs, n)."""

    remembered = ("calls",)

    def __init__(self, learner: NetworkLearner, batch: int, rng: np.random.Generator) -> None:
        super().__init__(learner, batch, rng)
        self.key, self.calls = int(rng.integers(2**31)), 0

    def __call__(self, theta: Tensor, offered: Ints | None = None) -> Array:
        """Return the losses; NaN for clients that are not available."""
        learner, n = self.learner, len(self.learner.p)
        clients = np.arange(n) if offered is None else offered
        B = learner.local.batch
        u = stream(self.key, "batch_losses", int(self.calls)).random((n, 1, B))
        self.calls += 1
        rows = fresh(learner.n_samples, B, u)
        index = learner.data.start[clients][:, None] + rows.index[0, clients]
        x, y = learner.samples.gather(torch.from_numpy(index).to(learner.device))
        sizes = rows.size[0, clients].tolist()
        present = np.arange(index.shape[1]) < rows.size[0, clients][:, None]
        losses = np.full((len(theta), n), np.nan)
        for run, w in enumerate(theta):
            with torch.no_grad():
                models = w[None].expand(len(clients), -1)
                z = learner.network.outputs(models, x, everything, sizes)
                losses_of = sample_losses(learner.network, z, y, everything, sizes)
                by_sample = losses_of.double().cpu().numpy()
            losses[run, clients] = (by_sample * present).sum(1) / present.sum(1)
        self.sent = np.full(len(theta), 32.0 * len(clients))
        return losses


class Heterogeneity(Observation):
    """Feature heterogeneity B_ij of all pairs of clients, shape (runs, n, n).

    Features are the inputs of the last layer for one batch of each client.  The batch is drawn
    once, so B changes only with the model.

    `cutoff`: as in :func:`fedsampling.theory.heterogeneity.pairwise`. `renewal`: clients whose
    features are updated in a round: only participants (other clients' features belong to earlier
    models), or all clients.
    """

    remembered = ("features", "B", "sent")

    def __init__(
        self,
        learner: NetworkLearner,
        batch: int,
        rng: np.random.Generator,
        cutoff: Precision = "float64",
        renewal: Renewal = "participants",
    ) -> None:
        super().__init__(learner, batch, rng)
        self.cutoff, self.renewal = cutoff, renewal
        n = len(learner.p)
        self.rows = fresh(learner.n_samples, batch, rng.random((n, 1, batch)))
        self.features: NDArray[np.float32] = np.empty(0, np.float32)
        self.B: Array = np.empty(0)

    def __call__(self, theta: Tensor, offered: Ints | None = None) -> Array:
        """Return B; the first call computes the features of all clients."""
        if not self.B.size:
            everyone = np.arange(len(self.learner.p))
            self.features = np.stack([self._features(w, everyone) for w in theta])
            self.sent = np.full(len(theta), 32.0 * self.features[0].size)
            self.B = np.stack(self._by_run())
        return self.B

    def renew(self, theta: Tensor, slots: Slots) -> None:
        """Request the features of the participants, or of all clients."""
        for run, w in enumerate(theta):
            clients = np.unique(slots.client[slots.run == run])
            if self.renewal == "everyone":
                clients = np.arange(len(self.learner.p))
            if len(clients):
                features = self._features(w, clients)
                if np.array_equal(features, self.features[run, clients]):
                    continue  # raw features do not change, so neither may B
                self.features[run, clients] = features
                self.sent[run] += 32 * features.size
                self.B[run] = refresh(self.B[run], self.features[run], clients, cutoff=self.cutoff)

    def _by_run(self) -> list[Array]:
        """Compute B of each run, only once for equal features such as raw features."""
        rows: list[Array] = []
        for features in self.features:
            pairs = zip(rows, self.features, strict=False)  # with the features of earlier runs
            equal = next((B for B, earlier in pairs if np.array_equal(features, earlier)), None)
            rows.append(pairwise(features, cutoff=self.cutoff) if equal is None else equal)
        return rows

    def _features(self, w: Tensor, clients: Ints) -> NDArray[np.float32]:
        """Return features of shape (clients, samples, features); missing samples are zero."""
        learner = self.learner
        first = torch.from_numpy(learner.data.start[clients]).to(learner.device)
        index = torch.from_numpy(self.rows.index[0, clients]).to(learner.device)
        x, _ = learner.samples.gather(first[:, None] + index)
        parts = learner.network.parts(w[None])
        with torch.no_grad():
            features = [learner.network.body(parts, batch[None], everything)[0] for batch in x]
        A: NDArray[np.float32] = torch.stack(features).float().cpu().numpy()
        size = self.rows.size[0, clients]
        A[np.arange(A.shape[1]) >= size[:, None]] = 0
        # A_i is a mean over the client's samples: padding must not reduce it.
        fill = np.sqrt(A.shape[1] / size).astype(np.float32)
        A *= fill.reshape(-1, *[1] * (A.ndim - 1))
        return A.reshape(len(clients), -1, A.shape[-1])


class Gradients(Observation):
    """Last known gradient of each client's loss, shape (runs, n, d); may be old, as in DivFL."""

    remembered = ("gradients", "sent")

    def __init__(self, learner: NetworkLearner, batch: int, rng: np.random.Generator) -> None:
        super().__init__(learner, batch, rng)
        self.gradients: NDArray[np.float32] = np.empty(0, np.float32)

    def __call__(self, theta: Tensor, offered: Ints | None = None) -> Array:
        """Return the gradients; the first call computes the gradients of all clients."""
        if not self.gradients.size:
            everyone = np.arange(len(self.learner.p))
            self.gradients = np.stack([self._gradients(w, everyone) for w in theta])
            self.sent = np.full(len(theta), 32.0 * self.gradients[0].size)
        return self.gradients  # type: ignore[return-value]  # float32 is enough for comparisons

    def renew(self, theta: Tensor, slots: Slots) -> None:
        """Recompute the participants' gradients."""
        for run, w in enumerate(theta):
            clients = np.unique(slots.client[slots.run == run])
            self.gradients[run, clients] = self._gradients(w, clients)
            self.sent[run] += 32 * self.gradients[run, clients].size

    def _gradients(self, w: Tensor, clients: Ints) -> NDArray[np.float32]:
        learner = self.learner
        gradients = np.empty((len(clients), learner.network.dimension), np.float32)
        for row, client in enumerate(clients):
            begin, end = learner.data.start[client : client + 2]
            x, y = learner.samples.gather(torch.arange(begin, end, device=learner.device)[None])
            leaf = w[None].detach().requires_grad_()
            losses = sample_losses(learner.network, learner.network.outputs(leaf, x), y)
            (gradient,) = torch.autograd.grad(losses.mean(), leaf)
            gradients[row] = gradient[0, : gradients.shape[1]].cpu().numpy()
        return gradients


OBSERVATIONS: dict[str, type[Observation]] = {
    "batch_losses": BatchLosses,
    "losses": Losses,
    "heterogeneity": Heterogeneity,
    "gradients": Gradients,
}


def observations_for(
    sampler: Scheme,
    learner: NetworkLearner,
    batch: int,
    rng: np.random.Generator,
    cutoff: Precision = "float64",
    renewal: Renewal = "participants",
) -> dict[str, Observation]:
    """Create the observations that a sampler needs; see :class:`Heterogeneity` for the settings."""
    kinds: dict[str, Callable[..., Observation]] = {**OBSERVATIONS}
    kinds["heterogeneity"] = partial(Heterogeneity, cutoff=cutoff, renewal=renewal)
    return {name: kinds[name](learner, batch, rng) for name in sorted(sampler.needs & kinds.keys())}
