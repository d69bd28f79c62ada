"""HiCS-FL: clusters clients by the estimated balance of their labels; balanced clusters go first.

The update of the output layer's bias shows which labels a client has: the entropy of its softmax
estimates the entropy of the client's labels.

References
----------
Chen, Vikalo: Heterogeneity-Guided Client Sampling: Towards Fast and Efficient Non-IID Federated
Learning. NeurIPS 2024 (arXiv 2310.00198), equations (7), (9) and (10), Algorithm 1.  The authors'
code is github.com/CityChan/HiCS-FL.

The code differs from the paper: it takes the first updates in the order of the clients' indices,
draws uniformly within a cluster, estimates entropies from the weights of the output layer, and
switches to clustered sampling when entropies vary little or much.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances

MIN_IMPORTANCE = 1e-12  # lower bound of a client's importance within its cluster


def estimated_entropy(updates: Array, temperature: float) -> Array:
    """Compute Ĥ = H(softmax(Δb/T)) of each client, equation (7).

    Parameters
    ----------
    updates : float array, shape (n, classes)
        Δb of each client.

    Returns
    -------
    float array, shape (n,)
        Between 0 and ln(classes).
    """
    scaled = updates / temperature
    scaled = scaled - scaled.max(axis=1, keepdims=True)
    share = np.exp(scaled)
    share /= share.sum(axis=1, keepdims=True)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy: Array = -(share * logs).sum(axis=1)
    return entropy


def client_distances(updates: Array, entropy: Array, balance: float) -> Array:
    """Compute arccos(Δb_u · Δb_k / ‖Δb_u‖ ‖Δb_k‖) + λ |Ĥ_u − Ĥ_k|, equation (9).

    The angle to a client whose update is zero counts as 0, as in the authors' code.

    Returns
    -------
    float array, shape (n, n)
    """
    norms = np.linalg.norm(updates, axis=1)
    products = np.outer(norms, norms)
    cosine = np.divide(
        updates @ updates.T, products, out=np.ones_like(products), where=products > 0
    )
    angle = np.arccos(np.clip(cosine, -1, 1))
    distance: Array = angle + balance * np.abs(entropy[:, None] - entropy[None, :])
    np.fill_diagonal(distance, 0.0)
    return distance


def clusters(distances: Array, count: int) -> Ints:
    """Group clients into at most `count` clusters by Ward's linkage of the rows of distances.

    Returns
    -------
    int array, shape (n,)
        Cluster of each client, from 0.
    """
    # Slow to import.
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(distances) == 1:
        return np.zeros(1, np.int64)
    tree = linkage(pdist(distances), "ward")
    labels: Ints = fcluster(tree, count, criterion="maxclust").astype(np.int64) - 1
    return labels


def cluster_odds(entropy: Array, cluster: Ints, gamma: float) -> Array:
    """Compute π_m ∝ exp(γ H̄_m), with the mean entropy H̄_m of each cluster, equation (10)."""
    size = np.bincount(cluster)
    mean = np.bincount(cluster, entropy) / size
    odds = np.exp(gamma * (mean - mean.max()))
    share: Array = odds / odds.sum()
    return share


@dataclass
class HiCSState:
    """What is known of each client."""

    updates: Array  # Δb, shape (runs, n, classes); classes are known after the first round
    seen: Ints  # whether a client has trained, shape (runs, n)


class HiCS(Scheme, name="hics", title="Hierarchical clustered sampling (HiCS-FL)", short="HiCS-FL"):
    """m clients from clusters, first from clusters with balanced labels, later from all clusters.

    In the first ⌈n/m⌉ rounds all clients train once.

    The paper leaves these choices open: clusters are formed by Ward's linkage, as in the authors'
    code; a client is drawn at most once per round, and exhausted clusters are left out.
    The default temperature is from the authors' configurations; it depends on the size of updates.
    Updates are averaged by importance; Algorithm 1 has 1/K and clients of equal size.

    References
    ----------
    Chen, Vikalo 2024, Algorithm 1, with λ = 10, γ0 = 4 and M = K.
    """

    m: Positive = Field(description="K: clients of a round")
    clusters: Positive | None = Field(default=None, description="M: number of clusters; null: m")
    temperature: float = Field(default=0.001, gt=0, description="T in equation (7)")
    balance: NotNegative = Field(
        default=10.0, description="λ: weight of the entropies in the distance"
    )
    gamma: NotNegative = Field(default=4.0, description="γ0: preference for balanced clusters")
    horizon: Positive = Field(
        default=100, description="rounds until the preference has fallen to zero, linearly"
    )

    needs = frozenset({"bias_updates"})
    pair_matrices = 4
    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {
        "clusters": (2, 8, "integer"),
        "temperature": (0.001, 1.0, "log"),
        "gamma": (1.0, 8.0, "log"),
    }

    def initial_state(self, setup: Setup) -> HiCSState:
        """Mark all clients as unseen."""
        shape = (setup.runs, len(setup.p))
        return HiCSState(np.zeros((*shape, 1)), np.zeros(shape, np.int64))

    def select(self, state: HiCSState, view: View, rng: Draws) -> Slots:
        """Draw clients that have not trained yet, if any, then clients by cluster."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        u, u_pick = rng.uniforms("clients", n), rng.uniforms("clusters", 2 * m)
        chosen = []
        for run in range(view.runs):
            unseen = offered[state.seen[run, offered] == 0]
            order = np.argsort(u[run, unseen], kind="stable")
            first = unseen[order[:m]]
            trained = np.setdiff1d(offered, unseen)
            by_cluster = self._by_cluster(
                state.updates[run, trained], trained, m - len(first), view, u_pick[run]
            )
            chosen.append(np.concatenate([first, by_cluster]))
        return Slots.stack(chosen)

    def weigh(self, state: HiCSState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)

    def learn(self, state: HiCSState, slots: Slots, view: View) -> HiCSState:
        """Keep the participants' Δb."""
        updates = view.observed["bias_updates"]
        if state.updates.shape[2] != updates.shape[1]:
            state.updates = np.zeros((*state.seen.shape, updates.shape[1]))
        # Updates of a run that diverges may be anything; they must not stop the other runs.
        finite = np.nan_to_num(updates, nan=0.0, posinf=0.0, neginf=0.0)
        state.updates[slots.run, slots.client] = np.clip(finite, -1e100, 1e100)
        state.seen[slots.run, slots.client] = 1
        return state

    def _by_cluster(self, updates: Array, trained: Ints, count: int, view: View, u: Array) -> Ints:
        """Draw `count` distinct clients of a run: a cluster by π, then a client by importance."""
        if not count:
            return np.zeros(0, np.int64)
        entropy = estimated_entropy(updates, self.temperature)
        distance = client_distances(updates, entropy, self.balance)
        cluster = clusters(distance, min(self.clusters or self.m, len(trained)))
        gamma = self.gamma * max(1 - view.round / self.horizon, 0.0)
        odds = cluster_odds(entropy, cluster, gamma)
        p = np.maximum(view.p[trained], MIN_IMPORTANCE)
        undrawn, picks = np.ones(len(trained)), []
        for u_cluster, u_client in u[: 2 * count].reshape(count, 2):
            open_clusters = np.bincount(cluster, undrawn, len(odds)) > 0
            group = invert(odds * open_clusters, u_cluster)
            pick = int(invert(p * undrawn * (cluster == group), u_client))
            undrawn[pick] = 0
            picks.append(pick)
        return trained[picks]
