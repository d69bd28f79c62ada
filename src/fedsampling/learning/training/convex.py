"""Convex models, linear and logistic regression with ridge penalty, and their local training.

Parameters have a leading axis of independent copies (slots or runs), so that all clients of a round
and all runs of a job are one batched computation, in NumPy and in double precision: with 2 to 22
parameters a call takes microseconds, less than a tensor library needs to dispatch it.  The models
differ only in the loss as a function of the margin.  A sample's gradient is
``loss'(z) x + 2 rho w``, so the gradient norms that importance sampling needs cost one number per
sample instead of a vector.

Slots with fewer epochs leave the stack when they are finished; smaller batches are padded with
weight zero.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Counts, PositiveFloat, Strict
from fedsampling.base.streams import Draws, stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.training.loop import Learner
from fedsampling.samplers.protocol.prepared import Prepared, PreparedDataScheme
from fedsampling.samplers.protocol.slots import Batch, Slots


@dataclass(frozen=True)
class Linear:
    """The loss Q(w; x, y) = loss(z, y) + rho ‖w‖² of the margin z = xᵀw.

    `slope` and `curvature` are derivatives of the loss with respect to the margin.
    """

    name: str
    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]
    rho: float
    quadratic: bool = False

    def gradient(self, w: Array, x: Array, y: Array, weight: Array) -> Array:
        """Sum the samples' gradients with weights, one batch per slot.

        `w`, shape (slots, M); `x`, shape (slots, B, M). `y`, `weight`, shape (slots, B): targets
        and weights; a weight of zero excludes a sample. Returns shape (slots, M).
        """
        z = np.matmul(x, w[:, :, None])[:, :, 0]
        pull = np.matmul((weight * self.slope(z, y))[:, None, :], x)[:, 0]
        total: Array = 2 * self.rho * weight.sum(-1, keepdims=True) * w + pull
        return total

    def norms(self, w: Array, x: Array, y: Array) -> Array:
        """Compute the norm of each sample's gradient, ‖loss'(z) x + 2 rho w‖, (slots, B)."""
        z = np.matmul(x, w[:, :, None])[:, :, 0]
        squares = np.einsum("...m,...m->...", x, x)
        return self._norms(self.slope(z, y), z, squares, np.einsum("sm,sm->s", w, w)[:, None])

    def client_gradients(self, w: Array, data: FederatedDataset) -> Array:
        """Return ∇P_k(w) of all K clients, shape (runs, K, M): equation (2)."""
        columns = np.ascontiguousarray(data.x.T)
        if self.quadratic:
            return self._quadratic_gradients(w, columns, data)
        total = np.empty((len(w), len(columns), data.n_clients))
        z = np.empty(columns.shape[1])
        for run, w_run in enumerate(w):  # the arrays of one run stay in the cache
            slope = self.slope(np.matmul(w_run, columns, out=z), data.y)
            for m, column in enumerate(columns):
                pull = np.multiply(slope, column, out=z)
                np.add.reduceat(pull, data.start[:-1], out=total[run, m])
        gradient: Array = (total / data.n_samples).transpose(0, 2, 1)
        return gradient + 2 * self.rho * w[:, None]

    def _quadratic_gradients(self, w: Array, columns: Array, data: FederatedDataset) -> Array:
        # ∇P_k(w) = ∇P_k(0) + ∇²P_k w exactly: two moments of each client's data serve all runs.
        zero, start = np.zeros_like(data.y), data.start[:-1]
        slope, curvature = self.slope(zero, data.y), self.curvature(zero, data.y)
        total = np.add.reduceat(slope * columns, start, axis=1)[None]
        for j, column in enumerate(columns):
            second = np.add.reduceat(curvature * column * columns, start, axis=1)
            total = total + second * w[:, None, None, j]
        gradient: Array = (total / data.n_samples).transpose(0, 2, 1)
        return gradient + 2 * self.rho * w[:, None]

    def mean_norms(self, w: Array, data: FederatedDataset) -> Array:
        """Return (1/N_k) Σ_n ‖∇Q_k(w; x_{k,n})‖ of every client, shape (runs, K)."""
        columns = np.ascontiguousarray(data.x.T)
        squares = np.einsum("nm,nm->n", data.x, data.x)
        total = np.empty((len(w), data.n_clients))
        z = np.empty(len(squares))
        for run, w_run in enumerate(w):
            slope = self.slope(np.matmul(w_run, columns, out=z), data.y)
            norms = self._norms(slope, z, squares, w_run @ w_run)
            np.add.reduceat(norms, data.start[:-1], out=total[run])
        return total / data.n_samples

    def minimiser(self, data: FederatedDataset) -> Array:
        """Minimise Σ_k p_k P_k(w), equation (1), by Newton's method; shape (M,)."""
        weight = np.repeat(data.p / data.n_samples, data.n_samples)
        w = np.zeros(data.x.shape[1])
        for _ in range(100):
            z = data.x @ w
            gradient = data.x.T @ (weight * self.slope(z, data.y)) + 2 * self.rho * w
            if np.linalg.norm(gradient) < 1e-10:
                return w
            hessian = (data.x.T * (weight * self.curvature(z, data.y))) @ data.x
            w = w - np.linalg.solve(hessian + 2 * self.rho * np.eye(len(w)), gradient)
        raise ArithmeticError(f"the {self.name} risk was not minimised in 100 Newton steps")

    def _norms(self, slope: Array, z: Array, squares: Array, w_square: Array) -> Array:
        # ‖s x + 2 rho w‖² = s (s ‖x‖² + 4 rho z) + 4 rho² ‖w‖².  Memory bandwidth limits
        # the speed, so z is overwritten instead of copied.
        square = slope * squares
        square += np.multiply(z, 4 * self.rho, out=z)
        square *= slope
        square += 4 * self.rho**2 * w_square
        np.abs(square, out=square)  # rounding may give a tiny negative number
        return np.sqrt(square, out=square)


def linear_regression(rho: float) -> Linear:
    """Return the squared error |d − uᵀw|² + rho ‖w‖² (Rizk et al. 2022, equation 55)."""

    def slope(z: Array, d: Array) -> Array:
        error = z - d
        return np.multiply(error, 2, out=error)

    return Linear("linear", slope, lambda z, d: np.full_like(z, 2.0), rho, quadratic=True)


def logistic_regression(rho: float) -> Linear:
    """Return the logistic loss ln(1 + exp(−y xᵀw)) + rho ‖w‖² with labels y in {−1, +1}."""
    return Linear(
        "logistic",
        slope=lambda z, y: -y * expit(-y * z),
        curvature=lambda z, y: expit(z) * expit(-z),
        rho=rho,
    )


MODELS: dict[str, Callable[[float], Linear]] = {
    "linear": linear_regression,
    "logistic": logistic_regression,
}


class ConvexWork(Strict):
    """Local training of each selected client; ranges are drawn once per client, uniformly.

    With `correct` the step is divided by E_k, as in equation (6) of Rizk et al. 2022, so that
    clients with many epochs do not bias the average.  McMahan et al.'s FedAvg does not divide.
    """

    step: PositiveFloat = Field(description="μ")
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
class ConvexLearner(Learner):
    """Convex models; θ has shape (runs, M). E and B, shape (K,): epochs, and batch size."""

    model: Linear
    data: FederatedDataset
    local: ConvexWork
    E: Ints
    B: Ints

    def start(self, seeds: Ints) -> Array:
        """Return zeros, the first model of every run."""
        return np.zeros((len(seeds), self.data.x.shape[1]))

    def observe(
        self, needs: Set[str], theta: Array, offered: Ints | None = None
    ) -> Mapping[str, Any]:
        """Compute the observations that a sampler needs before it selects."""
        views = {
            "client_gradients": self.model.client_gradients,
            "mean_norms": self.model.mean_norms,
        }
        return {name: view(theta, self.data) for name, view in views.items() if name in needs}

    def work(self, theta: Array, slots: Slots, sampler: Prepared, rng: Draws) -> Array:
        """Run the local training; return the updates, shape (slots, M)."""
        start = theta[slots.run]
        return local_sgd(self, start, slots, sampler, rng) - start

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
        self, sampler: Prepared, slots: Slots, omega: Array, rng: Draws
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


def local_sgd(
    learner: ConvexLearner, start: Array, slots: Slots, sampler: Prepared, rng: Draws
) -> Array:
    """Run every slot's local epochs from its first model.

    w_{k,e} = w_{k,e−1} − μ scale/E_k Σ_b weight_b ∇Q_k(w_{k,e−1}; x_b): equation (8) of
    Rizk et al. 2022, with scale = 1/(K p_k) and weight_b = 1/(B_k N_k p_b).

    `start`, shape (slots, M). Returns shape (slots, M): local models.  A sampler of data is passed
    the gradient norms that it needs.
    """
    model, data, work = learner.model, learner.data, learner.local
    E, B = learner.E[slots.client], learner.B[slots.client]
    importance = sampler if isinstance(sampler, PreparedDataScheme) else None
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
