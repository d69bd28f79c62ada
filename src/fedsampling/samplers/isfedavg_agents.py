"""ISFedAvg's sampling of agents, for networks: clients with larger gradients are drawn more often.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
"""

from typing import Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.importance import capped, progressive_totals, systematic_units
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.samplers.tracked import TrackedState


class ISFedAvgAgents(
    Scheme,
    name="isfedavg_agents",
    title="Importance sampling of clients (ISFedAvg, agents)",
    short="ISFedAvg, agents",
):
    """m clients without replacement, with probabilities proportional to their gradient norms.

    This is the sampling of agents in ISFedAvg, for networks.  Mini-batches are drawn uniformly, as
    for other samplers.  The factor 1/(K p_k) is in the weight, not in the local step as in the
    paper, since a network's update is not linear in its step.

    ``observe: gradients`` uses ‖∇P_k‖ of the gradient that each client sent last, equation (50);
    all clients send one before the first round.  ``observe: update_norms`` tracks the norms of the
    participants' updates, equation (52).

    The paper leaves these choices open: σ²_{s,k} cannot be observed and is set to zero, so that
    scores are gradient norms if all E_k B_k are equal; they are multiplied by unequal importances,
    which minimises the same bound; inclusion probabilities above one are treated as in
    :func:`fedsampling.samplers.importance.capped`.

    References
    ----------
    Rizk et al. 2022, Algorithm 1 with equations (8), (50) and (52); Hartley-Rao draws.
    """

    m: Positive = Field(description="L")
    observe: Literal["update_norms", "gradients"] = "update_norms"

    intermittent = True

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Norms of the participants' updates, or the last gradients of all clients."""
        return frozenset({self.observe})

    def initial_state(self, setup: Setup) -> TrackedState:
        """Start from equal probabilities."""
        return TrackedState.equal(setup)

    def begin(self, state: TrackedState, view: View, rng: Draws) -> TrackedState:
        """Compute the inclusion probabilities m p̂_k, from the last gradients if these are known."""
        if self.observe == "gradients":
            norms = np.linalg.norm(view.observed["gradients"], axis=-1).astype(np.float64)
            for run, scores in enumerate(view.p * norms):
                state.tracked[run] = 1 / len(view.p)
                state.track(run, np.arange(len(view.p)), scores)
        offered = view.offered
        state.round = np.zeros((view.runs, len(view.p)))
        state.round[:, offered] = capped(
            state.tracked.take(offered, axis=1), min(self.m, len(offered))
        )
        return state

    def select(self, state: TrackedState, view: View, rng: Draws) -> Slots:
        """Sample m agents."""
        return Slots.of(systematic_units(progressive_totals(state.round), rng.uniform("agents")))

    def weigh(self, state: TrackedState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_k/(m p̂_k)."""
        return view.p[slots.client] / state.round[slots.run, slots.client]

    def learn(self, state: TrackedState, slots: Slots, view: View) -> TrackedState:
        """Track the reported norms."""
        if self.observe == "update_norms":
            scores = view.p[slots.client] * view.observed["update_norms"]
            for run in np.unique(slots.run):
                in_run = slots.run == run
                state.track(int(run), slots.client[in_run], scores[in_run])
        return state
