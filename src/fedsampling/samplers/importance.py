"""Importance sampling of agents and of their data: draws and probabilities of Rizk et al. 2022.

The module contains Hartley and Rao's sampling, which has exactly the required inclusion
probabilities, and the optimal probabilities with their two approximations.  The samplers are in
:mod:`fedsampling.samplers.isfedavg` and :mod:`fedsampling.samplers.isfedavg_agents`.  Symbols are
the paper's: K agents, L of them active, agent k with N_k samples, mini-batches of size B_k and E_k
epochs; p_k and p_n^(k) are *normalised* inclusion probabilities.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
Hartley, Rao: Sampling with unequal probabilities and without replacement. Ann. Math. Stat. 1962.
"""

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError

BITS = 40
UNIT = 1 << BITS  # integer that represents one in the progressive totals


def hartley_rao(inclusion: Array, rng: np.random.Generator) -> Ints:
    """Draw without replacement so that unit k is included with probability ``inclusion[k]``.

    This is systematic sampling along the progressive totals Π_k: with one uniform variate d, select
    the units with Π_{k-1} ≤ d + l < Π_k for some l = 0, 1, …, L − 1 (end of section IV-C).  The
    units keep their order.  Hartley and Rao shuffle them first, which the paper omits; this changes
    the joint inclusion probabilities, but not the single units' probabilities.

    Parameters
    ----------
    inclusion : float array, shape (n,)
        In [0, 1]; sums to an integer L.
    rng : numpy.random.Generator
        One uniform variate is drawn.

    Returns
    -------
    int array, shape (L,)
        Ascending indices.

    Raises
    ------
    InputError
        If a probability is outside [0, 1], or their sum is not an integer.
    """
    pi = np.asarray(inclusion, dtype=np.float64)
    if not ((pi >= 0) & (pi <= 1 + 1e-9)).all():
        raise InputError(
            f"inclusion: {pi.min():.6g} to {pi.max():.6g} is out of range 0…1; "
            "cap the probabilities with samplers.importance.capped"
        )
    L = round(pi.sum())
    if abs(pi.sum() - L) > 1e-6:
        raise InputError(
            f"inclusion: sums to {pi.sum():.6g}; scale it to an integer number of draws"
        )
    if L == 0:
        return np.empty(0, np.int64)
    totals = progressive_totals(capped(pi, L))  # capped: removes the sum's rounding error
    return np.flatnonzero(systematic_units(totals, np.float64(rng.random())))


def capped(p: Array, size: Ints | int) -> Array:
    """Compute inclusion probabilities of `size` draws, proportional to `p` but at most one.

    The paper sets L p_k (and B_k p_n) and does not treat values above one.  Here such units are
    always selected, and the others share the remaining draws in proportion to `p`, repeatedly until
    no value exceeds one.  This solves the paper's minimisation with the constraint it omits.

    Parameters
    ----------
    p : float array, shape (..., n)
        Non-negative, in any unit; at least `size` positive entries along the last axis.
    size : int or int array, shape (...)
        Number of draws.

    Returns
    -------
    float array, shape (..., n)
        In [0, 1]; sums to `size` along the last axis.
    """
    size = np.broadcast_to(size, p.shape[:-1])[..., None]
    pi: Array = p * (size / p.sum(-1, keepdims=True))
    while (over := pi.max(-1) > 1).any():
        full = pi[over] >= 1
        uncapped = np.where(full, 0.0, p[over])
        draws, weight = size[over] - full.sum(-1, keepdims=True), uncapped.sum(-1, keepdims=True)
        pi[over] = np.where(full, 1.0, uncapped * (draws / np.where(weight > 0, weight, 1.0)))
    return pi


def progressive_totals(pi: Array) -> Ints:
    """Compute Π_k = Σ_{l≤k} π_l along the last axis, in units of 2**-40.

    Sums of integers are exact: the last total is the number of draws, no unit covers more than one,
    and a unit of probability zero covers nothing.  Therefore :func:`systematic_units` always
    marks as many distinct units as there are draws.

    Parameters
    ----------
    pi : float array, shape (..., n)
        In [0, 1]; sums to an integer, up to rounding.

    Returns
    -------
    int array, shape (..., n)
    """
    # Rounding up makes the sum at least the integer; the excess is taken from the last totals.
    share = np.multiply(pi, UNIT)
    totals = np.ceil(share, out=share).astype(np.int64)
    np.cumsum(totals, axis=-1, out=totals)
    np.minimum(totals, totals[..., -1:] & -UNIT, out=totals)
    return totals


def systematic_units(totals: Ints, d: Array | np.float64) -> Bools:
    """Mark the units with Π_{k-1} ≤ d + l < Π_k for an integer l ≥ 0.

    Parameters
    ----------
    totals : int array, shape (..., n)
        Progressive totals of inclusion probabilities, in units of 2**-40.
    d : float array, shape (...)
        In [0, 1).

    Returns
    -------
    bool array, shape (..., n)
    """
    offset = (np.asarray(d) * UNIT).astype(np.int64)[..., None]
    # Exactly ceil(Π_k − d) integers l ≥ 0 satisfy d + l < Π_k; unit k is hit if this increases.
    below = totals + (UNIT - 1 - offset)
    below >>= BITS
    mark = np.empty(below.shape, np.bool_)
    np.greater(below[..., 0], 0, out=mark[..., 0])
    np.not_equal(below[..., 1:], below[..., :-1], out=mark[..., 1:])
    return mark


def in_proportion(scores: Array, member: Bools | None = None) -> Array:
    """Normalise scores: p_k = scores_k / Σ_l scores_l.

    For the norms ‖∇Q_k(w; x_{k,n})‖ of an agent's samples this is equation (44) at w = w^o and (49)
    at w = w_{i−1}; for :func:`agent_scores` it is equations (48) and (50).

    Parameters
    ----------
    scores : float array, shape (..., n)
        Non-negative.
    member : bool array, shape (..., n), optional
        False for padding.

    Returns
    -------
    float array, shape (..., n)
        Sums to one along the last axis.  Equal probabilities if the scores' sum is zero or not
        finite, as in a run that diverges.
    """
    equal = np.ones(scores.shape) if member is None else member.astype(np.float64)
    usable = _is_usable_divisor(total := scores.sum(-1, keepdims=True))
    p: Array = np.where(usable, scores, equal)
    p /= np.where(usable, total, equal.sum(-1, keepdims=True))
    return p


def data_variability(mean_norm: Array, E: Ints, B: Ints) -> Array:
    """Compute σ²_{s,k} of equation (23) under the optimal data probabilities (44).

    With p_n ∝ ‖∇Q_n‖, (1/N²) Σ_n ‖∇Q_n‖²/p_n is the square of the mean norm.

    Parameters
    ----------
    mean_norm : float array, shape (..., K)
        (1/N_k) Σ_n ‖∇Q_k(w; x_{k,n})‖.
    E, B : int array, shape (K,)
        Local epochs and mini-batch sizes.

    Returns
    -------
    float array, shape (..., K)
    """
    return 6 / (E * B) * mean_norm**2


def agent_scores(sigma2: Array, gradient: Array, E: Ints, B: Ints) -> Array:
    """Compute √(σ²_{s,k} + α_k ‖∇P_k(w)‖²) with α_k = 3 + 6/(E_k B_k), Lemma 7.

    Parameters
    ----------
    sigma2 : float array, shape (..., K)
    gradient : float array, shape (..., K, M)
        ∇P_k, or its mini-batch estimate.
    E, B : int array, shape (..., K)
        Local epochs and mini-batch sizes.

    Returns
    -------
    float array, shape (..., K)
        :func:`in_proportion` turns them into equation (48) at w^o and (50) at w_{i−1}.
    """
    alpha = 3 + 6 / (E * B)
    scores: Array = np.sqrt(sigma2 + alpha * np.einsum("...m,...m->...", gradient, gradient))
    return scores


def reassign(p: Array, scores: Array, member: Bools | None = None) -> Array:
    """Redistribute the probability of the sampled units in proportion to their scores.

    In equations (52) and (53) the factor 1 − Σ_{not sampled} p̂ is the current probability of the
    sampled units, so a single sampled unit keeps its probability for any score.

    Parameters
    ----------
    p, scores : float array, shape (..., sampled)
        Current probabilities, and scores.  `p` stays unchanged if the scores are all zero, or not
        finite because the run diverges.
    member : bool array, shape (..., sampled), optional
        False for padding.

    Returns
    -------
    float array, shape (..., sampled)
    """
    if member is not None:
        p, scores = np.where(member, p, 0.0), np.where(member, scores, 0.0)
    total = scores.sum(-1, keepdims=True)
    probability = p.sum(-1, keepdims=True)
    # Normalise first: the product with the scores could overflow for a tiny total.
    usable = _is_usable_divisor(total)
    return np.where(usable, probability * (scores / np.where(usable, total, 1.0)), p)


def _is_usable_divisor(total: Array) -> Bools:
    """Whether scores can be divided by their sum: it is positive and finite."""
    return (total > 0) & np.isfinite(total)
