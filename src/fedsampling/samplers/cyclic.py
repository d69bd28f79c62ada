"""Cyclic participation: the clients form groups, which take turns.

References
----------
Cho, Sharma, Joshi, Xu, Kale, Zhang: On the Convergence of Federated Averaging with Cyclic Client
Participation. ICML 2023 (arXiv 2302.03109).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws, uniforms
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import distinct
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances


@dataclass
class Labels:
    """The most frequent label of each client, shape (n,), if the groups depend on it."""

    labels: Ints | None


class Cyclic(Scheme, name="cyclic", title="Cyclic client participation", short="Cyclic"):
    """m clients, uniformly from one group; the groups take turns.

    Groups follow one another in a fixed order, so the weights of a round are unbiased for its
    group, not for all clients.

    The paper leaves these choices open: groups of almost equal size are drawn at random for each
    run, or consist of clients with similar labels (``label``), as if availability depended on the
    data.  There are fewer than ``groups`` groups if they would have fewer than m clients each.

    References
    ----------
    Cho et al. 2023, section 3: K̄ groups in cyclic order, m clients of a group without replacement.
    The paper averages equally important clients; here weights are proportional to importance.
    """

    m: Positive
    groups: Positive = Field(default=5, description="K̄")
    by: Literal["random", "label"] = "random"

    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {"groups": (2, 10, "integer")}

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Labels, if they define the groups."""
        return frozenset({"labels"} if self.by == "label" else ())

    def initial_state(self, setup: Setup) -> Labels:
        """Keep the labels, which may define the groups."""
        return Labels(np.asarray(setup.labels) if self.by == "label" else None)

    def select(self, state: Labels, view: View, rng: Draws) -> Slots:
        """Draw m clients of the group whose turn it is, or of the next with available clients."""
        u = rng.uniforms("clients", self.m)
        clients = []
        for group, u_run in zip(self._groups(state, view, rng)[:, view.offered], u, strict=True):
            turns = (group - view.round) % self._count(view)
            members = view.offered[turns == turns.min()]
            clients.append(members[distinct(len(members), u_run[None, : len(members)])[0]])
        return Slots.stack(clients)

    def _count(self, view: View) -> int:
        """Return the number of groups."""
        return min(self.groups, len(view.p) // self.m)

    def _groups(self, state: Labels, view: View, rng: Draws) -> Ints:
        """Return the group of each client, shape (runs, n); it is fixed for each run."""
        n = len(view.p)
        order = uniforms(rng.seeds, "groups", n=n)
        if state.labels is not None:
            order = np.tile(state.labels, (view.runs, 1))
        place = np.empty((view.runs, n), np.int64)
        np.put_along_axis(place, np.argsort(order, axis=1, kind="stable"), np.arange(n), axis=1)
        return place * self._count(view) // n

    def weigh(self, state: Labels, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)
