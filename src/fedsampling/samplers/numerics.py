"""Numerical methods of the samplers: expected delays, descent on the simplex, dissimilarities.

:func:`expected_delay` is the expected delay of the slowest of k draws, and :func:`descend`
minimises a function over distributions.  :mod:`fedsampling.samplers.latency` and
:mod:`fedsampling.samplers.runtime` define the objectives.

For fraboni2021clustered's Algorithm 2, :func:`pairs` combines the updates of all clients, or only
of clients that trained again, with the updates of all clients.  :func:`from_pairs` turns the result
into dissimilarities ρ_ij, and :func:`ward_groups` forms groups of similar clients.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), sections 5.2 and 7.1.
Fujishige, Hayashi, Isotani: The minimum-norm-point algorithm applied to submodular function
minimization and linear programming. 2006.
Chakrabarty, Jain, Kothari: Provable submodular minimization using Wolfe's algorithm. NeurIPS 2014.
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
Ward: Hierarchical grouping to optimize an objective function. JASA 1963.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, nearest

Value = Callable[[Array], float]
Gradient = Callable[[Array], Array]


def expected_delay(delays: Array, p: Array, k: int = 1) -> float:
    """Compute E[max τ] = Σ_i (C_i^k − C_{i−1}^k) τ_i, C_i = Σ_{j≤i} p_j, clients sorted by delay.

    `delays`, shape (m,): τ in seconds, in any order. `p`, shape (m,): probability of each client.
    `k`: number of independent draws.

    Algorithm 3 prints Σ_{j≤i} in both terms, which would give zero; this is Lemma 3.  With C_m = 1
    it equals τ_m − Σ_{i<m} C_i^k (τ_{i+1} − τ_i), which is *concave* in p.

    References: Lemma 3.
    """
    order = np.argsort(delays, kind="stable")
    steps = np.diff(np.cumsum(p[order]) ** k, prepend=0.0)
    return float(steps @ delays[order])


def expected_delay_gradient(delays: Array, p: Array, k: int = 1) -> Array:
    """Compute the gradient Σ_{i≥j} k C_i^{k−1} (τ_i − τ_{i+1}) of :func:`expected_delay`.

    The arguments are the same; τ_{m+1} = 0.
    """
    order = np.argsort(delays, kind="stable")
    slope = k * np.cumsum(p[order]) ** (k - 1) * -np.diff(delays[order], append=0.0)
    gradient = np.empty_like(slope)
    gradient[order] = np.cumsum(slope[::-1])[::-1]
    return gradient


def descend(
    value: Value,
    gradient: Gradient | None,
    start: Array,
    iterations: int,
    method: str = "trust-constr",
    min_probability: float = 0.0,
) -> Array:
    """Minimise a function over the probability simplex with a method of SciPy.

    `value` is scaled to about one; a `gradient` of None takes finite differences. No iterations
    return the start.
    """
    if start.ndim != 1 or (start < 0).any() or not np.isclose(start.sum(), 1):
        raise InputError("start: must be a distribution: non-negative numbers with sum 1")
    if iterations < 0:
        raise InputError(f"iterations: {iterations} is out of range; must be 0 or more")
    if iterations == 0:
        return start
    from scipy.optimize import Bounds, LinearConstraint, minimize

    ones = np.ones((1, len(start)))
    constraints: Any = [LinearConstraint(ones, 1, 1)]
    options: dict[str, float] = {"maxiter": iterations}
    if method == "SLSQP":
        constraints = [{"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: ones}]
        options["ftol"] = 1e-10
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)
        result = minimize(
            value,
            start,
            method=method,
            jac="2-point" if gradient is None else gradient,
            bounds=Bounds(min_probability, 1),
            constraints=constraints,
            options=options,
        )
    clipped = np.maximum(result.x, min_probability)
    p: Array = clipped / clipped.sum()
    return p


# The minimum-norm-point algorithm of Fujishige and Wolfe, for any set function.
#
# Harshvardhan et al. 2025 minimise their g(S) with it.  This g is not submodular;
# :func:`minimum_norm_point` states what is guaranteed nevertheless.


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
