"""ISFedAvg, the sampler of Rizk et al. 2022: importance sampling of agents and of their data.

Symbols are the paper's: K agents, L of them active, agent k with N_k samples, mini-batches of size
B_k and E_k epochs; p_k and p_n^(k) are *normalised* inclusion probabilities.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.importance import (
    agent_scores,
    capped,
    data_variability,
    in_proportion,
    progressive_totals,
    reassign,
    systematic_units,
)
from fedsampling.samplers.protocol.base import DataScheme
from fedsampling.samplers.protocol.slots import Batch, Setup, Slots, View

NEEDS_BY_RULE = {
    ("optimal", "optimum"): frozenset({"optimum"}),
    ("optimal", "estimated"): frozenset({"optimum"}),
    ("approximate", "optimum"): frozenset({"optimum", "client_gradients", "sample_norms"}),
    ("approximate", "estimated"): frozenset({"client_gradients", "mean_norms", "sample_norms"}),
    ("tracked", "optimum"): frozenset({"optimum", "batch_gradients"}),
    ("tracked", "estimated"): frozenset({"batch_gradients"}),
}


@dataclass
class ISFedAvgState:
    """The agents' work, and the probabilities, which depend on all rounds so far if tracked."""

    E: Ints  # shape (K,), as B and N
    B: Ints
    N: Ints
    p_agents: Array  # shape (runs, K)
    p_data: Array  # shape (K, N_max), or (runs, K, N_max) if tracked
    sigma2: Array | None = None  # at w^o, shape (K,)
    pi: Array = field(default_factory=lambda: np.zeros((0, 0)))
    totals: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    # row of `pi` and `totals` with a client's data: the client's, or its slot's, shape (runs, K)
    row: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))


class ISFedAvg(
    DataScheme,
    name="isfedavg",
    title="Importance sampling of clients and data (ISFedAvg)",
    short="ISFedAvg",
):
    """Importance sampling of agents and of data.

    Algorithm 1 with the probabilities of the curves in Figure 1:

    ``optimal``
        Equations (44) and (48), from the gradients at the minimiser w^o; constant.
    ``approximate``
        Equations (49) and (50), from all gradients of all agents at the current model.
    ``tracked``
        Equations (52) and (53), from the sampled gradients; all start uniform.

    σ²_{s,k} in equations (50) and (52) is printed without a hat.  ``variability: optimum`` uses its
    definition (23) at w^o, which no server knows.  ``estimated`` uses the current model, and in
    (52) only the sampled batches.
    """

    m: Positive = Field(description="L")
    probabilities: Literal["optimal", "approximate", "tracked"]
    variability: Literal["optimum", "estimated"] = Field(
        default="optimum", description="σ²_s,k in equations (50), (52): at w^o, or estimated"
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Quantities that the probabilities are computed from."""
        return NEEDS_BY_RULE[self.probabilities, self.variability]

    def initial_state(self, setup: Setup) -> ISFedAvgState:
        """Set the probabilities of the first round; equation (1) weighs agents equally."""
        if np.ptp(setup.p) > 1e-12:
            raise InputError(
                "sampler.name: isfedavg requires equally important agents, but these are not; use "
                "a dataset with equal importances"
            )
        E, B, N, optimum = setup.E, setup.B, setup.n_samples, setup.optimum
        K = len(N)
        samples = np.arange(N.max()) < N[:, None]
        p_agents = np.full((setup.runs, K), 1 / K)
        p_data = samples / N[:, None]
        if self.probabilities == "optimal":
            sigma2 = data_variability(optimum["mean_norm"], E, B)
            scores = agent_scores(sigma2, optimum["gradient"], E, B)
            p_agents[:] = in_proportion(scores)
            p_data = in_proportion(optimum["sample_norms"], samples)
        elif self.probabilities == "tracked":
            p_data = np.repeat(p_data[None], setup.runs, axis=0)
        state = ISFedAvgState(E, B, N, p_agents=p_agents, p_data=p_data)
        state.row = np.tile(np.arange(K), (setup.runs, 1))
        if self.variability == "optimum":
            state.sigma2 = data_variability(optimum["mean_norm"], E, B)
        if self.probabilities == "optimal":
            state.pi = capped(p_data, B)
            state.totals = progressive_totals(state.pi)
        return state

    def begin(self, state: ISFedAvgState, view: View, rng: Draws) -> ISFedAvgState:
        """Compute the agents' probabilities (50) from all gradients, if these are observed."""
        if self.probabilities == "approximate":
            sigma2 = state.sigma2
            if sigma2 is None:
                sigma2 = data_variability(view.observed["mean_norms"], state.E, state.B)
            scores = agent_scores(sigma2, view.observed["client_gradients"], state.E, state.B)
            state.p_agents = in_proportion(scores)
        return state

    def select(self, state: ISFedAvgState, view: View, rng: Draws) -> Slots:
        """Sample L agents without replacement, with inclusion probabilities L p_k."""
        pi = capped(state.p_agents, self.m)
        run, client = np.nonzero(systematic_units(progressive_totals(pi), rng.uniform("agents")))
        K = len(state.N)
        return Slots(run, client, self.m / (K * pi[run, client]))  # 1/(K p_k), equation (8)

    def weigh(self, state: ISFedAvgState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/L, equation (9); the factor 1/(K p_k) is in the local step."""
        return np.full(len(slots), 1 / self.m)

    def saw_samples(self, state: ISFedAvgState, slots: Slots, norms: Array) -> ISFedAvgState:
        """Set the data probabilities (49) of this round.

        `norms`, shape (slots, N_max): ‖∇Q_k(w_{i−1}; x_{k,n})‖ of all samples of a slot's client.
        """
        samples = state.p_data[slots.client] > 0
        state.pi = capped(in_proportion(norms, samples), state.B[slots.client])
        state.totals = progressive_totals(state.pi)
        state.row[slots.run, slots.client] = np.arange(len(slots))
        return state

    def batch(self, state: ISFedAvgState, slots: Slots, d: Array) -> Batch:
        """Sample B_k of a client's N_k samples without replacement, with inclusion B_k p_n.

        `d`, shape (slots,), is uniform in [0, 1).  The weights are 1/(B_k N_k p_n), equation (7).
        """
        k, B = slots.client, state.B[slots.client]
        if self.probabilities == "tracked":
            row, pi = np.arange(len(slots)), capped(state.p_data[slots.run, k], B)
            totals = progressive_totals(pi)
        else:
            row, pi = state.row[slots.run, k], state.pi
            totals = state.totals.take(row, axis=0)
        drawn = np.flatnonzero(systematic_units(totals, d))  # B_k for each slot, in their order
        slot = np.repeat(np.arange(len(slots)), B)
        n = drawn - slot * pi.shape[1]
        member = np.arange(state.B.max()) < B[:, None]
        index = np.zeros(member.shape, np.int64)
        weight = np.zeros(member.shape)
        index[member] = n
        weight[member] = 1 / (state.N[k][slot] * pi[row[slot], n])
        return Batch(index, weight)

    def saw_batch(
        self, state: ISFedAvgState, slots: Slots, batch: Batch, norms: Array
    ) -> ISFedAvgState:
        """Track the probabilities of the sampled data (53); `norms` are ‖∇Q_k(w_{i−1}; x_b)‖."""
        member = batch.weight > 0
        _, K, N = state.p_data.shape
        position = ((slots.run * K + slots.client) * N)[:, None] + batch.index
        p = state.p_data.reshape(-1)  # a view
        updated = reassign(p.take(position), norms, member)
        p[position[member]] = updated[member]
        return state

    def saw_round(
        self, state: ISFedAvgState, slots: Slots, observed: Mapping[str, Any]
    ) -> ISFedAvgState:
        """Track the agents' probabilities, equation (52).

        Observes ``gradient`` (slots, M): the estimate (7) at w_{i−1}; ``sigma2`` (slots,): equation
        (23) estimated from the same batches, since w^o and unsampled gradients are unknown.
        """
        E, B = state.E[slots.client], state.B[slots.client]
        sigma2 = observed["sigma2"] if state.sigma2 is None else state.sigma2[slots.client]
        scores = agent_scores(sigma2, observed["gradient"], E, B)
        by_run = (len(state.p_agents), self.m)
        rows, clients = slots.run.reshape(by_run), slots.client.reshape(by_run)
        state.p_agents[rows, clients] = reassign(
            state.p_agents[rows, clients], scores.reshape(by_run)
        )
        return state
