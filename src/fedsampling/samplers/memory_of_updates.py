"""Samplers whose server remembers each client's last update: MIFA and FedVARP.

For clients that do not train in a round, the server uses their last updates.  The training loop
adds them to its step through :meth:`Scheme.addition`.

References
----------
Gu, Huang, Zhang, Huang: Fast Federated Learning in the Presence of Arbitrary Device Unavailability.
NeurIPS 2021 (arXiv 2106.04159), Algorithm 1 (MIFA).
Jhunjhunwala, Sharma, Nagarkatti, Joshi: FedVARP. UAI 2022 (arXiv 2207.14130), Algorithm 2.
Only the abstracts of both papers were available.  The module was compared with a public
implementation of FedVARP and a public summary of MIFA's algorithm.
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array
from fedsampling.base.streams import Draws
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.protocol.slots import Setup, Slots, View

Updates = NDArray[np.float32]


class MemoryScheme(Uniform):
    """m clients, uniformly without replacement; the server keeps every client's last update."""

    needs = frozenset({"updates"})
    memory = ("known",)

    _p: Array
    _known: Updates  # V_i, the last update θ_i − θ of each client, shape (runs, n, d)
    _updates: Updates  # updates of this round's slots, shape (slots, d)
    _addition: Updates

    def prepare(self, setup: Setup) -> None:
        """Start from updates of zero."""
        self._p = setup.p
        self._known = np.zeros((setup.runs, len(setup.p), setup.dimension), np.float32)

    def saw_updates(self, slots: Slots, updates: Updates) -> None:
        """Keep this round's updates for :meth:`weigh`."""
        self._updates = updates

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return the weights of this round's updates, and replace the remembered updates."""
        omega = self._weights(slots, view)
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges
            # Σ p_i V_i − Σ ω_i V_i, the latter over this round's slots.
            total = np.einsum("n,rnd->rd", self._p, self._known.astype(np.float64))
            part = omega[:, None] * self._known[slots.run, slots.client]
            np.subtract.at(total, slots.run, part)
            self._addition = total.astype(np.float32)
        self._known[slots.run, slots.client] = self._updates
        return omega

    def addition(self) -> Updates:
        """Return the part of the server's step that comes from remembered updates."""
        return self._addition

    def _weights(self, slots: Slots, view: View) -> Array:
        raise NotImplementedError


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

    def _weights(self, slots: Slots, view: View) -> Array:
        return self._p[slots.client]


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

    def _weights(self, slots: Slots, view: View) -> Array:
        drawn = np.bincount(slots.run, minlength=view.runs)[slots.run]
        return view.p[slots.client] * len(view.offered) / drawn
