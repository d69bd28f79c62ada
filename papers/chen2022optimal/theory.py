"""Theorem 2 of Chen et al. 2022: a bound on one round of DSGD with independent reporting.

:func:`constants` returns β_1 and β_2, as printed and corrected; :func:`bound` is the right side of
the recursion (13).  The run kind ``dsgd`` measures the left side.
"""

from typing import NamedTuple

from fedsampling.base.arrays import Array


class Constants(NamedTuple):
    """β_1 and β_2 of the recursion."""

    beta1: float
    beta2: float


def constants(
    w: Array, mismatch: Array, smoothness: float, relative: float, noise: float, corrected: bool
) -> Constants:
    """Return Theorem 2's β_1 = Σ w_i² (2L(1+M) R_i + σ²) and β_2 = 2L Σ w_i² R_i, or corrected.

    `w`, shape (n,): weights of the clients; they sum to one. `mismatch`, shape (n,): R_i = f_i(x*)
    − f_i*, eq. (11). `smoothness`: L. `relative`, `noise`: M and σ² of Assumption 1. `corrected`:
    whether to use the corrected constants, with max_j w_j · w_i instead of w_i² before R_i; both
    are the same for equal weights.

    The noise of a round is Σ w_i² ‖∇f_i(x)‖² times (1+M)/γ − 1, plus a term in σ², and
    ‖∇f_i(x)‖² ≤ 2L (f_i(x) − f_i(x*) + R_i).  Weighted by w_i, the differences f_i(x) − f_i(x*) sum
    to f(x) − f*, which the descent term absorbs.  Weighted by w_i² they do not: some are negative,
    so Σ w_i² (f_i(x) − f_i(x*)) may exceed max_j w_j (f(x) − f*), and near x* the former decreases
    like ‖x − x*‖, the latter like its square.  Bounding w_i² by max_j w_j · w_i *first* keeps all
    terms non-negative, needs no smaller step, and leads to the corrected constants.
    """
    scale = w.max() * w if corrected else w**2
    beta2 = 2 * smoothness * float(scale @ mismatch)
    return Constants((1 + relative) * beta2 + noise * float((w**2).sum()), beta2)


def step_limit(gamma: float, w: Array, smoothness: float, relative: float) -> float:
    """Return γ / ((1 + max_i w_i M) L), Theorem 2's upper limit of η."""
    return float(gamma / ((1 + w.max() * relative) * smoothness))


def bound(distance: float, step: float, gamma: float, convexity: float, betas: Constants) -> float:
    """Return (1 − μη) E‖r^k‖² + η² (β_1/γ − β_2), the bound (13) on E‖r^{k+1}‖²."""
    return (1 - convexity * step) * distance + step**2 * (betas.beta1 / gamma - betas.beta2)
