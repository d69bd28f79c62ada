"""DelayHetSubmodular and DelayHetSampling: the samplers of Harshvardhan et al. 2025.

They observe expected delays, and the heterogeneity B of each run, which is updated after every
round.  As in the paper, both solve their problem (:mod:`fedsampling.samplers.latency`) in every
round.  If B has not changed, for instance because the features are the data themselves, the last
solution is reused.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), section 5, Algorithms 2 and 3.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive, Share, hashed_if_set
from fedsampling.base.streams import Draws
from fedsampling.samplers.latency import best_distribution, best_subset, bias, shares
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Duplicates, Setup, Slots, View
from fedsampling.theory.heterogeneity import bounded

Solution = tuple[Ints, Array]
Bound = Annotated[
    Share, Field(description="fraction of the assumptions' bounds on B; a larger B is reduced")
]
Rule = Annotated[
    Literal["scale", "clip"],
    Field(
        description="how B is reduced: by one factor, or by capping its entries",
        exclude_if=lambda rule: rule == "scale",  # keeps the hashes of earlier runs
    ),
]


@dataclass
class Solutions:
    """The solution of each run, and the B that it solves, shape (runs, n, n); NaN before any."""

    B: Array
    of_run: list[Solution]


class DelayHet(Scheme):
    """Base class: the problem of B and the delays, solved when B changes."""

    share: Bound = 0.9
    rule: Rule = "scale"

    needs = frozenset({"delays", "heterogeneity"})
    pair_matrices = 6
    unbiased = False

    def initial_state(self, setup: Setup) -> Solutions:
        """Start without a solution."""
        n = len(setup.p)
        none = np.zeros(0, np.int64), np.zeros(0)
        return Solutions(np.full((setup.runs, n, n), np.nan), [none] * setup.runs)

    def begin(self, state: Solutions, view: View, rng: Draws) -> Solutions:
        """Solve each run's problem; reuse the last solution of any run with the same B."""
        for run, B in enumerate(view.observed["heterogeneity"]):
            others = (run, *range(view.runs))
            equal = next((k for k in others if np.array_equal(state.B[k], B)), None)
            if equal is None:
                solution = self.solve(np.asarray(B, np.float64), view.observed["delays"])
            else:
                solution = state.of_run[equal]
            state.B[run], state.of_run[run] = B, solution
        return state

    def solve(self, B: Array, delays: Array) -> Solution:
        """Choose clients for one run.

        Parameters
        ----------
        B : float array, shape (n, n)
            Heterogeneity of pairs of clients.
        delays : float array, shape (n,)
            Expected seconds.

        Returns
        -------
        clients : int array, shape (k,)
        values : float array, shape (k,)
            DelayHetSubmodular: aggregation weights.  DelayHetSampling: sampling probabilities.
        """
        raise NotImplementedError


class DelayHetSubmodular(
    DelayHet,
    name="delayhet_submodular",
    title="DelayHet by submodular minimisation (DelayHetSubmodular)",
    short="DelayHetSubmodular",
):
    """The set of clients with the shortest estimated runtime; each represents its closest clients.

    Notes
    -----
    The closest clients are determined from B itself.  Scaling B by one factor does not change them.
    Capping its entries would make several clients equally close, so that the order of their indices
    would decide who represents whom.

    References
    ----------
    Harshvardhan et al. 2025, Algorithm 2; the weights are Definition 1's.
    """

    solver: Literal["exact", "minnorm"] = Field(
        default="minnorm", description="scan, or the paper's"
    )

    grid = {"share": (0.5, 0.99, "linear")}

    def expected_clients(self, clients: int, rounds: int) -> float:
        """Return a quarter: in the published runs with delays, 1/100 to 3/5 of the clients."""
        return 0.25 * clients

    def select(self, state: Solutions, view: View, rng: Draws) -> Slots:
        """Select each run's best set."""
        return Slots.stack([clients for clients, _ in state.of_run])

    def weigh(self, state: Solutions, slots: Slots, view: View, rng: Draws) -> Array:
        """Return α_i, the share of the clients that i represents."""
        omega = np.concatenate([alpha for _, alpha in state.of_run])
        return omega if view.reports is None else omega[view.reports.reported]

    def solve(self, B: Array, delays: Array) -> Solution:
        """Run Algorithm 2; weights are determined from B itself."""
        chosen, _ = best_subset(bounded(B, self.share, rule=self.rule), delays, self.solver)
        return chosen, shares(B, chosen)


class DelayHetSampling(
    DelayHet,
    name="delayhet_sampling",
    title="DelayHet by sampling (DelayHetSampling)",
    short="DelayHetSampling",
):
    """m draws with replacement, from the distribution with the shortest estimated runtime.

    References
    ----------
    Harshvardhan et al. 2025, Algorithm 3.
    """

    m: Positive = Field(description="K: number of draws")
    solver: Literal["trust-constr", "analytic", "vertex"] = "trust-constr"
    k: Positive = Field(default=1, description="draws in the objective; the paper uses 1 for any m")
    iterations: Annotated[int, Field(ge=0)] = Field(
        default=1000, description="maximum for the solver"
    )
    start: Literal["uniform", "fast"] = Field(default="uniform", description="equal, or as 1/τ_i")
    bound: Literal["everywhere", "start"] = hashed_if_set(
        "everywhere",
        description="where B_p < 1 is enforced in addition to Assumption 3: for every "
        "distribution, which also bounds the entries of B, or where the solver starts",
    )
    jacobian: Literal["2-point", "exact"] = Field(default="2-point", description="for trust-constr")
    feasible: bool = hashed_if_set(
        False, description="for trust-constr: evaluate g only where it is defined"
    )
    duplicates: Duplicates = "independently"

    grid = {"share": (0.5, 0.99, "linear")}

    def select(self, state: Solutions, view: View, rng: Draws) -> Slots:
        """Draw m clients in each run from its best distribution."""
        u = rng.uniforms("clients", self.m)
        clients = [invert(p, u_run) for (_, p), u_run in zip(state.of_run, u, strict=True)]
        return Slots.drawn(np.stack(clients), self.duplicates)

    def weigh(self, state: Solutions, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each draw."""
        return slots.times / self.m

    def solve(self, B: Array, delays: Array) -> Solution:
        """Run Algorithm 3."""
        weights = 1 / delays if self.start == "fast" else np.ones(len(B))
        start = weights / weights.sum()
        if self.bound == "everywhere":
            B = bounded(B, self.share, self.k, self.rule)
        else:
            B = bounded(B, self.share, rule=self.rule)
            B = B * min(1.0, self.share / np.sqrt(bias(B, start, self.k)))
        p = best_distribution(
            *(B, delays, self.k, self.solver, start, self.iterations, self.jacobian),
            feasible=self.feasible,
        )
        return np.arange(len(p)), p
