"""DELTA: clients whose updates differ more from the other participants' are drawn more often.

References
----------
Wang, Guo, Lin, Tang: DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023
(arXiv 2205.13925).
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.samplers.tracked import Tracked


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


class Delta(Tracked, name="delta", title="Diverse client sampling (DELTA)", short="DELTA"):
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

    beta: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="β: weight of the diversity in the score; the norm has weight 1 − β",
    )

    needs = frozenset({"updates"})
    grid = {"beta": (0.1, 1.0, "log")}

    _q: Array
    _importance: Array

    def prepare(self, setup: Setup) -> None:
        """Start from equal probabilities."""
        super().prepare(setup)
        self._importance = setup.p

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw m clients in each run from its tracked probabilities."""
        self._q = np.zeros((view.runs, len(view.p)))
        self._q[:, view.offered] = self._tracked[:, view.offered]
        self._q /= self._q.sum(1, keepdims=True)
        u = rng.uniforms("clients", self.m)
        drawn = [invert(q, u_run) for q, u_run in zip(self._q, u, strict=True)]
        return Slots.drawn(np.stack(drawn), "once")

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i/(m q_i) for each draw."""
        q = self._q[slots.run, slots.client]
        return view.p[slots.client] * slots.times / (self.m * q)

    def saw_updates(self, slots: Slots, updates: NDArray[np.float32]) -> None:
        """Update the probabilities from the participants' updates."""
        for run in np.unique(slots.run):
            in_run = slots.run == run
            clients = slots.client[in_run]
            scores = self._importance[clients] * diversities(updates[in_run], self.beta)
            self.track(int(run), clients, scores)
