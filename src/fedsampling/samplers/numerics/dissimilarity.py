"""Dissimilarities ρ_ij of clients' updates, for fraboni2021clustered's Algorithm 2.

:func:`pairs` combines the updates of all clients, or only of clients that trained again, with the
updates of all clients.  :func:`from_pairs` turns the result into dissimilarities.
:func:`dissimilarities_to` compares all clients with a few clients, for populations too large for
all pairs.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
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
