"""Random draws and weights that several samplers use."""

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.samplers.interface.slots import Slots, View


def invert(probability: Array, u: Array) -> Ints:
    """Turn uniform variates into clients by inverting the distribution function.

    `probability`, shape (n,): sums to one up to rounding. `u`: uniform on [0, 1). Returns shape of
    `u`: clients with positive probability.
    """
    cumulative = np.cumsum(probability)
    # Division by the last value makes it exactly one, so that every u < 1 is below it.
    return np.searchsorted(cumulative / cumulative[-1], u, side="right").astype(np.int64)


def distinct(n: int, u: Array) -> Ints:
    """Choose m of n units from uniform variates (runs, m); all ordered choices are equally likely.

    References: The first m swaps of the shuffle of Fisher and Yates: Knuth, TAOCP 2, 3.4.2 P.
    """
    runs = np.arange(len(u))
    units = np.tile(np.arange(n), (len(u), 1))
    for j, u_j in enumerate(u.T):
        partner = j + (u_j * (n - j)).astype(np.int64)
        units[runs, partner], units[:, j] = units[:, j], units[runs, partner]
    return units[:, : u.shape[1]].copy()


def candidate_set(n: int, size: int | None, rng: np.random.Generator) -> Ints:
    """Draw `size` of n units without replacement, all sets equally likely; all units if None.

    Returns shape (min(size, n): ascending.
    """
    if size is None or size >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, size, replace=False, shuffle=False))


def normalised_importances(slots: Slots, view: View) -> Array:
    """Return p_i divided by the sum over the slots of its run, so that a run's weights sum to 1."""
    p = view.p[slots.client]
    total = np.bincount(slots.run, p, view.runs)[slots.run]
    return np.divide(p, total, out=np.zeros(len(slots)), where=total > 0)


# The smallest of many keys, without sorting the others.


def smallest(keys: Array, count: int) -> Ints:
    """Return the positions of the `count` smallest keys, ascending; ties go to the first position.

    Equal to ``np.argsort(keys, kind="stable")[:count]``, in n steps instead of n log n.
    """
    positions = np.flatnonzero(are_smallest(keys, count))
    return positions[np.argsort(keys[positions], kind="stable")]


def are_smallest(keys: Array, count: int) -> Bools:
    """Return a mask of the `count` smallest keys, shape (n,); ties as in :func:`smallest`."""
    if count <= 0 or count >= len(keys):
        return np.full(len(keys), count > 0)
    largest = np.partition(keys, count - 1)[count - 1]
    unknown = np.isnan(keys)  # sorts after all numbers
    smaller, equal = (~unknown, unknown) if np.isnan(largest) else (keys < largest, keys == largest)
    first_ties = np.flatnonzero(equal)[: count - np.count_nonzero(smaller)]
    smaller[first_ties] = True
    return smaller
