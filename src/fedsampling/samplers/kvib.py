"""K-Vib: independent draws, with probabilities from the norms of earlier rounds' updates.

References
----------
Zeng, Xu, Pan, Luo, Wang, Tang: Enhanced Federated Optimization: Adaptive Unbiased Client Sampling
with Reduced Variance. 2023 (arXiv 2310.02698), section 4.  The authors' code is ``sampler.py`` of
their repository K-Vib.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive, PositiveFloat
from fedsampling.base.streams import Draws
from fedsampling.samplers.optimal import probabilities
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View


def mixing(n: int, K: int, rounds: int) -> float:
    """Compute θ = min(1, (n/(T K))^(1/3)), the fraction of uniform sampling."""
    theta: float = (n / (rounds * K)) ** (1 / 3)
    return min(theta, 1.0)


def follow_leader(feedback: Array, gamma: float, K: int, theta: float) -> Array:
    """Compute the inclusion probabilities that suit past feedback best, mixed with uniform ones.

    Parameters
    ----------
    feedback : float array, shape (n,)
        ω(i) = Σ_t π_t(i)²/p̃_i over the rounds in which client i took part: an unbiased estimate of
        the sum over all rounds.
    gamma : float
        γ > 0, which keeps the first rounds from depending on single draws.
    K : int
        Expected number of clients.

    Returns
    -------
    float array, shape (n,)
        p̃ = (1 − θ) p + θ K/n, where p minimises Σ_i (ω(i) + γ)/p_i over 0 ≤ p ≤ 1 with Σ p_i = K.

    Notes
    -----
    The minimiser is chen2022optimal's equation (6) for norms √(ω(i) + γ).  The authors' code omits
    the square root, their derivation does not.
    """
    p = probabilities(np.sqrt(feedback + gamma), K)
    return (1 - theta) * p + theta * K / len(p)


@dataclass
class KVibState:
    """The feedback so far, and the round's inclusion probabilities."""

    feedback: Array  # ω, shape (runs, n)
    gammas: Array  # γ, shape (runs,); zero until the first feedback
    q: Array  # shape (runs, n)


class KVib(Scheme, name="kvib", title="Online variance reduction (K-Vib)", short="K-Vib"):
    """Each client independently, m expected; clients with larger updates so far are likelier.

    The feedback of a participant is π_t(i) = p_i ‖U_i‖.

    The paper leaves these choices open: γ = G² n/(K θ) needs a bound G on the feedback, which is
    unknown in advance; here G² is ``gamma`` times the mean squared feedback of the first round,
    which samples uniformly.  The horizon T only determines θ and may differ from the run's length.

    References
    ----------
    Zeng et al. 2023, the K-Vib sampler.  Equation numbers were not available for comparison.
    """

    m: Positive = Field(description="K: expected number of clients")
    horizon: Positive = Field(
        default=500, description="T in rounds; sets the fraction of uniform sampling"
    )
    gamma: PositiveFloat = Field(
        default=1.0, description="G², in units of the first round's mean feedback²"
    )

    needs = frozenset({"update_norms"})
    intermittent = True
    grid = {"gamma": (0.1, 10.0, "log")}

    def initial_state(self, setup: Setup) -> KVibState:
        """Start without feedback."""
        shape = (setup.runs, len(setup.p))
        return KVibState(np.zeros(shape), np.zeros(setup.runs), np.zeros(shape))

    def begin(self, state: KVibState, view: View, rng: Draws) -> KVibState:
        """Compute the inclusion probabilities from the feedback."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        theta = mixing(len(offered), m, self.horizon)
        state.q = np.zeros((view.runs, n))
        state.q[:, offered] = m / len(offered)
        for run in np.flatnonzero(state.gammas > 0):
            feedback, gamma = state.feedback[run, offered], float(state.gammas[run])
            state.q[run, offered] = follow_leader(feedback, gamma, m, theta)
        return state

    def select(self, state: KVibState, view: View, rng: Draws) -> Slots:
        """Include each client independently."""
        return Slots.of(rng.uniforms("clients", len(view.p)) < state.q)

    def weigh(self, state: KVibState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i/q_i."""
        omega: Array = view.p[slots.client] / state.q[slots.run, slots.client]
        return omega

    def learn(self, state: KVibState, slots: Slots, view: View) -> KVibState:
        """Add the participants' feedback."""
        norms = view.observed["update_norms"]
        # Norms of runs that diverge carry no information.
        square = np.square(view.p[slots.client] * np.where(np.isfinite(norms), norms, 0.0))
        state.feedback[slots.run, slots.client] += square / state.q[slots.run, slots.client]
        n, m = len(view.offered), min(self.m, len(view.offered))
        count = np.bincount(slots.run, minlength=view.runs)
        mean = np.bincount(slots.run, square, view.runs) / np.maximum(count, 1)
        initial = self.gamma * mean * n / (m * mixing(n, m, self.horizon))
        state.gammas = np.where(state.gammas > 0, state.gammas, initial)
        return state
