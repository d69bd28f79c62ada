"""Probabilities tracked from participants' reports: ISFedAvg's rule for networks, and DELTA.

Both redistribute the probability of the round's participants in proportion to their scores
(Rizk et al. 2022, equation (52)), starting from equal probabilities.  The score is the norm of a
client's gradient, or its distance from the participants' mean gradient.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
Wang, Guo, Lin, Tang: DELTA: Diverse Client Sampling for Fasting Federated Learning. NeurIPS 2023
(arXiv 2205.13925).
"""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.importance import capped, progressive_totals, reassign, systematic_units
from fedsampling.samplers.scheme import Scheme, Setup, Slots, View, invert

MIN_RELATIVE_SCORE = 1e-2  # of the mean; a score of zero would exclude a client for good


def redistributed(probability: Array, scores: Array) -> Array:
    """Redistribute the participants' probability in proportion to their scores.

    Parameters
    ----------
    probability : float array, shape (participants,)
        Current probabilities.
    scores : float array, shape (participants,)
        If all scores are zero or one is not finite, the probabilities stay as they are.

    Returns
    -------
    float array, shape (participants,)
        Has the same sum as `probability`.

    Notes
    -----
    Scores below a hundredth of their mean are raised to it.  Neither paper specifies a floor.

    References
    ----------
    Rizk et al. 2022, equation (52), :func:`fedsampling.samplers.importance.reassign`.
    """
    if not np.isfinite(scores).all():
        return probability
    return reassign(probability, np.maximum(scores, MIN_RELATIVE_SCORE * scores.mean()))


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


class Tracked(Scheme):
    """Base class of samplers that track probabilities, shape (runs, n)."""

    m: Positive

    intermittent = True
    memory = ("tracked",)

    _tracked: Array

    def prepare(self, setup: Setup) -> None:
        """Start from equal probabilities."""
        n = len(setup.p)
        self._tracked = np.full((setup.runs, n), 1 / n)

    def track(self, run: int, clients: Ints, scores: Array) -> None:
        """Update the probabilities of a run's participants, each listed once."""
        self._tracked[run, clients] = redistributed(self._tracked[run, clients], scores)


class ISFedAvgAgents(
    Tracked,
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

    _pi: Array

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Norms of the participants' updates, or the last gradients of all clients."""
        return frozenset({self.observe})

    def select(self, view: View, rng: Draws) -> Slots:
        """Sample m agents, with inclusion probabilities m p̂_k."""
        if self.observe == "gradients":
            norms = np.linalg.norm(view.observed["gradients"], axis=-1).astype(np.float64)
            for run, scores in enumerate(view.p * norms):
                self._tracked[run] = 1 / len(view.p)
                self.track(run, np.arange(len(view.p)), scores)
        offered = view.offered
        self._pi = np.zeros((view.runs, len(view.p)))
        self._pi[:, offered] = capped(
            self._tracked.take(offered, axis=1), min(self.m, len(offered))
        )
        return Slots.of(systematic_units(progressive_totals(self._pi), rng.uniform("agents")))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_k/(m p̂_k), and track the reported norms."""
        if self.observe == "update_norms":
            scores = view.p[slots.client] * view.observed["update_norms"]
            for run in range(view.runs):
                in_run = slots.run == run
                self.track(run, slots.client[in_run], scores[in_run])
        return view.p[slots.client] / self._pi[slots.run, slots.client]


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
        1.0, description="β: weight of the diversity in the score; the norm has weight 1 − β"
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
