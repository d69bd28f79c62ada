"""FedCor: selects clients whose loss changes predict the other clients' loss changes.

The changes of all clients' losses in a round are modelled as a Gaussian process over clients.  Its
covariance is learned from past changes.  Clients are selected one after another: the next one is
the client that is expected to reduce the loss of all clients most, given the selected clients.

References
----------
Tang, Ning, Wang, Sun, Wang, Li, Chen: FedCor: Correlation-Based Active Client Selection Strategy
for Heterogeneous Federated Learning. CVPR 2022 (arXiv 2103.13822).  The paper's text was not
available; this module follows the authors' code, github.com/Yoruko-Tang/FedCor at commit 17beb74:
``src/GPR.py``, ``src/federated_main.py``, and ``src/options.py`` for the defaults.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import distinct
from fedsampling.samplers.protocol.slots import Setup, Slots, View, averages

RATE, DECAYS, EPSILON = 1e-2, (0.9, 0.999), 1e-8  # Adam's, as in the authors' code


def covariance(X: Array, noise: float) -> Array:
    """Compute XᵀX + σ² I from the clients' positions X, shape (dimension, n)."""
    return X.T @ X + noise**2 * np.eye(X.shape[1])


def likelihood_slope(X: Array, changes: Array, weight: Array, noise: float) -> Array:
    """Compute the gradient of the weighted negative log marginal likelihood with respect to X.

    Parameters
    ----------
    X : float array, shape (..., dimension, n)
    changes : float array, shape (..., rounds, n)
        Changes of all clients' losses, with mean zero under the model.
    weight : float array, shape (rounds,)
    noise : float
        σ.

    Returns
    -------
    float array, shape of `X`

    Notes
    -----
    With A = (σ² I + X Xᵀ)⁻¹ and the weighted moments M of the changes, X K⁻¹ = A X, and the
    derivative X (Σ weight K⁻¹ − K⁻¹ M K⁻¹) needs no inverse of an (n, n) matrix.
    """
    inner = X @ np.swapaxes(X, -1, -2) + noise**2 * np.eye(X.shape[-2])
    AX = np.linalg.solve(inner, X)
    projected = changes @ np.swapaxes(X, -1, -2)
    whitened = (changes - projected @ AX) / noise**2  # changes K⁻¹
    moments = (AX @ np.swapaxes(changes, -1, -2) * weight) @ whitened
    slope: Array = weight.sum() * AX - moments
    return slope


def fitted(X: Array, changes: Array, weight: Array, noise: float, steps: int) -> Array:
    """Maximise the likelihood by Adam, starting from X; shapes as in :func:`likelihood_slope`."""
    first, second = np.zeros_like(X), np.zeros_like(X)
    for step in range(1, steps + 1):
        slope = likelihood_slope(X, changes, weight, noise)
        first = DECAYS[0] * first + (1 - DECAYS[0]) * slope
        second = DECAYS[1] * second + (1 - DECAYS[1]) * slope**2
        scale = np.sqrt(second / (1 - DECAYS[1] ** step)) + EPSILON
        X = X - RATE * first / (1 - DECAYS[0] ** step) / scale
    return X


def greedy(K: Array, p: Array, discount: Array, m: int) -> Ints:
    """Select m clients one after another, each with the largest expected decrease of the loss.

    The decrease from client k is α_k Σ_i p_i K_ik / √K_kk over the clients i not yet selected; then
    K is conditioned on k.

    Parameters
    ----------
    K : float array, shape (n, n)
        Covariance of the loss changes.
    p, discount : float array, shape (n,)
        Importances, and α.

    Returns
    -------
    int array, shape (m,)
    """
    K, unselected, chosen = K.copy(), np.ones(len(p), np.bool_), []
    for _ in range(m):
        weighted = (p * unselected) @ K
        variance = np.maximum(np.diag(K), 1e-300)
        gain = np.where(unselected, discount * weighted / np.sqrt(variance), -np.inf)
        best = int(gain.argmax())
        chosen.append(best)
        unselected[best] = False
        K = K - np.outer(K[:, best], K[best]) / variance[best]
    return np.array(chosen, np.int64)


@dataclass
class FedCorState:
    """The model of the loss changes, and what it was learned from."""

    X: Array  # positions, shape (runs, dimension, n); drawn in the first round
    before: Array  # losses before the last observed round, shape (runs, n)
    changes: Array  # loss changes, shape (runs, history + 1, n)
    times: Ints  # rounds of these changes, −1 if not yet observed, shape (history + 1,)
    alpha: Array  # shape (runs, n)


class FedCor(
    Scheme, name="fedcor", title="Correlation of clients' losses (FedCor)", short="FedCor"
):
    """m clients whose loss changes correlate most with all other clients' loss changes.

    In the first rounds, clients are drawn uniformly and all clients report their losses; later, all
    clients report every `interval` rounds.

    A deviation: in every `interval`-th round the authors' code trains a second, random set of
    clients, only to observe how losses change; here all clients of this round are drawn at random.

    References
    ----------
    Tang et al. 2022; the authors' code with ``train_method`` MML, ``kernel`` Poly of order 1 and
    a mean of zero.  As in the code, selected clients are averaged with equal weights.
    """

    m: Positive
    warm_up: Positive = Field(
        default=25,
        description="last round, counted from 0, in which all clients report their losses",
    )
    interval: Positive = Field(
        default=5, description="Δt: rounds between later updates of the covariance"
    )
    history: Positive = Field(
        default=10, description="M: age in rounds of the oldest observed change"
    )
    forget: Proportion = Field(
        default=0.8, description="γ: factor on the weight of a round for each later one"
    )
    discount: Proportion = Field(
        default=0.9, description="β: factor on a client's gain for each selection"
    )
    dimension: Positive = Field(default=15, description="of the clients' positions")
    noise: float = Field(
        default=0.01, gt=0, description="σ: standard deviation of the observations"
    )
    first_steps: Positive = Field(
        default=150, description="steps of Adam in each round of the warm-up"
    )
    later_steps: Positive = Field(default=100, description="steps of Adam at later updates")

    needs = frozenset({"losses"})
    pair_matrices = 4
    unbiased = False
    failure_weights = "average"
    grid = {
        "warm_up": (5, 25, "integer"),
        "interval": (2, 10, "integer"),
        "discount": (0.5, 1.0, "linear"),
    }

    def initial_state(self, setup: Setup) -> FedCorState:
        """Start without observations."""
        runs, n = setup.runs, len(setup.p)
        return FedCorState(
            X=np.zeros((runs, self.dimension, n)),
            before=np.zeros((runs, n)),
            changes=np.zeros((runs, self.history + 1, n)),
            times=np.full(self.history + 1, -1),
            alpha=np.ones((runs, n)),
        )

    def begin(self, state: FedCorState, view: View, rng: Draws) -> FedCorState:
        """Learn the covariance from the losses, if all clients report them."""
        t = view.round
        if t == 0:
            drawn = [g.normal(size=state.X.shape[1:]) for g in rng.generators("positions")]
            state.X = np.stack(drawn) / np.sqrt(self.dimension)
        if self._reported(t):
            losses = np.nan_to_num(view.observed["losses"], nan=0.0, posinf=0.0)
            if self._observed(t - 1):
                self._fit(state, losses - state.before, t - 1)
            state.before = losses
        return state

    def select(self, state: FedCorState, view: View, rng: Draws) -> Slots:
        """Draw clients at random in observed rounds, otherwise select them greedily."""
        if self._observed(view.round):
            return Slots.stack(distinct(len(view.p), rng.uniforms("clients", self.m)))
        clients = [
            greedy(covariance(X, self.noise), view.p, alpha, self.m)
            for X, alpha in zip(state.X, state.alpha, strict=True)
        ]
        return Slots.stack(clients)

    def weigh(self, state: FedCorState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each of the m clients."""
        return averages(slots, view)

    def learn(self, state: FedCorState, slots: Slots, view: View) -> FedCorState:
        """Discount the greedily selected clients."""
        if not self._observed(view.round):
            state.alpha[slots.run, slots.client] *= self.discount
        return state

    def asked(self, state: FedCorState, view: View) -> Bools:
        """Return the clients that had to compute a loss: all before and after observed rounds."""
        return np.full((view.runs, len(view.p)), self._reported(view.round))

    def _observed(self, t: int) -> bool:
        """Whether the covariance is learned from the loss changes of a round."""
        return t >= 0 and (t <= self.warm_up or t % self.interval == 0)

    def _reported(self, t: int) -> bool:
        """Whether all clients report their losses before a round."""
        return self._observed(t) or self._observed(t - 1)

    def _fit(self, state: FedCorState, change: Array, t: int) -> None:
        """Add the loss changes of round t, shape (runs, n), and fit the covariance again."""
        state.changes = np.roll(state.changes, -1, axis=1)
        state.times = np.roll(state.times, -1)
        state.changes[:, -1], state.times[-1] = change, t
        age = t - state.times
        recent = (state.times >= 0) & (age <= self.history)
        weight = np.where(recent, self.forget**age, 0.0)
        steps = self.first_steps if t <= self.warm_up else self.later_steps
        bound = 1e6  # losses of runs that diverge
        changes = np.clip(state.changes, -bound, bound)
        state.X = fitted(state.X, changes, weight, self.noise, steps)
        state.alpha[:] = 1.0
