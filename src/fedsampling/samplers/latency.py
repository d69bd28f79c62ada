"""Sets and distributions of clients with the shortest estimated runtime: Algorithms 2 and 3.

A round takes as long as its slowest client.  The number of rounds grows as 1/(1 − bias), where the
bias measures how badly the selected clients represent the others, by the feature heterogeneity B of
:mod:`fedsampling.theory.heterogeneity`.  :func:`best_subset` minimises the product over sets
(Algorithm 2), :func:`best_distribution` over distributions (Algorithm 3).  The samplers are in
:mod:`fedsampling.samplers.delayhet`.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), section 5, Algorithms 2 and 3.
"""

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, nearest
from fedsampling.samplers.minimum_norm import minimum_norm_point
from fedsampling.samplers.simplex import descend, expected_delay, expected_delay_gradient

SUBSET_SOLVERS = ("exact", "minnorm")
DISTRIBUTION_SOLVERS = ("trust-constr", "analytic", "vertex")
ITERATIONS = 1000  # SciPy's default for trust-constr; the paper gives no number


def subset_objective(B: Array, delays: Array, subset: Ints) -> float:
    """Compute g(S) = max_{i∈S} τ_i / (1 − B_S) with B_S = 2 ((1/m) Σ_j min_{i∈S} B_ij)².

    Parameters
    ----------
    B : float array, shape (m, m)
        Feature heterogeneity of the clients.
    delays : float array, shape (m,)
        τ, seconds.
    subset : int array
        Not empty: g(∅) is not defined.

    Returns
    -------
    float
        Infinite if B_S ≥ 1.

    References
    ----------
    Remark 1.
    """
    bias = 2 * float(B[subset].min(axis=0).mean()) ** 2
    return float(delays[subset].max()) / (1 - bias) if bias < 1 else np.inf


def shares(B: Array, subset: Ints) -> Array:
    """Compute the share of clients that each member of a set represents.

    Returns
    -------
    alpha : float array, shape of `subset`
        α_i = (1/m) #{j : i = argmin_{i'∈S} B_i'j}; ties go to the first member of `subset`.

    References
    ----------
    Definition 1.
    """
    proxy = B[subset].argmin(axis=0)
    alpha: Array = np.bincount(proxy, minlength=len(subset)) / B.shape[1]
    return alpha


def best_subset(
    B: Array, delays: Array, solver: str = "exact", start: Ints | None = None
) -> tuple[Ints, Array]:
    """Compute the set of clients of DelayHetSubmodular.

    Parameters
    ----------
    B : float array, shape (m, m)
        Symmetric, non-negative, zero on the diagonal.
    delays : float array, shape (m,)
        τ, seconds, positive.
    solver : {"exact", "minnorm"}
        ``exact`` returns the minimum.  ``minnorm`` is the paper's solver: the minimum-norm point
        for g(S) − g(∅), where g(∅) is the largest g of a single client.  It returns {x < 0}, or if
        this is empty, the best of the sets of clients with the smallest x.
    start : int array, shape (m,), optional
        Order of the clients that defines the first greedy point of ``minnorm``; by default the
        order of delays, in which the paper numbers them.

    Returns
    -------
    indices : int array, shape (s,)
        Ascending.
    alpha : float array, shape (s,)
        Their weights, :func:`shares`; sum to one.

    Raises
    ------
    InputError
        If B or the delays are out of range, the solver is unknown, or the solver is ``minnorm`` and
        Assumption 3 does not hold, so that g of a single client is infinite.

    Notes
    -----
    Remark 2 calls g submodular, but it is not: h(S) = (1/m) Σ_j min_{i∈S} B_ij is monotonically
    decreasing and supermodular, and in A.2 the multiplication by −τ reverses the inequality.  The
    minimum is simple nevertheless.  For a given largest delay, adding clients that are no slower
    leaves the numerator unchanged and does not increase h.  So some set {i : τ_i ≤ τ} is optimal,
    and there are at most m of these.

    MinNorm has no guarantee for such a g.  Started from the order of delays, it may return the
    minimum or a larger set; started from another order it stops far from the minimum.

    References
    ----------
    Algorithm 2.
    """
    B, delays = _checked(B, delays)
    if solver not in SUBSET_SOLVERS:
        raise InputError(f"solver: {solver!r} is unknown; {nearest(solver, SUBSET_SOLVERS)}")
    order = np.argsort(delays, kind="stable")
    if solver == "exact":
        chosen = _best_prefix(B, delays, order)
    else:
        order = order if start is None else np.asarray(start)
        if sorted(order) != list(range(len(B))):
            raise InputError("start: must list the index of each client once")
        chosen = _minimum_norm_subset(B, delays, order)
    indices = np.sort(chosen)
    return indices, shares(B, indices)


def distribution_objective(B: Array, delays: Array, p: Array, k: int = 1) -> float:
    """Compute g(p) = E[max_{i∈S} τ_i] / (1 − B_p) for S of k independent draws from p.

    B_p = 2 (pᵀB̃1/m + pᵀB̃p/k), B̃_ij = B_ij².  L/μ is omitted, since it does not depend on p.

    Returns
    -------
    float
        Infinite if B_p ≥ 1.

    References
    ----------
    Remark 3.
    """
    denominator = 1 - bias(B, p, k)
    return expected_delay(delays, p, k) / denominator if denominator > 0 else np.inf


def bias(B: Array, p: Array, k: int = 1) -> float:
    """Compute B_p of Lemma 4."""
    image = B**2 @ p
    return float(2 * (image.mean() + p @ image / k))


def best_distribution(
    B: Array,
    delays: Array,
    k: int = 1,
    solver: str = "trust-constr",
    start: Array | None = None,
    iterations: int = ITERATIONS,
    jacobian: str = "2-point",
    feasible: bool = False,
) -> Array:
    """Compute the probabilities of DelayHetSampling.

    Parameters
    ----------
    B, delays
        As in :func:`best_subset`.
    k : int
        Draws in the objective; the paper minimises with 1, regardless of the number of draws.
    solver : {"trust-constr", "analytic", "vertex"}
        ``trust-constr`` is the paper's solver, SciPy's interior point method with its defaults.
        ``analytic`` is SciPy's SLSQP with the exact gradient; it ends in a local minimum, in a
        hundredth of the time.  ``vertex`` returns the global minimum.
    start : float array, shape (m,), optional
        Distribution to start from; by default uniform, because the paper specifies no start.
    iterations : int
        Maximum number of iterations.
    jacobian : {"2-point", "exact"}
        For ``trust-constr``: finite differences, SciPy's default, or the exact gradient.
    feasible : bool
        For ``trust-constr``: whether g is evaluated at distributions with B_p < 1 only. SciPy's
        default evaluates it at negative probabilities, and the formula of g also where B_p > 1.

    Returns
    -------
    p : float array, shape (m,)
        Non-negative, sums to one.

    Raises
    ------
    InputError
        If an argument is out of range, or B_p ≥ 1 at the start, where g is not defined;
        :func:`fedsampling.theory.heterogeneity.bounded` with `k` prevents this.

    Notes
    -----
    *The minimum is degenerate.*  The slowest of k draws is at least as slow as one draw, and
    pᵀB̃p ≥ 0, so

        g(p) ≥ τᵀp / (1 − 2 b̄ᵀp),  b̄_i = (1/m) Σ_j B_ij².

    The right side is a ratio of linear functions, so its minimum is at a corner of the simplex,
    where it equals g.  For every k, sampling the single client argmin τ_i / (1 − 2 b̄_i) is optimal.
    An interior point method with `feasible` stays away from corners, and does not reach the optimal
    corner in a thousand iterations at m = 100: its result depends on `start` and `iterations`.

    *Outside the simplex g misleads.*  At negative probabilities the expected delay may be negative,
    and where B_p > 1 its quotient is, so that slower clients look better.  Without `feasible`, the
    solver may end close to the corner of one of the slowest clients, at a larger g than with it.

    References
    ----------
    Algorithm 3.
    """
    B, delays = _checked(B, delays)
    if solver not in DISTRIBUTION_SOLVERS:
        raise InputError(f"solver: {solver!r} is unknown; {nearest(solver, DISTRIBUTION_SOLVERS)}")
    m = len(B)
    if solver == "vertex":
        corner: Array = np.eye(m)[int(_corner_objectives(B, delays).argmin())]
        return corner
    p = np.full(m, 1 / m) if start is None else np.asarray(start, np.float64)
    if p.shape != (m,) or k < 1 or jacobian not in ("2-point", "exact"):
        raise InputError(
            f"start, k, jacobian: give {m} probabilities, 1 or more draws, and 2-point or exact"
        )
    if bias(B, p, k) >= 1:
        raise InputError(
            f"B: B_p = {bias(B, p, k):.3g} at the start, where g(p) needs less than 1; "
            "scale B with theory.heterogeneity.bounded(B, k=k)"
        )
    W, tau = B**2, delays / delays.max()  # scaled, since the solver's tolerances are absolute
    mean = W.mean(axis=1)

    def value(p: Array) -> float:
        denominator = 1 - 2 * float(mean @ p + p @ W @ p / k)
        if feasible and denominator <= 0:
            return np.inf
        return expected_delay(tau, p, k) / denominator

    def gradient(p: Array) -> Array:
        image = W @ p
        denominator = 1 - 2 * float(mean @ p + p @ image / k)
        bias_slope = 2 * (mean + 2 * image / k) * expected_delay(tau, p, k) / denominator**2
        slope: Array = expected_delay_gradient(tau, p, k) / denominator + bias_slope
        return slope

    if solver == "analytic":
        return descend(value, gradient, p, iterations, "SLSQP")
    exact = gradient if jacobian == "exact" else None
    return descend(value, exact, p, iterations, feasible=feasible)


def _corner_objectives(B: Array, delays: Array) -> Array:
    """Compute g at each corner of the simplex, shape (m,)."""
    denominator = 1 - 2 * (B**2).mean(axis=1)
    g: Array = np.divide(delays, denominator, out=np.full(len(B), np.inf), where=denominator > 0)
    if not np.isfinite(g).any():
        raise InputError("B: no client meets Assumption 4; scale it with heterogeneity.bounded")
    return g


def _prefix_objectives(B: Array, delays: Array, order: Ints) -> Array:
    """Compute g of the first 1, …, m clients of an order, shape (m,)."""
    h = np.minimum.accumulate(B[order], axis=0).mean(axis=1)
    denominator = 1 - 2 * h**2
    tau = np.maximum.accumulate(delays[order])
    g: Array = np.divide(tau, denominator, out=np.full(len(order), np.inf), where=denominator > 0)
    return g


def _best_prefix(B: Array, delays: Array, order: Ints) -> Ints:
    """Return the first clients of an order, as many as minimise g."""
    return order[: 1 + int(_prefix_objectives(B, delays, order).argmin())]


def _minimum_norm_subset(B: Array, delays: Array, start: Ints) -> Ints:
    empty = max(subset_objective(B, delays, np.array([i])) for i in range(len(B)))  # g(∅)
    if not np.isfinite(empty):
        raise InputError(
            "B: Assumption 3 does not hold, and g of a single client is infinite; "
            "scale it with theory.heterogeneity.bounded, or use the solver 'exact'"
        )

    def chain(order: Ints) -> Array:
        return np.append(empty, _prefix_objectives(B, delays, order))

    x = minimum_norm_point(chain, start)
    negative = np.flatnonzero(x < 0)
    if len(negative):
        return negative
    return _best_prefix(B, delays, np.argsort(x, kind="stable"))


def _checked(B: Array, delays: Array) -> tuple[Array, Array]:
    B, delays = np.asarray(B, np.float64), np.asarray(delays, np.float64)
    if B.ndim != 2 or B.shape[0] != B.shape[1] or not np.isfinite(B).all() or (B < 0).any():
        raise InputError("B: must be a square matrix of finite, non-negative numbers")
    if np.diag(B).any() or not np.allclose(B, B.T):
        raise InputError("B: must be symmetric with a zero diagonal; see heterogeneity.pairwise")
    if delays.shape != (len(B),) or not np.isfinite(delays).all() or (delays <= 0).any():
        raise InputError("delays: give one finite, positive number of seconds for each client")
    return B, delays
