"""Groups of clients with similar updates, for Algorithm 2 of clustered sampling.

:func:`pairs` combines the updates of all clients, or only of clients that trained again, with the
updates of all clients.  :func:`from_pairs` turns the result into dissimilarities ρ_ij, and
:func:`ward_groups` forms groups of similar clients.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
Ward: Hierarchical grouping to optimize an objective function. JASA 1963.
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, nearest

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
    others and has ρ = 0 with other zero updates. In Ward's tree, clients never selected then form a
    chain, of which only the first, up to the weight M, form a group; section 5 groups all of them.
    ``code``: L2 is squared.  A zero update has ρ = 0 with all others under arccos.
    """
    for key, value, names in (("measure", measure, MEASURES), ("ward", ward, WARD_VARIANTS)):
        if value not in names:
            raise InputError(f"{key}: {value!r} is unknown; {nearest(value, names)}")
    if not np.isfinite(pairs).all():
        raise InputError("updates: some are not finite; leave clients that diverged at zero")
    if measure == "l1":
        return pairs
    square = pairs.diagonal()
    if measure == "l2":
        rho = np.maximum(np.add.outer(square, square) - 2 * pairs, 0)
        rho = rho if ward == "code" else np.sqrt(rho)
    else:
        norm = np.sqrt(square)
        length = np.where(norm == 0, 1.0, norm)
        rho = np.arccos(np.clip(pairs / length[:, None] / length[None, :], -1, 1))
        either_or_both = np.logical_or if ward == "code" else np.logical_and
        rho[either_or_both.outer(norm == 0, norm == 0)] = 0
    np.fill_diagonal(rho, 0)  # remove rounding errors of the products
    return rho


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
