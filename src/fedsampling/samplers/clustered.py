"""Clustered sampling: draw k takes its one client from a distribution r[k] of its own.

MD sampling is the case of m equal distributions.  Here the distributions come from the clients'
sample counts alone (Algorithm 1); their rows and columns must sum as eqs. (7) and (8) say, which
is what makes the scheme unbiased.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.errors import InputError
from fedsampling.samplers.basic import Array, Ints, Size, invert, multiplicity


def allocate_by_size(n_samples: NDArray[np.integer], m: int) -> Array:
    """Spread n clients over m distributions so that large clients do not share one.

    Parameters
    ----------
    n_samples : int array, shape (n,)
        Samples n_i of each client; non-negative, not all zero.
    m : int
        Number of distributions, 1 ≤ m ≤ n.

    Returns
    -------
    r : float array, shape (m, n)
        Sampling probabilities, columns in the order of `n_samples`.  In units of 1/M the rows sum
        to M (7) and the columns to m n_i (8), exactly.

    Raises
    ------
    InputError
        If the counts are no counts or m is not in 1..n.

    Notes
    -----
    Algorithm 1 lays the clients, largest first (ties in the given order), end to end on a line of
    length mM, client i over m n_i units, and cuts the line into m pieces of length M: r'_{k,i} is
    the overlap of client i with piece k.  This is done here as written, in integers.  The printed
    box means the same, but followed to the letter it does not meet (7): a_i is a quotient, so that
    pieces are numbered from 0 and line 3 must read k ← 0 (k ← 1 leaves piece 0 empty where the
    first client crosses it, m p_1 ≥ 1); and b_i is the fill of piece a_i, so that line 13 holds
    only for a client that has crossed into it: one that stays adds b_i − b_{i−1}.  At the last
    client a_n = m names a piece that does not exist, harmlessly with b_n = 0.

    References
    ----------
    Algorithm 1 and Theorem 3.
    """
    counts = np.asarray(n_samples)
    if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
        raise InputError("n_samples: sample counts must be one list of non-negative integers")
    if not 1 <= m <= counts.size:
        raise InputError(
            f"m: {m} of {counts.size} clients cannot be sampled; use 1 to {counts.size}"
        )
    counts = counts.astype(np.int64)  # unsigned counts cannot be negated
    M = int(counts.sum())
    if M == 0:
        raise InputError("n_samples: no client has a sample; give at least one a positive count")
    order = np.argsort(-counts, kind="stable")
    ends = np.cumsum(m * counts[order], dtype=np.int64)
    starts = ends - m * counts[order]
    piece = M * np.arange(m, dtype=np.int64)[:, None]
    overlap = np.minimum(ends, piece + M) - np.maximum(starts, piece)
    r = np.empty((m, counts.size))
    r[:, order] = np.maximum(overlap, 0) / M
    return r


def clustered(r: Array, rng: np.random.Generator, size: Size = ()) -> Ints:
    """Draw one client from each distribution r[k].

    Parameters
    ----------
    r : float array, shape (m, n)
    rng : numpy.random.Generator
    size : tuple of int
        Shape of independent repetitions.

    Returns
    -------
    int array, shape (*size, m)
        Client l_k of each draw k.

    References
    ----------
    Section 3.1.
    """
    u = rng.random((*size, len(r)))
    return np.stack([invert(r[k], u[..., k]) for k in range(len(r))], axis=-1)


def clustered_weights(r: Array, rng: np.random.Generator, size: Size = ()) -> Array:
    """Give ω_i = (1/m) Σ_k 𝕀(l_k = i), shape (*size, n), as under MD sampling.

    References
    ----------
    Eq. (55) of fraboni2022general.
    """
    m, n = r.shape
    omega: Array = multiplicity(clustered(r, rng, size), n) / m
    return omega
