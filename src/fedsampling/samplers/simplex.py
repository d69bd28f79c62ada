"""Distributions over clients: the expected delay of the slowest draw, and descent on the simplex.

:func:`expected_delay` is the expected delay of the slowest of k draws, and :func:`descend`
minimises a function over distributions.  :mod:`fedsampling.samplers.latency` and
:mod:`fedsampling.samplers.runtime` define the objectives.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), sections 5.2 and 7.1.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError

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
    feasible: bool = False,
) -> Array:
    """Minimise a function over the probability simplex with a method of SciPy.

    `value` is scaled to about one; a `gradient` of None takes finite differences. No iterations
    return the start. By default, trust-constr evaluates `value` outside the bounds, too; with
    `feasible` it does not, which is SciPy's ``keep_feasible``.
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
            bounds=Bounds(min_probability, 1, keep_feasible=feasible),
            constraints=constraints,
            options=options,
        )
    clipped = np.maximum(result.x, min_probability)
    p: Array = clipped / clipped.sum()
    return p
