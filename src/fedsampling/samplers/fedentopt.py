"""FedEntOpt: selects clients one by one, so that all their labels together have a large entropy.

References
----------
Lutz, Steidl, Müller, Samek: Optimizing Federated Learning by Entropy-Based Client Selection. 2024
(arXiv 2411.01240), Algorithm 1.  Only summaries of the paper were available; this module follows
two public implementations of Algorithm 1 by others, which agree.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances


def entropy(counts: Array) -> Array:
    """Compute the entropy H(counts/‖counts‖₁) of each row, in bits; 0 for a row of zeros."""
    share = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    bits = np.zeros_like(share)
    np.log2(share, out=bits, where=share > 0)
    H: Array = -(share * bits).sum(-1)
    return H


def next_client(L: Array, labels: Array, candidates: Ints) -> int:
    """Return the candidate k with the largest entropy of L + l_k; the first of equal ones.

    Parameters
    ----------
    L : float array, shape (classes,)
        Samples of each label on the clients selected so far.
    labels : float array, shape (n, classes)
        l, the samples of each label on each client.
    candidates : int array
    """
    # Sums of the same counts in another order may differ in the last bit.
    H = np.round(entropy(L + labels[candidates]), 12)
    return int(candidates[H.argmax()])


def select_clients(
    labels: Array, entered: Ints, offered: Ints, M: int, Q: int, u: float
) -> list[int]:
    """Select M clients (Algorithm 1).

    Parameters
    ----------
    labels : float array, shape (n, classes)
        l, the samples of each label on each client.
    entered : int array, shape (n,)
        1, 2, …: the order in which clients last entered the buffer; 0: never.
    offered : int array
        Available clients, at least M.
    Q : int
        Clients in the buffer, which are not selected.
    u : float
        Uniform on [0, 1), for the first client.

    Returns
    -------
    list of int
        In the order of their selection.
    """
    entered = entered.copy()
    L = np.zeros(labels.shape[1])
    selected: list[int] = []
    for i in range(M):
        rest = np.setdiff1d(offered, selected)
        candidates = rest[entered[rest] <= max(entered.max() - Q, 0)]
        if not len(candidates):
            candidates = rest[[entered[rest].argmin()]]
        if i == 0:
            k = int(candidates[int(u * len(candidates))])
        else:
            k = next_client(L, labels, candidates)
        selected.append(k)
        L += labels[k]
        entered[k] = entered.max() + 1
    return selected


@dataclass
class FedEntOptState:
    """The clients' labels, and the order in which clients entered the buffer."""

    labels: Array  # l, shape (n, classes)
    entered: Ints  # 0: never; shape (runs, n)


class FedEntOpt(
    Scheme, name="fedentopt", title="Entropy-based selection (FedEntOpt)", short="FedEntOpt"
):
    """m clients, the first at random, each further one so that all labels get the largest entropy.

    The last Q selected clients form a buffer, first in, first out, and are not selected.  Q is
    ``buffer`` K, at most K − M, so that enough clients remain.  If the available clients outside
    the buffer do not suffice, those that entered it first return early.  Weights are proportional
    to importance and sum to one over the participants.

    References
    ----------
    Lutz et al. 2024, Algorithm 1.  Summaries report that Q between 0.5 K and 0.7 K is best.
    """

    m: Positive = Field(description="M: clients of a round")
    buffer: Proportion = Field(default=0.5, description="Q/K: share of the clients in the buffer")

    needs = frozenset({"label_counts"})
    unbiased = False
    intermittent = True
    failure_weights = "average"
    grid = {"buffer": (0.1, 0.9, "linear")}

    def initial_state(self, setup: Setup) -> FedEntOptState:
        """Start with an empty buffer."""
        labels = np.asarray(setup.label_counts, np.float64)
        return FedEntOptState(labels, np.zeros((setup.runs, len(labels)), np.int64))

    def select(self, state: FedEntOptState, view: View, rng: Draws) -> Slots:
        """Select clients outside the buffer."""
        offered, K = view.offered, len(view.p)
        M = min(self.m, len(offered))
        Q = min(round(self.buffer * K), K - M)
        u = rng.uniform("clients")
        return Slots.stack(
            [
                np.array(select_clients(state.labels, entered, offered, M, Q, float(u_run)))
                for entered, u_run in zip(state.entered, u, strict=True)
            ]
        )

    def weigh(self, state: FedEntOptState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the participants."""
        return normalised_importances(slots, view)

    def learn(self, state: FedEntOptState, slots: Slots, view: View) -> FedEntOptState:
        """Put the participants into the buffer."""
        for run, entered in enumerate(state.entered):
            clients = slots.client[slots.run == run]
            entered[clients] = entered.max() + 1 + np.arange(len(clients))
        return state
