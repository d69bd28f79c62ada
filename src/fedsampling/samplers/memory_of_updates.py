"""Samplers whose server remembers each client's last update: MIFA and FedVARP.

For clients that do not train in a round, the server uses their last updates.  The training loop
adds them to its step through :meth:`~fedsampling.samplers.protocol.base.Scheme.addition`.

References
----------
Gu, Huang, Zhang, Huang: Fast Federated Learning in the Presence of Arbitrary Device Unavailability.
NeurIPS 2021 (arXiv 2106.04159), Algorithm 1 (MIFA).
Jhunjhunwala, Sharma, Nagarkatti, Joshi: FedVARP. UAI 2022 (arXiv 2207.14130), Algorithm 2.
Only the abstracts of both papers were available.  The module was compared with a public
implementation of FedVARP and a public summary of MIFA's algorithm.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array
from fedsampling.base.streams import Draws
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.protocol.slots import Setup, Slots, View

Updates = NDArray[np.float32]


@dataclass
class LastUpdates:
    """The importances, shape (n,), and V_i, the last update of each client, (runs, n, d)."""

    p: Array
    V: Updates


class MemoryScheme(Uniform):
    """m clients, uniformly without replacement; the server keeps every client's last update."""

    needs = frozenset({"updates"})

    def initial_state(self, setup: Setup) -> LastUpdates:
        """Start from updates of zero."""
        shape = (setup.runs, len(setup.p), setup.dimension)
        return LastUpdates(setup.p, np.zeros(shape, np.float32))

    def addition(self, state: LastUpdates, slots: Slots, omega: Array) -> Updates:
        """Return the part of the server's step that comes from remembered updates."""
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges
            # Σ p_i V_i − Σ ω_i V_i, the latter over this round's slots.
            total = np.einsum("n,rnd->rd", state.p, state.V.astype(np.float64))
            part = omega[:, None] * state.V[slots.run, slots.client]
            np.subtract.at(total, slots.run, part)
            addition: Updates = total.astype(np.float32)
        return addition

    def learn(self, state: LastUpdates, slots: Slots, view: View) -> LastUpdates:
        """Replace the participants' remembered updates."""
        state.V[slots.run, slots.client] = view.observed["updates"]
        return state


class MIFA(MemoryScheme, name="mifa", title="Last updates of all clients (MIFA)", short="MIFA"):
    """The server steps by every client's last update; m clients train again in each round.

    θ ← θ + Σ p_i V_i, where V_i is client i's last update, zero until it first trains.

    In the paper all clients train in the first round, and all available clients in later rounds;
    here m clients train in every round.  Clients are weighed by importance, not equally.

    References
    ----------
    Gu et al. 2021, Algorithm 1: G_i of an inactive device stays; w ← w − η (1/N) Σ G_i.
    """

    unbiased = False
    shrinks = True
    failure_weights = "own"  # a client that fails counts with its last update

    def weigh(self, state: LastUpdates, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i."""
        return state.p[slots.client]


class FedVARP(
    MemoryScheme,
    name="fedvarp",
    title="Uniform sampling with remembered updates (FedVARP)",
    short="FedVARP",
):
    """Uniform sampling, corrected by the last update of every client.

    θ ← θ + Σ_i p_i V_i + Σ_{i ∈ S} (n/m) p_i (U_i − V_i): only the differences U_i − V_i contribute
    to the variance of the step.  V_i is zero until client i first trains; with all V_i = 0 the step
    equals that of Uniform.

    Clients are weighed by importance; the paper's clients are all equal.

    References
    ----------
    Jhunjhunwala et al. 2022, Algorithm 2: v = (1/|S|) Σ_{i ∈ S} (Δ_i − y_i) + (1/N) Σ_j y_j.
    """

    def weigh(self, state: LastUpdates, slots: Slots, view: View, rng: Draws) -> Array:
        """Return (n/m) p_i."""
        n = len(view.offered)
        return view.p[slots.client] * n / min(self.m, n)
