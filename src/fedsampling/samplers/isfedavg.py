"""ISFedAvg: the sampler that draws agents, and each agent its data, by importance.

Algorithm 1 of rizk2022importance with the probabilities of the curves in its Figure 1:

``optimal``
    Equations (44) and (48), from the gradients at the minimiser w^o; fixed.
``approximate``
    Equations (49) and (50), from all gradients of all agents at the current model.
``tracked``
    Equations (52) and (53), from what was sampled; all start uniform.

The pure functions are in :mod:`fedsampling.samplers.importance`; here is only what has to be
remembered between rounds.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.samplers.importance import (
    agent_scores,
    chosen,
    data_probabilities,
    data_variability,
    inclusion,
    progressive_totals,
    reassign,
)
from fedsampling.samplers.slots import Batch, Setup, Slots, View
from fedsampling.streams import Draws

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NEEDS = {
    "optimal": frozenset({"optimum"}),
    "approximate": frozenset({"client_gradients", "sample_norms"}),
    "tracked": frozenset({"batch_gradients"}),
}


class ISFedAvg:
    """Importance sampling federated averaging.

    Parameters
    ----------
    L : int
        Active agents per iteration.
    probabilities : {"optimal", "approximate", "tracked"}
    E, B, N : int array, shape (K,)
        Epochs, mini-batch size and samples of each agent.
    runs : int
        Stacked runs.
    optimum : mapping
        At w^o: ``gradient`` (K, M), ``mean_norm`` (K,), ``sample_norms`` (K, N_max), the last
        zero where padded.
    variability : {"optimum", "estimated"}
        σ²_{s,k} in equations (50) and (52), which print it without a hat: ``optimum`` takes (23) at
        w^o as it is defined, though no server has it; ``estimated`` takes it at the current model,
        in (52) from the sampled batches.
    """

    def __init__(
        self,
        L: int,
        probabilities: str,
        E: Ints,
        B: Ints,
        N: Ints,
        runs: int,
        optimum: Mapping[str, Array],
        variability: str = "optimum",
    ) -> None:
        self.needs = NEEDS[probabilities]
        self.L, self.E, self.B, self.N = L, E, B, N
        self.probabilities = probabilities
        best = data_variability(optimum["mean_norm"], E, B)
        self._sigma2 = best if variability == "optimum" else None
        K = len(N)
        padded = np.arange(N.max()) >= N[:, None]
        self.p_agents: Array = np.full((runs, K), 1 / K)
        self.p_data: Array = np.where(padded, 0.0, 1 / N[:, None])
        if probabilities == "optimal":
            scores = agent_scores(best, optimum["gradient"], E, B)
            self.p_agents[:] = scores / scores.sum()
            self.p_data = data_probabilities(optimum["sample_norms"])
            self._inclusion = inclusion(self.p_data, B)
            self._totals = progressive_totals(self._inclusion)
        elif probabilities == "tracked":
            self.p_data = np.repeat(self.p_data[None], runs, axis=0)

    @classmethod
    def make(cls, given: Any, setup: Setup) -> "ISFedAvg":
        """Build it from an ``ISFedAvgSampler`` record."""
        who = setup.E, setup.B, setup.n_samples
        options = given.m, given.probabilities
        return cls(*options, *who, setup.runs, setup.optimum, given.variability)

    def select(self, view: View, rng: Draws) -> Slots:
        """Sample L agents without replacement, with inclusion probabilities L p_k."""
        if self.probabilities == "approximate":  # equation (50)
            gradients = view.observed["client_gradients"]
            sigma2 = self._sigma2
            if sigma2 is None:
                sigma2 = data_variability(gradients["mean_norm"], self.E, self.B)
            scores = agent_scores(sigma2, gradients["gradient"], self.E, self.B)
            self.p_agents = scores / scores.sum(-1, keepdims=True)
        pi = inclusion(self.p_agents, self.L)
        run, client = np.nonzero(chosen(progressive_totals(pi), rng.uniform("agents")))
        K = len(self.N)
        return Slots(run, client, self.L / (K * pi[run, client]))  # 1/(K p_k), equation (8)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """1/L each: equation (9); 1/(K p_k) is already in the local step."""
        return np.full(len(slots), 1 / self.L)

    def batch(self, slots: Slots, sample_norms: Array | None, d: Array) -> Batch:
        """Sample B_k of a client's N_k points without replacement, inclusion B_k p_n.

        Parameters
        ----------
        slots : Slots
        sample_norms : float array, shape (slots, N_max), or None
            Gradient norms of the clients' samples at w_{i−1}, for ``approximate``.
        d : float array, shape (slots,)
            The uniform variates.

        Returns
        -------
        Batch
            Weights 1/(B_k N_k p_n), equation (7).
        """
        k, B = slots.client, self.B[slots.client]
        if self.probabilities == "optimal":
            pi, totals = self._inclusion[k], self._totals[k]
        else:
            if sample_norms is not None:
                p = data_probabilities(sample_norms)  # equation (49)
            else:
                p = self.p_data[slots.run, k]
            pi = inclusion(p, B)
            totals = progressive_totals(pi)
        drawn = np.flatnonzero(chosen(totals, d))  # B_k of each slot, slot after slot
        slot = np.repeat(np.arange(len(slots)), B)
        member = np.arange(self.B.max()) < B[:, None]
        index = np.zeros(member.shape, np.int64)
        weight = np.zeros(member.shape)
        index[member] = drawn - slot * pi.shape[1]
        weight[member] = 1 / (self.N[k][slot] * pi.ravel()[drawn])
        return Batch(index, weight)

    def saw_batch(self, slots: Slots, batch: Batch, norms: Array) -> None:
        """Track the data probabilities of what was sampled, equation (53).

        Parameters
        ----------
        slots : Slots
        batch : Batch
        norms : float array, shape (slots, B)
            ‖∇Q_k(w_{i−1}; x_b)‖ of the batch.
        """
        member = batch.weight > 0
        run, client = slots.run[:, None], slots.client[:, None]
        new = reassign(self.p_data[run, client, batch.index], norms, member)
        slot, position = np.nonzero(member)
        where = slots.run[slot], slots.client[slot], batch.index[slot, position]
        self.p_data[where] = new[slot, position]

    def saw_round(self, slots: Slots, observed: Mapping[str, Any]) -> None:
        """Track the agents' probabilities, equation (52).

        Parameters
        ----------
        slots : Slots
        observed : mapping
            ``gradient`` (slots, M): the estimate (7) at w_{i−1}; ``sigma2`` (slots,): equation (23)
            estimated from the same batches, since w^o and unsampled gradients are unknown.
        """
        E, B = self.E[slots.client], self.B[slots.client]
        sigma2 = observed["sigma2"] if self._sigma2 is None else self._sigma2[slots.client]
        scores = agent_scores(sigma2, observed["gradient"], E, B)
        by_run = (len(self.p_agents), self.L)
        rows, clients = slots.run.reshape(by_run), slots.client.reshape(by_run)
        self.p_agents[rows, clients] = reassign(
            self.p_agents[rows, clients], scores.reshape(by_run)
        )
