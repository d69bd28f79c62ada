"""Dissimilarities ρ_ij of clients' updates, for fraboni2021clustered's Algorithm 2.

:func:`pairs` combines the updates of all clients, or only of clients that trained again, with the
updates of all clients.  :func:`from_pairs` turns the result into dissimilarities.
:func:`dissimilarities_to` compares all clients with a few clients, for populations too large for
all pairs.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
Ward: Hierarchical grouping to optimize an objective function. JASA 1963.
Kaufman, Rousseeuw: Finding Groups in Data. Wiley 1990, chapter 3 (CLARA).
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, nearest
from fedsampling.samplers.scheme import candidate_set

Updates = NDArray[np.floating]

MEASURES = ("arccos", "l2", "l1")
WARD_VARIANTS = ("paper", "code")
BLOCK_COORDINATES = 4096  # processed at once, so that float64 copies of 100 clients fit the cache


def dissimilarities(updates: Updates, measure: str, ward: str = "paper") -> Array:
    """Compute ρ_ij = s(G_i, G_j), line 2 of Algorithm 2, for all pairs: (n, d) → (n, n).

    `updates`, shape (n, d): representative gradients G_i; zero for a client that was never
    selected. `ward`: see :func:`from_pairs`.
    """
    return from_pairs(pairs(updates, measure), measure, ward)


def pairs(updates: Updates, measure: str, rows: Ints | None = None) -> Array:
    """Compute inner products, or ℓ1 distances, between the updates of some and of all clients.

    `updates`, shape (n, d): single precision is enough for the updates, but products are summed in
    double precision; otherwise the angle between equal updates would be 1e-3. `rows`, shape (m,):
    clients that are compared with all clients; by default all.  The cost is O(nmd), Appendix C.2.
    Returns shape (m, n): ‖G_i − G_j‖₁ for "l1", otherwise the inner products ⟨G_i, G_j⟩.
    """
    from scipy.spatial.distance import cdist

    n, d = updates.shape
    total = np.zeros((n if rows is None else len(rows), n))
    for start in range(0, d, BLOCK_COORDINATES):
        block = updates[:, start : start + BLOCK_COORDINATES].astype(np.float64)
        row_block = block if rows is None else block[rows]
        total += cdist(row_block, block, "cityblock") if measure == "l1" else row_block @ block.T
    return total


def from_pairs(pairs: Array, measure: str, ward: str = "paper") -> Array:
    """Turn the result of :func:`pairs` for all clients into dissimilarities, shape (n, n).

    `pairs`, shape (n, n). `ward`: ``paper``: L2 is a distance.  A zero update is orthogonal to all
    others and has ρ = 0 with other zero updates, so that clients never selected form one group, as
    in section 5. ``code``: L2 is squared.  A zero update has ρ = 0 with all others under arccos.
    """
    for key, value, names in (("measure", measure, MEASURES), ("ward", ward, WARD_VARIANTS)):
        if value not in names:
            raise InputError(f"{key}: {value!r} is unknown; {nearest(value, names)}")
    if not np.isfinite(pairs).all():
        raise InputError("updates: some are not finite; leave clients that diverged at zero")
    if measure == "l1":
        return pairs
    square = pairs.diagonal()
    rho = _from_products(pairs, (square, square), measure, ward)
    np.fill_diagonal(rho, 0)  # remove rounding errors of the products
    return rho


def dissimilarities_to(updates: Updates, clients: Ints, measure: str, ward: str) -> Array:
    """Compute the columns `clients` of :func:`dissimilarities`, shape (n, c)."""
    products = pairs(updates, measure, clients).T
    if not np.isfinite(products).all():
        raise InputError("updates: some are not finite; leave clients that diverged at zero")
    if measure == "l1":
        return products
    square = np.einsum("ij,ij->i", updates, updates, dtype=np.float64)
    square[clients] = products[clients].diagonal()
    rho = _from_products(products, (square, square[clients]), measure, ward)
    rho[clients, np.arange(len(clients))] = 0
    return rho


def _from_products(products: Array, squares: tuple[Array, Array], measure: str, ward: str) -> Array:
    """Compute ρ from inner products and the squared norms of the rows and the columns."""
    if measure == "l2":
        rho = np.maximum(np.add.outer(*squares) - 2 * products, 0)
        return rho if ward == "code" else np.sqrt(rho)
    norms = [np.sqrt(square) for square in squares]
    lengths = [np.where(norm == 0, 1.0, norm) for norm in norms]
    cosine = np.clip(products / lengths[0][:, None] / lengths[1][None, :], -1, 1)
    rho = np.arccos(cosine)
    either_or_both = np.logical_or if ward == "code" else np.logical_and
    rho[either_or_both.outer(norms[0] == 0, norms[1] == 0)] = 0
    return rho


# Groups of clients with similar updates, for fraboni2021clustered's Algorithm 2.
#
# :func:`ward_groups` cuts Ward's tree of all clients.  :func:`ward_groups_from_sample` forms the
# tree from a random set of clients, for populations too large for all pairs.


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
