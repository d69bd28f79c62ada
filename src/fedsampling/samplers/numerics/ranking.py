"""The smallest of many keys, without sorting the others."""

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints


def smallest(keys: Array, count: int) -> Ints:
    """Return the positions of the `count` smallest keys, ascending; ties go to the first position.

    `keys`, shape (n,). `count`: at least 0; with more than n, all positions are returned. Returns
    shape (min(count, n): equal to ``np.argsort(keys, kind="stable")[:count]``, in n steps instead
    of n log n.
    """
    positions = np.flatnonzero(are_smallest(keys, count))
    return positions[np.argsort(keys[positions], kind="stable")]


def are_smallest(keys: Array, count: int) -> Bools:
    """Mark the keys that :func:`smallest` returns, shape (n,), without sorting them."""
    if count <= 0 or count >= len(keys):
        return np.full(len(keys), count > 0)
    largest = np.partition(keys, count - 1)[count - 1]
    unknown = np.isnan(keys)  # sorts after all numbers
    smaller, equal = (~unknown, unknown) if np.isnan(largest) else (keys < largest, keys == largest)
    first_ties = np.flatnonzero(equal)[: count - np.count_nonzero(smaller)]
    smaller[first_ties] = True
    return smaller
