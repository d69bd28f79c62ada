"""Who takes part: in a round, and over all rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.data.federated import FederatedDataset
from fedsampling.samplers.protocol.slots import Slots


def participation(
    slots: Slots, omega: Array, labels: Ints | None, runs: int
) -> Mapping[str, Array]:
    """Count the participants of each run.

    Returns shape (runs,): ``clients``: distinct clients that trained; ``reports``: slots whose
    update is used; ``labels``, if clients have labels: distinct values among the participants'
    labels.
    """
    counts = {
        "clients": count_distinct(slots.run, slots.client, runs),
        "reports": np.bincount(slots.run[omega != 0], minlength=runs).astype(np.float64),
    }
    if labels is not None:
        counts["labels"] = count_distinct(slots.run, labels[slots.client], runs)
    return counts


def evenness(counts: Array) -> Mapping[str, Array]:
    """Measure how evenly the clients have taken part so far.

    `counts`, shape (runs, n): number of rounds in which each client's update was used. Returns
    shape (runs,): ``entropy`` of the clients' shares of all participations, divided by log n;
    ``jain``, Jain's index (Σ k)² / (n Σ k²) of the counts k; ``met``, the fraction of clients that
    have taken part.  All are 1 if all clients took part equally often, and 0 if no client took
    part.

    References: Jain, Chiu, Hawe: A quantitative measure of fairness and discrimination. DEC report
    1984.
    """
    n, total = counts.shape[1], counts.sum(1)
    share = counts / np.maximum(total, 1)[:, None]
    terms = share * np.log(share, out=np.zeros_like(share), where=share > 0)
    return {
        "entropy": -terms.sum(1) / np.log(max(n, 2)),
        "jain": total**2 / np.maximum(n * (counts**2).sum(1), 1),
        "met": (counts > 0).mean(1),
    }


def count_distinct(run: Ints, value: Ints, runs: int) -> Array:
    """Count the distinct values of each run, shape (runs,).

    Not by ``np.unique(axis=1)``: an interrupt in its comparison of records becomes a TypeError.
    """
    values, place = np.unique(value, return_inverse=True)
    pairs = np.unique(run * len(values) + place)
    return np.bincount(pairs // max(len(values), 1), minlength=runs).astype(np.float64)


@dataclass
class Participation:
    """How often each client has taken part.

    `evenness`: whether each round records it. `by_client`: whether :meth:`by_client_metrics` is
    called at the end, which needs `weights`: sums by client, shape (runs, n), of weights as of
    rounds.
    """

    evenness: bool = False
    by_client: bool = False
    rounds: Array = field(default_factory=lambda: np.empty((0, 0)))
    weights: Array = field(default_factory=lambda: np.empty((0, 0)))

    def start(self, runs: int, clients: int) -> None:
        """Begin with no participation."""
        if self.evenness or self.by_client:
            self.rounds = np.zeros((runs, clients))
        if self.by_client:
            self.weights = np.zeros((runs, clients))

    def count(self, slots: Slots, omega: Array) -> Mapping[str, Array]:
        """Count a round; return its evenness if it is recorded, each of shape (runs,)."""
        if not (self.evenness or self.by_client):
            return {}
        used = np.zeros(self.rounds.shape, np.bool_)
        used[slots.run[omega != 0], slots.client[omega != 0]] = True
        self.rounds += used
        if self.by_client:
            np.add.at(self.weights, (slots.run, slots.client), omega)
        return evenness(self.rounds) if self.evenness else {}

    def by_client_metrics(self, data: FederatedDataset, offered: Array) -> Mapping[str, Array]:
        """Return each client's participation so far, in `offered` rounds, shape (runs, n).

        ``client_rounds``: rounds in which its update was used; ``client_weight``: Σ_t ω_i(t),
        without updates that a sampler remembers and adds later.
        """
        client_values = {
            "client_samples": data.n_samples,
            "client_importance": data.p,
            "client_offered": offered,
        }
        metrics = {
            name: np.tile(np.asarray(values, np.float64), (len(self.rounds), 1))
            for name, values in client_values.items()
        }
        return {**metrics, "client_rounds": self.rounds, "client_weight": self.weights}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the counts, as arrays for a checkpoint."""
        return {"rounds": self.rounds, "weights": self.weights}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`state`."""
        self.rounds, self.weights = state["rounds"], state["weights"]
