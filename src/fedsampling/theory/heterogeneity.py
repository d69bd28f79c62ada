"""Feature heterogeneity of clients: B_ij = ‖(A_i − A_j) A⁻¹‖₂, for all pairs at once.

A_i is the second moment of client i's features in one batch, A the mean of all A_i.  Features are
the samples themselves, or the inputs of a network's last layer.  The training loop collects them;
the samplers of :mod:`fedsampling.samplers.latency` use B.  :func:`pairwise` computes the matrix,
:func:`refresh` updates it for the participants of a round, and :func:`bounded` enforces the
assumptions.

References
----------
Harshvardhan, Yu, Šimunić Rosing, Mazumdar: Client Selection in Federated Learning with Data
Heterogeneity and Network Latencies. 2025 (arXiv 2504.01921), Assumptions 1, 3, 4, Proposition 1.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError

Floats = NDArray[np.floating[Any]]
Precision = Literal["float64", "float32"]

TILE = 20  # clients on each side of a block of pairs, so that its vectors stay in the cache
# Convergence is tested in each of the first 12 Lanczos steps, then in every fourth.
EARLY_STEPS, CHECK_INTERVAL = 12, 4
TOLERANCE = 1e-4  # residual, relative to the eigenvalue, that ends the iteration


def pairwise(features: Floats, cutoff: Precision = "float64") -> Array:
    """Compute B_ij = ‖(A_i − A_j) A⁻¹‖₂ for all pairs of clients.

    Parameters
    ----------
    features : float array, shape (m, n, d)
        Features of n samples of each of m clients; A_i = (1/n) Σ_q x_q x_qᵀ, A = (1/m) Σ_i A_i.
    cutoff : {"float64", "float32"}
        Precision whose ε decides which eigenvalues of A count as zero, see Notes.

    Returns
    -------
    B : float array, shape (m, m)
        Symmetric, zero on the diagonal; relative error about 1e-8, see Notes.

    Raises
    ------
    InputError
        If the features have another shape, or are not finite or all zero.

    Notes
    -----
    *Singular A.*  A⁻¹ is the pseudo-inverse, which drops eigenvalues below d ε times the largest,
    as ``torch.linalg.pinv`` does in that precision.  In double precision nothing is lost: A is a
    mean of positive semidefinite A_i, so its null space is contained in every A_i's, and
    Proposition 1 (all gradient differences lie in the range of A) holds unchanged.  In single
    precision, directions of small variance are lost, for which B would be largest; inputs of a
    network's last layer have many such directions.

    *Cost.*  No d × d matrix is formed per pair.  In the eigenbasis of A its inverse is diagonal,
    and A_i is applied as two products with the n features of client i, for all j at once.  Lanczos
    iteration on MᵀM, M = (A_i − A_j) A⁻¹, runs in single precision for all pairs of a block until
    the residual is 1e-4 of the eigenvalue.  The result is ‖Mx‖ in double precision, whose error is
    of the order of the squared residual.

    References
    ----------
    Proposition 1.
    """
    X = _checked(features)
    tiles = _tiles(np.arange(len(X)))
    blocks = [(rows, columns) for k, rows in enumerate(tiles) for columns in tiles[k:]]
    B = np.zeros((len(X), len(X)))
    _fill(B, blocks, *_in_eigenbasis(X, cutoff))
    return B


def refresh(B: Array, features: Floats, participants: Ints, cutoff: Precision = "float64") -> Array:
    """Update the rows and columns of the participants of a round.

    `features`, shape (m, n, d): the latest that the server received from each client, new for the
    participants. The other arguments are those of :func:`pairwise`.

    References: Section 7.1: "B_ij are updated every round for the clients which participated".  The
    other pairs keep their values although A has changed, like the gradients in DivFL.
    """
    X = _checked(features)
    tiles = _tiles(np.arange(len(X)))
    blocks = [(rows, columns) for rows in _tiles(np.unique(participants)) for columns in tiles]
    updated = np.array(B, dtype=np.float64)
    _fill(updated, blocks, *_in_eigenbasis(X, cutoff))
    return updated


def bounded(
    B: Array, share: float = 0.9, k: int | None = None, rule: Literal["scale", "clip"] = "scale"
) -> Array:
    """Reduce B, if it is too large, so that the paper's assumptions hold.

    The paper states that it ensures Assumption 3, but not how.  There are two rules.  ``"scale"``
    multiplies B by one factor, at most 1, which preserves all ratios and therefore every proxy.
    ``"clip"`` limits each entry to a common maximum.  If one client has a nearly singular A_i,
    scaling reduces the heterogeneity of all others to almost zero; clipping does not.

    Parameters
    ----------
    B : float array, shape (m, m)
    share : float
        In (0, 1): fraction of the assumption's bound that the largest client may reach.
    k : int, optional
        Also enforce B_p < 1 for every distribution p of k draws, with ``share**2`` in place of 1.
    rule : {"scale", "clip"}

    Returns
    -------
    float array, shape (m, m)
        max_i (1/m) Σ_j B_ij ≤ share/√2 and, with `k`, max_i b̄_i + (1 − 1/m) max_ij B_ij²/k ≤
        share²/2, where b̄_i = (1/m) Σ_j B_ij².

    Notes
    -----
    Unlike the paper's claim, Assumption 4 does not imply B_p = 2 (b̄ᵀp + pᵀB̃p/k) < 1: the paper
    takes the maximum at the corners of the simplex, where the second term is zero.  This function
    uses the upper bound (1 − 1/m) max_ij B_ij² / k of that term (Motzkin and Straus).

    References
    ----------
    Assumptions 3 and 4; Lemma 4.
    """
    if not 0 < share < 1:
        raise InputError(f"share: {share} is out of range; must be more than 0 and less than 1")
    if rule == "clip":
        second_term = 0.0 if k is None else (1 - 1 / len(B)) / k
        clipped: Array = np.minimum(B, share / np.sqrt(2 * (1 + second_term)))
        return clipped
    largest = np.sqrt(2) * B.mean(axis=1).max()
    if k is not None:
        squares = B**2
        second_term = (1 - 1 / len(B)) * squares.max() / k
        largest = max(largest, np.sqrt(2 * (squares.mean(axis=1).max() + second_term)))
    scaled: Array = B * min(1.0, share / largest) if largest > 0 else B.copy()
    return scaled


def _checked(features: Floats) -> Floats:
    X = np.asarray(features)
    if X.ndim != 3 or 0 in X.shape or not np.issubdtype(X.dtype, np.floating):
        raise InputError("features: give numbers of shape (clients, samples, features)")
    if not np.isfinite(X).all() or not X.any():
        raise InputError("features: some are not finite, or all are zero; check the model")
    return X


def _in_eigenbasis(X: Floats, cutoff: Precision) -> tuple[Array, Array]:
    """Rotate the features so that A is diagonal, scale them, and invert A on its range.

    Returns `Y`, shape (m, min(n, r): with A_i = Y_iᵀ Y_i on the range of A, whose dimension is r;
    `inverse`, shape (r,).
    """
    m, n, d = X.shape
    x = X.reshape(m * n, d).astype(np.float64)
    x /= np.sqrt(np.mean(x**2))  # B does not depend on the unit; single precision might
    values, vectors = np.linalg.eigh(x.T @ x / (m * n))
    nonzero = values > d * np.finfo(cutoff).eps * values[-1]
    Y = (x @ vectors[:, nonzero]).reshape(m, n, -1) / np.sqrt(n)
    if n > Y.shape[2]:
        Y = np.linalg.qr(Y, mode="r")  # the same A_i from only r rows
    return Y, 1 / values[nonzero]


def _tiles(clients: Ints) -> list[Ints]:
    return [clients[start : start + TILE] for start in range(0, len(clients), TILE)]


def _fill(B: Array, blocks: list[tuple[Ints, Ints]], Y: Array, inverse: Array) -> None:
    """Compute blocks of B and their mirror images, in place."""
    for rows, columns in blocks:
        values = _norms(Y[rows], Y[columns], inverse)
        B[np.ix_(rows, columns)] = values
        B[np.ix_(columns, rows)] = values.T
    np.fill_diagonal(B, 0.0)


def _norms(left: Array, right: Array, inverse: Array) -> Array:
    """‖(A_i − A_j) A⁻¹‖₂ for i in a tile of clients and j in another, shape (a, b)."""
    r = len(inverse)
    # V ↦ MᵀM v, with A⁻¹ folded into the features.
    L, R = left.astype(np.float32), right.astype(np.float32)
    L_inv, R_inv = (left * inverse).astype(np.float32), (right * inverse).astype(np.float32)
    v = np.random.default_rng(0).standard_normal(r).astype(np.float32)
    basis: list[Floats] = [np.tile(v / np.linalg.norm(v), (len(left), len(right), 1))]
    alpha: list[Floats] = []
    beta: list[Floats] = []
    x = np.zeros(basis[0].shape)
    active = np.ones(x.shape[:2], np.bool_)
    size = [np.linalg.norm(Y, axis=(1, 2)) for Y in (left, left * inverse, right, right * inverse)]
    noise = np.finfo(np.float32).eps * np.add.outer(size[0] * size[1], size[2] * size[3])
    while True:
        w = _apply(_apply(basis[-1], L_inv, R_inv, L, R), L, R, L_inv, R_inv)
        if beta:
            w -= beta[-1][..., None] * basis[-2]
        alpha.append(np.einsum("abd,abd->ab", w, basis[-1]))
        w -= alpha[-1][..., None] * basis[-1]
        beta.append(np.sqrt(np.einsum("abd,abd->ab", w, w)))
        steps = len(alpha)
        # Every early step is tested: Lanczos past convergence produces spurious eigenvalues.
        if steps <= EARLY_STEPS or steps % CHECK_INTERVAL == 0:
            theta, s = _top(np.array(alpha), np.array(beta[:-1]))
            theta = np.maximum(theta, 0)
            residual = beta[-1] * np.abs(s[-1])
            settled = residual <= TOLERANCE * theta + noise * (np.sqrt(theta) + noise)
            ended = active & (settled | (steps > EARLY_STEPS + 2 * r))
            x[ended] = sum(c[ended, None] * q[ended] for c, q in zip(s, basis, strict=True))
            active &= ~ended
            if not active.any():
                break
        basis.append(w / np.where(beta[-1] > 0, beta[-1], 1)[..., None])
    image = _apply(x * inverse, left, right, left, right)
    norms: Array = np.linalg.norm(image, axis=2) / np.linalg.norm(x, axis=2)
    return norms


def _apply(v: Floats, left: Floats, right: Floats, left_out: Floats, right_out: Floats) -> Floats:
    """(left_outᵀ left − right_outᵀ right) v, client i on the left, client j on the right."""
    of_i: Floats = np.matmul(np.matmul(v, left.swapaxes(1, 2)), left_out)
    of_j = np.matmul(np.matmul(v.swapaxes(0, 1), right.swapaxes(1, 2)), right_out)
    of_i -= of_j.swapaxes(0, 1)
    return of_i


def _top(alpha: Floats, beta: Floats) -> tuple[Array, Array]:
    """Largest eigenvalue of tridiagonal matrices, and its unit vector.

    `alpha`, shape (k, ...): diagonals. `beta`, shape (k − 1, ...): Off-diagonals. Returns `theta`,
    shape (...): eigenvalues, by bisection with Sturm's sequence; `s`, shape (k, ...): eigenvectors,
    by inverse iteration.
    """
    a, b = alpha.astype(np.float64), beta.astype(np.float64)
    low = a.max(axis=0)
    high = low + 2 * b.max(axis=0, initial=0.0)
    for _ in range(32):
        middle = (low + high) / 2
        pivot = a[0] - middle
        above = pivot > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            for diagonal, off_diagonal in zip(a[1:], b, strict=True):
                pivot = diagonal - middle - off_diagonal**2 / pivot
                above |= pivot > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    # Just above the eigenvalue, shift − T is positive definite: elimination needs no pivoting.
    shift = np.maximum(high * (1 + 1e-7), 1e-60)
    pivots = [shift - a[0]]
    for diagonal, off_diagonal in zip(a[1:], b, strict=True):
        pivots.append(np.maximum(shift - diagonal - off_diagonal**2 / pivots[-1], 1e-12 * shift))
    s = np.ones_like(a)
    for _ in range(3):
        for j in range(1, len(a)):
            s[j] += b[j - 1] / pivots[j - 1] * s[j - 1]
        s[-1] /= pivots[-1]
        for j in range(len(a) - 2, -1, -1):
            s[j] = (s[j] + b[j] * s[j + 1]) / pivots[j]
        s /= np.linalg.norm(s, axis=0)
    return high, s
