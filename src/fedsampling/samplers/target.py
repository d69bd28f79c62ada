"""Target sampling: one client of each label, an ideal that clustered sampling is compared with.

No practical server can do it, since it needs each client's most frequent label.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved Representativity
for Clients Selection in Federated Learning. ICML 2021 (arXiv 2105.05883), section 6.
"""

from dataclasses import dataclass

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View


@dataclass
class Groups:
    """The clients of each label, and the size of each client's group, shape (n,)."""

    clients: list[Ints]
    size: Ints


class Target(Scheme, name="target", title="Target sampling (one client per label)", short="target"):
    """One client of each label, drawn uniformly.

    With ten clients for each of ten digits, draw j selects client 10 j + u, u uniform on 0, …, 9.
    """

    needs = frozenset({"labels"})

    def initial_state(self, setup: Setup) -> Groups:
        """Group the clients by their labels."""
        labels = np.asarray(setup.labels)
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        size = np.empty(len(labels), np.int64)
        for group in groups:
            size[group] = len(group)
        return Groups(groups, size)

    def select(self, state: Groups, view: View, rng: Draws) -> Slots:
        """Draw one client from each group."""
        u = rng.uniforms("clients", len(state.clients))
        picks = [group[(u[:, j] * len(group)).astype(int)] for j, group in enumerate(state.clients)]
        return Slots.stack(np.stack(picks, axis=1))

    def weigh(self, state: Groups, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i times the size of the group: 1/m for m equal groups of equal clients."""
        return view.p[slots.client] * state.size[slots.client]
