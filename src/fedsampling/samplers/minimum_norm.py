"""The minimum-norm-point algorithm of Fujishige and Wolfe, for any set function.

Harshvardhan et al. 2025 minimise their g(S) with it.  This g is not submodular;
:func:`minimum_norm_point` states what is guaranteed nevertheless.

References
----------
Fujishige, Hayashi, Isotani: The minimum-norm-point algorithm applied to submodular function
minimization and linear programming. 2006.
Chakrabarty, Jain, Kothari: Provable submodular minimization using Wolfe's algorithm. NeurIPS 2014.
"""

from collections.abc import Callable

import numpy as np

from fedsampling.base.arrays import Array, Ints

Chain = Callable[[Ints], Array]


def minimum_norm_point(chain: Chain, start: Ints, tolerance: float = 1e-10) -> Array:
    """Compute the point of least norm in the base polyhedron of a set function f.

    `chain`: ``chain(order) -> values``: f of the first 0, 1, …, m units of an order, shape (m +
    1,). `start`, shape (m,): order of the units that defines the first greedy point. `tolerance`:
    relative to the squared norm of the greedy points. Returns `x`, shape (m,): if f is submodular,
    {x < 0} and {x ≤ 0} are its smallest and largest minimisers.

    The linear oracle is Edmonds' greedy algorithm: sort the units by x, ascending, and take the
    marginal values of f along that order.  If f is not submodular, this may not be the best vertex,
    and the level sets of x may not minimise f.  The algorithm still ends: every major cycle reduces
    ‖x‖, so no corral (set of active points) occurs twice, and there are finitely many orders.  It
    also ends if rounding keeps a cycle from reducing ‖x‖.
    """
    S = _greedy(chain, start)[None]
    weights = np.ones(1)
    x: Array = S[0]
    while True:
        q = _greedy(chain, np.argsort(x, kind="stable"))
        scale = max((S**2).sum(axis=1).max(), q @ q)
        if x @ x - x @ q <= tolerance * scale or (np.abs(S - q).max(axis=1) == 0).any():
            return x
        before = x @ x
        S, weights = np.vstack([S, q]), np.append(weights, 0.0)
        S, weights = _minor_cycles(S, weights)
        x = weights @ S
        if x @ x >= before:
            return x


def _greedy(chain: Chain, order: Ints) -> Array:
    """Return f's marginal values along an order: a vertex of the polyhedron if f is submodular."""
    q = np.empty(len(order))
    q[order] = np.diff(chain(order))
    return q


def _minor_cycles(S: Array, weights: Array) -> tuple[Array, Array]:
    """Drop points until the affine minimiser of the rest is a convex combination."""
    while True:
        y = _affine_minimiser(S)
        if (y > 1e-12).all():
            return S, y
        leaving = y <= 1e-12
        gap = np.maximum(weights - y, 1e-300)[leaving]
        step = min(1.0, float((weights[leaving] / gap).min()))
        weights = (1 - step) * weights + step * y
        positive = weights > 1e-12
        if positive.all():  # because of rounding: then drop the point with the least weight
            positive[np.flatnonzero(leaving)[weights[leaving].argmin()]] = False
        S, weights = S[positive], weights[positive] / weights[positive].sum()


def _affine_minimiser(S: Array) -> Array:
    """Return weights, with sum 1, of the point of least norm in the affine hull of S's rows."""
    gram = S @ S.T
    # (G + c 11ᵀ) y ∝ 1 has the same solution for every c > 0; this c has the scale of the system.
    system = gram + max(gram.trace() / len(S), np.finfo(np.float64).tiny)
    try:
        solution = np.linalg.solve(system, np.ones(len(S)))
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, np.ones(len(S)), rcond=1e-13)[0]
    y: Array = solution / solution.sum()
    return y
