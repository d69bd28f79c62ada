"""FedGS: selects clients whose data differ from one another and that have seldom taken part.

Clients are the nodes of a graph (3DG), whose edges are short where data are similar.  The sampler
maximises the mean distance between the selected clients, minus the increase of the variance of the
clients' numbers of participations.

References
----------
Wang, Fan, Qi, Jin, Yang, Shen, Wang: FedGS: Federated Graph-based Sampling with Arbitrary Client
Availability. AAAI 2023 (arXiv 2211.13975).  Only the paper's introduction was available; this
module follows the authors' code, github.com/WwZzz/FedGS at commit 5b721c6,
``algorithm/oracle_fedgs.py``.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import NotNegative, Positive, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances

MAX_STARTS, MAX_SWAPS = 10, 100  # greedy sets that are improved, and exchanges in each at most
MIN_GAIN = 1e-12  # of an exchange; smaller gains are rounding errors


def similarities(features: Array) -> Array:
    """Compute the cosines of all pairs of features, scaled from 0 (smallest) to 1 (largest).

    Parameters
    ----------
    features : float array, shape (n, k)
        Here the share of each label in a client's samples.

    Returns
    -------
    float array, shape (n, n)
        1 on the diagonal.  As in the authors' code, the scale includes the cosine 0, even if no
        pair is orthogonal.
    """
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, 0.0)
    low, high = cosine.min(), cosine.max()
    V: Array = (cosine - low) / max(high - low, 1e-12)
    np.fill_diagonal(V, 1.0)
    return V


def graph_distances(V: Array, epsilon: float, sigma2: float) -> Array:
    """Compute the shortest paths H of the graph with edges R_ij = exp(−V_ij²/σ²) where V_ij > ε.

    Returns
    -------
    float array, shape (n, n)
        In units of the largest finite distance; 1 between clients without a path.
    """
    from scipy.sparse.csgraph import floyd_warshall  # slow to import

    R = np.where(epsilon < V, np.exp(-(V**2) / sigma2), np.inf)
    np.fill_diagonal(R, 0.0)
    H: Array = floyd_warshall(R, directed=False)
    farthest = H[np.isfinite(H)].max()
    if farthest == 0:
        return np.where(np.isfinite(H), 0.0, 1.0)
    H = H / farthest
    H[np.isinf(H)] = 1.0
    return H


def gain(H: Array, count: Ints, alpha: float, m: int, n: int) -> tuple[Array, Array]:
    """Return A and u of the objective Σ_{i<j∈S} A_ij + Σ_{i∈S} u_i.

    The first sum is α times the mean distance of the pairs in S.  The second is minus the growth of
    the variance of the counts v, Σ_{i∈S} (2 (v_i − v̄ − m/N) + 1)/(n − 1).

    Parameters
    ----------
    H : float array, shape (offered, offered)
    count : int array, shape (n,)
        v, how often each client has taken part.
    n : int
        Clients, available or not.

    Returns
    -------
    A : float array, shape of `H`
    u : float array, shape (n,)
    """
    A = 2 * alpha / max(m * (m - 1), 1) * H
    u = -(2 * (count - count.mean() - m / len(H)) + 1) / max(n - 1, 1)
    return A, u


def best_set(A: Array, u: Array, m: int) -> Ints:
    """Search for the m clients with the largest Σ_{i<j∈S} A_ij + Σ_{i∈S} u_i.

    A greedy set is built from each client; the best sets are then improved by exchanging clients.
    The authors' code solves the same problem by branch and bound (Gurobi) in up to five seconds.

    Parameters
    ----------
    A : float array, shape (n, n)
        Symmetric; its diagonal does not count.
    u : float array, shape (n,)

    Returns
    -------
    int array, shape (m,)
        Ascending.
    """
    A = A - np.diag(np.diag(A))
    member = np.eye(len(u), dtype=bool)  # a start in each row
    for _ in range(min(m, len(u)) - 1):
        added = np.where(member, -np.inf, u + member @ A)
        member[np.arange(len(u)), added.argmax(1)] = True
    member = member[np.argsort(-_values(A, u, member), kind="stable")[:MAX_STARTS]]
    start = np.arange(len(member))
    for _ in range(MAX_SWAPS):
        pull = u + member @ A  # of each client to each start's set
        change = pull[:, None, :] - pull[:, :, None] - A[None]  # out: axis 1, in: axis 2
        change[~member[:, :, None] | member[:, None, :]] = -np.inf
        out, into = np.unravel_index(change.reshape(len(member), -1).argmax(1), A.shape)
        better = change[start, out, into] > MIN_GAIN
        if not better.any():
            break
        member[start[better], out[better]] = False
        member[start[better], into[better]] = True
    return np.flatnonzero(member[_values(A, u, member).argmax()])


def _values(A: Array, u: Array, member: Bools) -> Array:
    """Return the objective of each set, a row of `member`."""
    value: Array = member @ u + ((member @ A) * member).sum(1) / 2
    return value


@dataclass
class FedGSState:
    """The graph, and the participations."""

    H: Array  # distances, shape (n, n)
    count: Ints  # v, how often each client took part, shape (runs, n)


class FedGS(Scheme, name="fedgs", title="Graph-based sampling (FedGS)", short="FedGS"):
    """m clients that are far apart in the graph of the clients' labels, and seldom took part.

    A client's features are the shares of its labels; the authors also use the clients' first
    updates or their models' outputs.  The selection uses no random numbers, so it is the same for
    all seeds, unless clients fail.  Weights are proportional to importance and sum to one over the
    participants.

    References
    ----------
    Wang et al. 2023, the authors' code: α = 0.1, ε = 0.01, σ² = 0.1.
    """

    m: Positive = Field(description="M: clients of a round")
    alpha: NotNegative = Field(default=0.1, description="α: weight of the distances")
    epsilon: Proportion = Field(
        default=0.01, description="ε: minimum similarity of neighbours in the graph"
    )
    sigma2: float = Field(default=0.1, gt=0, description="σ² of the length of an edge")

    needs = frozenset({"label_counts"})
    pair_matrices = 20
    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {"alpha": (0.01, 10.0, "log"), "sigma2": (0.01, 1.0, "log")}

    def initial_state(self, setup: Setup) -> FedGSState:
        """Build the graph."""
        counts = np.asarray(setup.label_counts, np.float64)
        share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        H = graph_distances(similarities(share), self.epsilon, self.sigma2)
        return FedGSState(H, np.zeros((setup.runs, len(counts)), np.int64))

    def select(self, state: FedGSState, view: View, rng: Draws) -> Slots:
        """Select the m available clients that maximise the objective."""
        offered, n = view.offered, len(view.p)
        m = min(self.m, len(offered))
        H = state.H[np.ix_(offered, offered)]
        best: dict[bytes, Ints] = {}  # by participations, which differ only if clients fail
        for count in state.count:
            if count.tobytes() not in best:
                A, u = gain(H, count, self.alpha, m, n)
                best[count.tobytes()] = offered[best_set(A, u[offered], m)]
        return Slots.stack([best[count.tobytes()] for count in state.count])

    def weigh(self, state: FedGSState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the participants."""
        return normalised_importances(slots, view)

    def learn(self, state: FedGSState, slots: Slots, view: View) -> FedGSState:
        """Count the participations."""
        state.count[slots.run, slots.client] += 1
        return state
