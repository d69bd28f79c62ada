"""Clustered sampling: draw k selects one client from its own distribution r[k].

MD sampling is the special case of m equal distributions.  Here the distributions are formed from
the clients' sample counts (Algorithm 1), or from the similarity of their updates (Algorithm 2).
Their rows and columns must have the sums of eqs. (7) and (8), which makes the samplers unbiased.
Both algorithms allocate integers, so that these sums are exact.

Algorithm 2 combines the clients' updates in pairs (:func:`pairs`; only rows of clients that trained
again are recomputed), turns these into dissimilarities ρ_ij, forms groups from maximal subtrees of
Ward's tree, and allocates the groups to the distributions.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883).
Ward: Hierarchical grouping to optimize an objective function. JASA 1963.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Duplicates, Setup, Slots, View
from fedsampling.samplers.similarity import dissimilarities, from_pairs, pairs, ward_groups


def allocate_by_size(n_samples: NDArray[np.integer], m: int) -> Array:
    """Allocate n clients to m distributions so that large clients do not share one.

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
        to M (7) and the columns to m n_i (8), exactly; see :func:`units_by_size`.

    Raises
    ------
    InputError
        If the counts are invalid, or m is not in 1..n.

    References
    ----------
    Algorithm 1 and Theorem 3.
    """
    return shares(units_by_size(n_samples, m))


def units_by_size(n_samples: NDArray[np.integer], m: int) -> Ints:
    """Compute r'_{k,i} = M r_{k,i} of Algorithm 1 as integers, shape (m, n).

    Notes
    -----
    Algorithm 1 lays the clients, largest first, end to end on a line of length mM.  Client i covers
    m n_i units, and ties keep their order.  The line is cut into m pieces of length M, and r'_{k,i}
    is the overlap of client i with piece k, which :func:`pieces_by_size` computes in integers.

    The printed algorithm means the same but has two errors.  The index a_i is a quotient, so pieces
    are numbered from 0 and line 3 must read k ← 0; with k ← 1, piece 0 stays empty if the first
    client extends beyond it (m p_1 ≥ 1), which violates (7).  And b_i is the fill of piece a_i, so
    line 13 is correct only for a client that extends into this piece; a client that stays within it
    adds b_i − b_{i−1}.  For the last client, a_n = m is a piece that does not exist, with b_n = 0.
    """
    units = np.zeros((m, np.size(n_samples)), np.int64)
    for k, (clients, overlap) in enumerate(pieces_by_size(n_samples, m)):
        units[k, clients] = overlap
    return units


def pieces_by_size(n_samples: NDArray[np.integer], m: int) -> list[tuple[Ints, Ints]]:
    """Compute the clients of each of Algorithm 1's m distributions, with their r'_{k,i} > 0.

    Returns
    -------
    list of (int array, int array)
        For each distribution its clients, ascending, and their units; at most n + m − 1 in all,
        where :func:`units_by_size` has m n.
    """
    counts = _checked(n_samples, m)
    M = int(counts.sum())
    order = np.argsort(-counts, kind="stable")
    ends = np.cumsum(m * counts[order], dtype=np.int64)
    starts = ends - m * counts[order]
    pieces = []
    for piece in range(0, m * M, M):
        # Clients that end after the piece begins and begin before it ends.
        part = np.s_[ends.searchsorted(piece, "right") : starts.searchsorted(piece + M)]
        overlap = np.minimum(ends[part], piece + M) - np.maximum(starts[part], piece)
        ascending = np.argsort(order[part])
        pieces.append((order[part][ascending], overlap[ascending]))
    return pieces


def allocate_by_similarity(
    n_samples: NDArray[np.integer],
    updates: NDArray[np.floating],
    m: int,
    measure: str,
    rng: np.random.Generator,
    ward: str = "paper",
) -> Array:
    """Group clients with similar updates, and give each of the m largest groups a distribution.

    Parameters
    ----------
    n_samples : int array, shape (n,)
        Samples n_i of each client; non-negative, not all zero.
    updates : float array, shape (n, d)
        Representative gradients G_i; zero for a client that was never selected.
    m : int
        Number of distributions, 1 ≤ m ≤ n.
    measure : {"arccos", "l2", "l1"}
    rng : numpy.random.Generator
        Shuffles the clients of the groups without a distribution of their own.
    ward : {"paper", "code"}
        Variant of the clustering and of the order of groups; see :func:`units_by_similarity`.

    Returns
    -------
    r : float array, shape (m, n)
        Sampling probabilities; see :func:`allocate_by_size`.

    Raises
    ------
    InputError
        If the counts or the shape of `updates` are invalid, m is not in 1..n, or `measure` or
        `ward` is unknown.

    References
    ----------
    Algorithm 2, Theorem 4 and the last paragraph of section 5.
    """
    counts = _checked(n_samples, m)
    updates = np.asarray(updates)
    if updates.ndim != 2 or len(updates) != counts.size:
        raise InputError(
            f"updates: the shape is {updates.shape}; must have a row for each of "
            f"{counts.size} clients"
        )
    rho = dissimilarities(updates, measure, ward)
    return shares(units_by_similarity(counts, rho, m, rng, ward))


def units_by_similarity(
    n_samples: Ints, rho: Array, m: int, rng: np.random.Generator, ward: str = "paper"
) -> Ints:
    """Compute r'_{k,i} = M r_{k,i} of Algorithm 2 as integers, shape (m, n).

    Parameters
    ----------
    n_samples : int array, shape (n,)
    rho : float array, shape (n, n)
        Dissimilarities ρ_ij of the clients' updates.
    ward : {"paper", "code"}
        ``paper``: Ward's method uses ρ_ij as distances, and groups are ordered by decreasing q_k.
        ``code``: it uses the rows of ρ as observations; the m largest groups, then the others, are
        ordered by increasing q_k.

    Notes
    -----
    A client with m n_i ≥ M first gets ⌊m n_i/M⌋ distributions of its own.  Algorithm 2 then
    allocates the remaining units of all clients to the remaining distributions (end of section 5).

    Line 12 of the printed algorithm is corrected: b_i includes the units that distribution k
    already has, so the client's share is r'_{k,i} ← u_i, and q_k must grow by it before the next
    client.

    The clients of the groups without a distribution of their own are in random order, as in the
    authors' code; the paper does not specify an order.
    """
    M = int(n_samples.sum())
    count, u = np.divmod(m * n_samples, M)
    client = np.repeat(np.arange(n_samples.size), count)
    single = np.zeros((client.size, n_samples.size), np.int64)
    single[np.arange(client.size), client] = M
    clients = np.flatnonzero(u)
    if not clients.size:
        return single
    u = u[clients]
    groups = ward_groups(rho[np.ix_(clients, clients)], u, M, ward)  # lines 2, 3
    m -= len(single)
    q = np.array([u[group].sum() for group in groups])
    order = np.argsort(-q, kind="stable")  # line 4
    largest, smaller = order[:m], order[m:]
    if ward == "code":
        largest, smaller = largest[::-1], smaller[::-1]
    units = np.zeros((m, u.size), np.int64)
    for k, group in enumerate(largest):  # line 5
        units[k, groups[group]] = u[groups[group]]
    S = np.concatenate([np.empty(0, np.int64), *(rng.permutation(groups[g]) for g in smaller)])
    # Lines 7 to 19 lay the clients of S end to end over the free units, as in Algorithm 1.
    ends = np.cumsum(u[S])
    full = np.cumsum(M - units.sum(1))
    overlap = np.minimum(ends, full[:, None]) - np.maximum(
        ends - u[S], np.concatenate([[0], full[:-1]])[:, None]
    )
    units[:, S] = np.maximum(overlap, 0)
    shared = np.zeros((m, n_samples.size), np.int64)
    shared[:, clients] = units
    return np.concatenate([single, shared])


def shares(units: Ints) -> Array:
    """Compute r_{k,i} = r'_{k,i} / M."""
    r: Array = units / units[0].sum()
    return r


def one_from_each(r: Array, u: Array) -> Ints:
    """Turn uniform variates, shape (..., m), into one client from each distribution r[k]."""
    return np.stack([invert(r[k], u[..., k]) for k in range(len(r))], axis=-1)


def _checked(n_samples: NDArray[np.integer], m: int) -> Ints:
    counts = np.asarray(n_samples)
    if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
        raise InputError("n_samples: must be one list of non-negative integers")
    if not 1 <= m <= counts.size:
        raise InputError(
            f"m: {m} of {counts.size} clients is impossible; must be in 1…{counts.size}"
        )
    counts = counts.astype(np.int64)  # negation of unsigned integers would wrap around
    if counts.sum() == 0:
        raise InputError("n_samples: all are zero; at least one client must have samples")
    return counts


@dataclass
class Pieces:
    """The clients of W_1, …, W_m, with their probabilities."""

    of_draw: list[tuple[Ints, Array]]


class ClusteredSize(
    Scheme,
    name="clustered_size",
    title="Clustered sampling by sample size",
    short="Clustered, size",
):
    """One client from each of m distributions, which are formed from sample counts.

    References
    ----------
    Fraboni et al. 2021, Algorithm 1.
    """

    m: Positive
    duplicates: Duplicates = "independently"

    def initial_state(self, setup: Setup) -> Pieces:
        """Compute the distributions W_1, …, W_m."""
        M = counts(setup).sum()
        pieces = pieces_by_size(counts(setup), self.m)
        return Pieces([(clients, units / M) for clients, units in pieces])

    def select(self, state: Pieces, view: View, rng: Draws) -> Slots:
        """Draw l_k from W_k for k = 1, …, m."""
        u = rng.uniforms("clients", self.m)
        drawn = [
            clients[invert(probabilities, u_k)]
            for (clients, probabilities), u_k in zip(state.of_draw, u.T, strict=True)
        ]
        return Slots.drawn(np.stack(drawn, axis=-1), self.duplicates)

    def weigh(self, state: Pieces, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each draw."""
        return slots.times / self.m


@dataclass
class SizedUpdates:
    """The clients' sizes and last updates."""

    counts: Ints  # n_i, shape (n,)
    G: NDArray[np.float32]  # shape (runs, n, d)
    pairs: Array  # of the updates, shape (runs, n, n)


class ClusteredSimilarity(
    Scheme,
    name="clustered_similarity",
    title="Clustered sampling by similarity of updates",
    short="Clustered, similarity",
):
    """One client from each of m distributions, which are formed from the similarity of updates.

    If a client is drawn twice in a round, the later update is remembered.

    References
    ----------
    Fraboni et al. 2021, Algorithm 2 and section 5.
    """

    m: Positive
    duplicates: Duplicates = "independently"
    measure: Literal["arccos", "l2", "l1"] = Field(
        default="arccos", description="dissimilarity ρ_ij"
    )
    ward: Literal["paper", "code"] = Field(
        default="paper",
        description="Ward's method on the dissimilarities, or on rows of their matrix",
    )

    needs = frozenset({"updates"})
    pair_matrices = 5
    grid = {"measure": ("arccos", "l2", "l1")}

    def initial_state(self, setup: Setup) -> SizedUpdates:
        """Start from updates of zero, whose pairs are zero as well."""
        n = len(setup.p)
        G = np.zeros((setup.runs, n, setup.dimension), np.float32)
        return SizedUpdates(counts(setup), G, np.zeros((setup.runs, n, n)))

    def select(self, state: SizedUpdates, view: View, rng: Draws) -> Slots:
        """Compute W_1, …, W_m in each run from the last updates, and draw l_k from W_k."""
        u = rng.uniforms("clients", self.m)
        clients = []
        for run, generator in enumerate(rng.generators("groups")):
            rho = from_pairs(state.pairs[run], self.measure, self.ward)
            units = units_by_similarity(state.counts, rho, self.m, generator, self.ward)
            clients.append(one_from_each(shares(units), u[run]))
        return Slots.drawn(np.stack(clients), self.duplicates)

    def weigh(self, state: SizedUpdates, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each draw."""
        return slots.times / self.m

    def learn(self, state: SizedUpdates, slots: Slots, view: View) -> SizedUpdates:
        """Store each client's last update, and combine it with all updates."""
        updates = view.observed["updates"]
        finite = np.isfinite(updates).all(1, keepdims=True)  # a diverging run must not stop others
        state.G[slots.run, slots.client] = np.where(finite, updates, 0)
        for run in np.unique(slots.run):
            clients = np.unique(slots.client[slots.run == run])
            new_pairs = pairs(state.G[run], self.measure, clients)
            state.pairs[run, clients] = new_pairs
            state.pairs[run, :, clients] = new_pairs
        return state


def counts(setup: Setup) -> Ints:
    """Return integers in proportion to the importances p_i, shape (n,).

    If p_i = n_i / M, these are the sample counts n_i.  Otherwise they are round(2**40 p_i), so that
    equal importances give equal integers.
    """
    if np.allclose(setup.p, setup.n_samples / setup.n_samples.sum(), rtol=1e-12, atol=0):
        return setup.n_samples
    return np.rint(setup.p * 2.0**40).astype(np.int64)
