"""The result of a partition: the rows of each client.

Every partition returns :data:`Shares`, row numbers sorted by client with the start of each client;
loaders gather the rows once, at the end.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.arrays import Array, Bools, Ints

Importance = Literal["equal", "samples"]  # p_k = 1/n, or in proportion to the training samples

# (index, start): client k owns rows index[start[k]:start[k + 1]]; int64, shapes (total,), (n + 1,).
Shares = tuple[Ints, Ints]


def starts(sizes: ArrayLike) -> Ints:
    """Return the start of each of n clients, and the total: int64, shape (n + 1,)."""
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))])


def clients(shares: Shares) -> Ints:
    """Return the client of each entry of the index, shape (total,)."""
    start = shares[1]
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def ranks(shares: Shares) -> Ints:
    """Return each entry's position within its client, shape (total,)."""
    index, start = shares
    return np.arange(len(index)) - np.repeat(start[:-1], np.diff(start))


def random_ranks(shares: Shares, rng: np.random.Generator) -> Ints:
    """Return a random permutation of each client's :func:`ranks`, shape (total,)."""
    rank = np.empty(len(shares[0]), np.int64)
    rank[np.lexsort([rng.random(len(rank)), clients(shares)])] = ranks(shares)
    return rank


def select(shares: Shares, mask: Bools) -> Shares:
    """Return the entries where `mask`, shape (total,), is true; drop clients without entries."""
    index, start = shares
    sizes = np.bincount(clients(shares)[mask], minlength=len(start) - 1)
    return index[mask], starts(sizes[sizes > 0])


def take(shares: Shares, order: Ints) -> Shares:
    """Return the clients in `order`, with all their entries."""
    index, start = shares
    sizes = np.diff(start)[order]
    begin = starts(sizes)
    return index[np.repeat(start[order] - begin[:-1], sizes) + np.arange(begin[-1])], begin


def importances(start: Ints, importance: Importance) -> Array:
    """Return the importances p_k of the clients, shape (n,)."""
    weight = np.diff(start) if importance == "samples" else np.ones(len(start) - 1)
    p: Array = weight / weight.sum()
    return p


def rounded(exact: Array, total: ArrayLike) -> Ints:
    """Round numbers, shape (..., C), to integers with the sum `total`, by largest remainders."""
    counts = np.floor(exact).astype(np.int64)
    missing = np.asarray(total) - counts.sum(-1)
    order = np.argsort(counts - exact, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    counts += rank < missing[..., None]
    return counts
