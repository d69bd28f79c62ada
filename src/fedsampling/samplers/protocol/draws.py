"""Random draws that several samplers share: clients from uniform variates."""

import numpy as np

from fedsampling.base.arrays import Array, Ints


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


def candidates(p: Array, d: int, u: Array) -> Ints:
    """Draw d distinct clients one after another, each with probability proportional to p.

    Parameters
    ----------
    p : float array, shape (n,) or (runs, n)
        Relative probabilities; at least d of them positive.
    u : float array, shape (runs, n)
        Uniform on [0, 1), one variate for each client.

    Returns
    -------
    int array, shape (runs, d)
        In the order of the draws.

    Notes
    -----
    Clocks that ring after exponential times with rates p_i ring in this order.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        clocks = -np.log1p(-u) / p
    clocks[np.broadcast_to(p == 0, u.shape)] = np.inf
    drawn: Ints = np.argsort(clocks, axis=1, kind="stable")[:, :d]
    return drawn
