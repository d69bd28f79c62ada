"""DivFL: a set of clients whose gradients stand for all others.

A submodular *maximisation*: the facility location problem on gradient differences, by greedy
selection.  The server keeps the gradients that it last received: everyone's from before the first
round, and later those of the clients that took part, which is how it was published.

References
----------
Balakrishnan, Li, Zhou, Himayat, Smith, Bilmes: Diverse Client Selection for Federated Learning via
Submodular Maximization. ICLR 2022.
Minoux: Accelerated greedy algorithms for maximizing submodular set functions. 1978.
Mirzasoleiman et al.: Lazier than lazy greedy. AAAI 2015.
"""

import heapq
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Array, Ints, Scheme, Slots, View

COLUMNS = 1 << 20  # of the gradients that are in double precision at a time


def distances(gradients: NDArray[np.floating[Any]]) -> Array:
    """Compute ‖g_i − g_j‖₂, not squared, of gradients (n, d) in products; shape (n, n)."""
    gram = np.zeros((len(gradients),) * 2)
    for first in range(0, gradients.shape[1], COLUMNS):
        g = gradients[:, first : first + COLUMNS].astype(np.float64)
        g -= g.mean(axis=0)  # the differences are the same, and lose fewer digits
        gram += g @ g.T
    squares = np.diag(gram)
    found: Array = np.sqrt(np.maximum(squares[:, None] + squares - 2 * gram, 0))
    np.fill_diagonal(found, 0)
    return found


def lazy_greedy(D: Array, m: int) -> Ints:
    """Choose m clients one by one, each that which covers most, looking at few of them.

    Parameters
    ----------
    D : float array, shape (n, n)

    Returns
    -------
    int array, shape (m,)
        In the order of choosing; as good as those of the plain greedy algorithm in each step.

    Notes
    -----
    A client's gain never grows as others are chosen.  Old gains are hence upper bounds, and the
    client on top of the heap is the best as soon as its gain has been computed anew.
    """
    nearest = _nobody(D)
    heap = [(-float(np.maximum(nearest - row, 0).sum()), i, 0) for i, row in enumerate(D)]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < m:
        gain, i, when = heapq.heappop(heap)
        if when < len(chosen):
            gain = -float(np.maximum(nearest - D[i], 0).sum())
            heapq.heappush(heap, (gain, i, len(chosen)))
            continue
        chosen.append(i)
        nearest = np.minimum(nearest, D[i])
    return np.array(chosen, np.int64)


def stochastic_greedy(D: Array, m: int, u: Array) -> Ints:
    """Choose m clients one by one, each the best of a random part of the rest.

    Parameters
    ----------
    D : float array, shape (n, n)
    u : float array, shape (m, n)
        Uniform on [0, 1); those of the rest with the smallest are looked at.

    Returns
    -------
    int array, shape (m,)

    Notes
    -----
    max(m, n/10) clients are looked at, as in the authors' code.
    """
    n = len(D)
    size = max(m, n // 10)
    nearest = _nobody(D)
    chosen: list[int] = []
    for u_step in u:
        order = np.argsort(u_step, kind="stable")
        looked = np.sort(order[~np.isin(order, chosen)][:size])
        gains = np.maximum(nearest - D[looked], 0).sum(axis=1)
        best = int(looked[gains.argmax()])
        chosen.append(best)
        nearest = np.minimum(nearest, D[best])
    return np.array(chosen, np.int64)


class DivFL(Scheme, name="divfl"):
    """m clients whose last known gradients cover those of all.

    Equal weights are as harshvardhan2025latency averages; ``samples``, in proportion to importance
    among the chosen, as the authors' code does; ``covered`` as their text says.

    References
    ----------
    Balakrishnan et al. 2022, Algorithm 1.
    """

    m: Positive
    greedy: Literal["lazy", "stochastic"] = "lazy"
    weights: Literal["equal", "samples", "covered"] = Field(
        "equal", description="1/m; by importance; by that of the clients each one covers"
    )

    needs = frozenset({"gradients"})
    unbiased = False
    intermittent = True

    _omega: Array

    def select(self, view: View, rng: Draws) -> Slots:
        """Choose each run's clients."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        u = np.empty((view.runs, self.m, n))
        if self.greedy == "stochastic":
            u = rng.uniforms("clients", self.m * n).reshape(u.shape)
        clients, omega = [], []
        for gradients, u_run in zip(view.observed["gradients"], u, strict=True):
            # A run that has diverged has no gradients to compare: its clients are the first ones.
            D = distances(np.nan_to_num(gradients[offered], nan=0, posinf=0, neginf=0))
            chosen = (
                lazy_greedy(D, m)
                if self.greedy == "lazy"
                else stochastic_greedy(D, m, u_run[:m, offered])
            )
            clients.append(offered[chosen])
            omega.append(self._weights(D, chosen, view.p[offered]))
        self._omega = np.concatenate(omega)
        return Slots.stack(clients)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Give what `weights` says."""
        return self._omega

    def _weights(self, D: Array, chosen: Ints, p: Array) -> Array:
        if self.weights == "equal":
            return np.full(len(chosen), 1 / len(chosen))
        if self.weights == "samples":
            mine: Array = p[chosen] / p[chosen].sum()
            return mine
        covered = np.bincount(D[chosen].argmin(axis=0), weights=p, minlength=len(chosen))
        return covered.astype(np.float64)


def _nobody(D: Array) -> Array:
    """Each client's distance to the nearest chosen one, while there is none: more than any."""
    return np.full(len(D), D.max() + 1.0)
