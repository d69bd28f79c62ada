"""Groups of clients with similar updates, for fraboni2021clustered's Algorithm 2.

:func:`ward_groups` cuts Ward's tree of all clients.  :func:`ward_groups_from_sample` forms the tree
from a random set of clients, for populations too large for all pairs.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
Ward: Hierarchical grouping to optimize an objective function. JASA 1963.
Kaufman, Rousseeuw: Finding Groups in Data. Wiley 1990, chapter 3 (CLARA).
"""

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.samplers.numerics.dissimilarity import Updates, dissimilarities_to
from fedsampling.samplers.scheme import candidate_set


def ward_groups(rho: Array, weight: Ints, max_weight: int, ward: str = "paper") -> list[Ints]:
    """Cut Ward's tree into its largest subtrees with a weight of at most `max_weight`.

    `rho`, shape (n, n): dissimilarities of n ≥ 2 clients. `weight`, shape (n,): weight of each
    client, at most `max_weight`. `ward`: ``paper``: Ward's method starts from the distances ρ_ij.
    ``code``: it starts from the Euclidean distances between the rows of ρ. Returns the clients B_k
    of each group, ascending.

    As in the authors' code, the tree is cut by weight, not by height: the paper asks only that no
    group has more than M of the mM samples.

    References: Lines 2 and 3 of Algorithm 2.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import pdist, squareform

    distances = squareform(rho, checks=False) if ward == "paper" else pdist(rho)
    tree = linkage(distances, "ward")[:, :2].astype(np.int64)
    total = [int(w) for w in weight]
    group = {client: [client] for client in range(len(total))}
    for node, (left, right) in enumerate(tree, start=len(total)):
        total.append(total[left] + total[right])
        if total[node] <= max_weight:
            group[node] = group.pop(left) + group.pop(right)
    return [np.sort(np.array(members, np.int64)) for members in group.values()]


def ward_groups_from_sample(
    updates: Updates,
    u: Ints,
    M: int,
    measure: str,
    rng: np.random.Generator,
    size: int,
    ward: str = "paper",
) -> list[Ints]:
    """Group all clients by Ward's tree of a random set of them.

    `updates`, shape (n, d). `u`, shape (n,): units of each client, at most M. `M`: maximum number
    of units of a group. `rng`: draws the set, and the order in which groups are split. `size`: size
    of the set; with n or more, this is :func:`ward_groups` of all clients. Returns the clients of
    each group, ascending.

    Comparing all pairs of clients takes n² numbers.  Here the tree of a random set is cut so that
    no group has more than the set's share of M units.  Every other client joins the group with the
    least mean dissimilarity to its members in the set.  A group that then exceeds M units is split
    in random order.  Clustering a sample and assigning the others is the idea of CLARA, here with
    Ward's method.
    """
    members = candidate_set(len(u), size, rng)
    rho = dissimilarities_to(updates, members, measure, ward)
    if len(members) == len(u):
        return ward_groups(rho, u, M, ward)
    max_weight = M * int(u[members].sum()) // int(u.sum())
    groups = [np.zeros(1, np.int64)]
    if len(members) > 1:
        groups = ward_groups(rho[members], u[members], max_weight, ward)
    return _assign(groups, members, rho, u, M, rng)


def _assign(
    groups: list[Ints], members: Ints, rho: Array, u: Ints, M: int, rng: np.random.Generator
) -> list[Ints]:
    """Assign all clients to the groups by ρ, shape (n, c); split groups of more than M units."""
    mean = np.stack([rho[:, group].mean(axis=1) for group in groups], axis=1)
    assigned = mean.argmin(axis=1)
    for k, group in enumerate(groups):
        assigned[members[group]] = k
    order = np.argsort(assigned, kind="stable")
    ends = np.searchsorted(assigned[order], np.arange(len(groups)), side="right")
    result: list[Ints] = []
    for clients in np.split(order, ends[:-1]):
        result += [clients] if u[clients].sum() <= M else _split(rng.permutation(clients), u, M)
    return result


def _split(clients: Ints, u: Ints, M: int) -> list[Ints]:
    """Split a list of clients into parts of at most M units."""
    total = np.concatenate([[0], np.cumsum(u[clients])])
    parts, begin = [], 0
    while begin < len(clients):
        end = int(np.searchsorted(total, total[begin] + M, side="right")) - 1
        parts.append(np.sort(clients[begin:end]))
        begin = end
    return parts
