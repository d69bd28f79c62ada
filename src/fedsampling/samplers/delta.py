"""DELTA: clients whose updates differ more from the other participants' are drawn more often.

References
----------
Wang, Guo, Lin, Tang: DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023
(arXiv 2205.13925).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.samplers.tracked import TrackedState


def diversities(updates: NDArray[np.floating], beta: float) -> Array:
    """Compute (1 − β) ‖g_i‖ + β ‖g_i − ḡ‖, where ḡ is the mean of the participants' gradients.

    Parameters
    ----------
    updates : float array, shape (participants, d)
        Gradients g_i of distinct clients.
    beta : float
        β in [0, 1]; 1 gives DELTA's diversity, 0 the gradient norm of FedIS.

    Returns
    -------
    float array, shape (participants,)
    """
    g = np.asarray(updates, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        norm = np.linalg.norm(g, axis=1)
        score: Array = (1 - beta) * norm + beta * np.linalg.norm(g - g.mean(0), axis=1)
    return score


@dataclass
class DeltaState(TrackedState):
    """The tracked probabilities, and the importances among all clients, shape (n,)."""

    importance: Array


class Delta(Scheme, name="delta", title="Diverse client sampling (DELTA)", short="DELTA"):
    """m draws with replacement; clients whose updates differ more from the others are likelier.

    A client drawn twice trains once, with twice the weight.

    This is the practical algorithm: updates stand in for gradients, the participants' mean for the
    global gradient, and only the participants' probabilities change.

    The paper leaves these choices open.  The local variances σ²_{L,i} of equation (11) are not
    observed, neither here nor in the authors' code, so α_2 = 0 (and α_1 cancels).  As in that code,
    β (``beta``) mixes diversity and norm; its shares of samples are importances here.  The code
    draws without replacement but weighs as if with replacement, which is biased; here draws are
    with replacement, as in equation (10).

    References
    ----------
    Wang et al., Corollary 3.4, equation (11), and section 4, numbered as in the submission to ICLR
    2023, since the NeurIPS version was not available for comparison.
    """

    m: Positive
    beta: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="β: weight of the diversity in the score; the norm has weight 1 − β",
    )

    needs = frozenset({"updates"})
    intermittent = True
    grid = {"beta": (0.1, 1.0, "log")}

    def initial_state(self, setup: Setup) -> DeltaState:
        """Start from equal probabilities."""
        equal = TrackedState.equal(setup)
        return DeltaState(equal.tracked, equal.round, setup.p)

    def begin(self, state: DeltaState, view: View, rng: Draws) -> DeltaState:
        """Restrict the tracked probabilities to the available clients."""
        state.round = np.zeros((view.runs, len(view.p)))
        state.round[:, view.offered] = state.tracked[:, view.offered]
        state.round /= state.round.sum(1, keepdims=True)
        return state

    def select(self, state: DeltaState, view: View, rng: Draws) -> Slots:
        """Draw m clients in each run from its tracked probabilities."""
        u = rng.uniforms("clients", self.m)
        drawn = [invert(q, u_run) for q, u_run in zip(state.round, u, strict=True)]
        return Slots.drawn(np.stack(drawn), "once")

    def weigh(self, state: DeltaState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i/(m q_i) for each draw."""
        q = state.round[slots.run, slots.client]
        return view.p[slots.client] * slots.times / (self.m * q)

    def learn(self, state: DeltaState, slots: Slots, view: View) -> DeltaState:
        """Update the probabilities from the participants' updates."""
        for run in np.unique(slots.run):
            in_run = slots.run == run
            clients = slots.client[in_run]
            updates = view.observed["updates"][in_run]
            scores = state.importance[clients] * diversities(updates, self.beta)
            state.track(int(run), clients, scores)
        return state
