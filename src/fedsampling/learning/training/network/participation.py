"""Counts of each client's participation over all rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.training.charges import evenness
from fedsampling.samplers.scheme import Slots


def _none() -> Array:
    return np.empty((0, 0))


@dataclass
class Participation:
    """How often each client has taken part.

    `evenness`: whether each round records :func:`fedsampling.learning.training.charges.evenness`.
    `by_client`: whether :meth:`by_client_metrics` is called at the end, which also needs sums of
    weights. `rounds`, `weights`, shape (runs, n): rounds in which each client's update was used,
    and the sums of its weights.
    """

    evenness: bool = False
    by_client: bool = False
    rounds: Array = field(default_factory=_none)
    weights: Array = field(default_factory=_none)

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
        """Return each client's participation so far.

        `offered`, shape (n,): rounds in which each client was available. Returns shape (runs, n):
        ``client_samples``: training samples; ``client_importance``: p_i; ``client_offered``;
        ``client_rounds``: rounds in which the client's update was used; ``client_weight``: Σ_t
        ω_i(t), without updates that a sampler remembers and adds later.
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
