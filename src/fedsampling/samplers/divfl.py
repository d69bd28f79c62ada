"""DivFL: selects clients whose gradients represent all clients' gradients.

The selection maximises a submodular function (facility location on gradient differences) with a
greedy algorithm.  The server uses the last gradient that each client sent.  As published, all
clients send a gradient before the first round, and later only participants do.

References
----------
Balakrishnan, Li, Zhou, Himayat, Smith, Bilmes: Diverse Client Selection for Federated Learning via
Submodular Maximization. ICLR 2022.
Minoux: Accelerated greedy algorithms for maximizing submodular set functions. 1978.
"""

import heapq
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View

BLOCK_COLUMNS = 1 << 20  # columns of the gradients that are converted to double precision at once


def distances(gradients: NDArray[np.floating[Any]]) -> Array:
    """Compute ‖g_i − g_j‖₂ of gradients (n, d) with matrix products; shape (n, n)."""
    gram = np.zeros((len(gradients),) * 2)
    for first in range(0, gradients.shape[1], BLOCK_COLUMNS):
        g = gradients[:, first : first + BLOCK_COLUMNS].astype(np.float64)
        g -= g.mean(axis=0)  # leaves differences unchanged, and loses fewer digits
        gram += g @ g.T
    squares = np.diag(gram)
    D: Array = np.sqrt(np.maximum(squares[:, None] + squares - 2 * gram, 0))
    np.fill_diagonal(D, 0)
    return D


def lazy_greedy(D: Array, m: int) -> Ints:
    """Select m clients one by one, each with the largest gain, by lazy evaluation.

    Parameters
    ----------
    D : float array, shape (n, n)
        Distances between the clients' gradients.

    Returns
    -------
    int array, shape (m,)
        In the order of selection; each step is as good as in the plain greedy algorithm.

    Notes
    -----
    A client's gain never increases as other clients are selected.  Old gains are therefore upper
    bounds, and the client on top of the heap is the best once its gain has been recomputed.
    """
    nearest = np.full(len(D), D.max() + 1.0)  # nobody selected: above any distance
    heap = [(-float(np.maximum(nearest - row, 0).sum()), i, 0) for i, row in enumerate(D)]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < m:
        gain, i, step = heapq.heappop(heap)
        if step < len(chosen):
            gain = -float(np.maximum(nearest - D[i], 0).sum())
            heapq.heappush(heap, (gain, i, len(chosen)))
            continue
        chosen.append(i)
        nearest = np.minimum(nearest, D[i])
    return np.array(chosen, np.int64)


@dataclass
class WeightedClients:
    """The clients of each run, and their weights one after another."""

    clients: list[Ints]
    omega: Array


class DivFL(Scheme, name="divfl", title="Diverse client selection (DivFL)", short="DivFL"):
    """m clients whose last known gradients represent all clients' gradients.

    Weights are equal, proportional to importance as in the authors' code (``samples``), or the
    importance of the represented clients as in their text (``covered``).
    Each step compares all clients; the authors' code compares a random tenth of them.

    References
    ----------
    Balakrishnan et al. 2022, Algorithm 1.
    """

    m: Positive
    greedy: Literal["lazy"] = Field(
        default="lazy", description="the only choice; part of all runs' hashes"
    )
    weights: Literal["equal", "samples", "covered"] = Field(
        default="equal",
        description="1/m, by importance, or by importance of the represented clients",
    )

    needs = frozenset({"gradients"})
    pair_matrices = 4
    unbiased = False
    intermittent = True
    grid = {"weights": ("samples", "equal", "covered")}

    def initial_state(self, setup: Setup) -> WeightedClients:
        """Start without a selection."""
        return WeightedClients([], np.zeros(0))

    def begin(self, state: WeightedClients, view: View, rng: Draws) -> WeightedClients:
        """Select each run's clients by their gradients, and weigh them."""
        offered = view.offered
        m = min(self.m, len(offered))
        clients, omega = [], []
        for gradients in view.observed["gradients"]:
            # Gradients of a diverged run are zero: it selects the clients with the lowest indices.
            D = distances(np.nan_to_num(gradients[offered], nan=0, posinf=0, neginf=0))
            chosen = lazy_greedy(D, m)
            clients.append(offered[chosen])
            omega.append(self._weights(D[chosen], chosen, view.p[offered]))
        return WeightedClients(clients, np.concatenate(omega))

    def select(self, state: WeightedClients, view: View, rng: Draws) -> Slots:
        """Return the selected clients."""
        return Slots.stack(state.clients)

    def weigh(self, state: WeightedClients, slots: Slots, view: View, rng: Draws) -> Array:
        """Return the weights that the setting `weights` defines."""
        return state.omega if view.reports is None else state.omega[view.reports.reported]

    def _weights(self, D: Array, chosen: Ints, p: Array) -> Array:
        """Weigh the selected clients, whose distances to all clients are D, shape (m, n)."""
        if self.weights == "equal":
            return np.full(len(chosen), 1 / len(chosen))
        if self.weights == "samples":
            weights: Array = p[chosen] / p[chosen].sum()
            return weights
        covered = np.bincount(D.argmin(axis=0), weights=p, minlength=len(chosen))
        return covered.astype(np.float64)
