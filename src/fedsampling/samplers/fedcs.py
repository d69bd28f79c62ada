"""FedCS: selects as many clients as can deliver their updates before a deadline.

References
----------
Nishio, Yonetani: Client Selection for Federated Learning with Heterogeneous Resources in Mobile
Edge. ICC 2019 (arXiv 1804.08333), Protocol 2 and Algorithm 3.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive, PositiveFloat
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import distinct
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances


def before_deadline(update: Array, upload: Array, deadline: float) -> Ints:
    """Select clients greedily: always the client that extends the round least.

    Parameters
    ----------
    update : float array, shape (n,)
        t^UD: seconds of local training, which runs on all clients in parallel; the download of the
        model included.
    upload : float array, shape (n,)
        t^UL: seconds of sending the update; uploads follow one another.
    deadline : float
        T_round, in seconds.

    Returns
    -------
    int array, shape (selected,)
        In the order of uploads.  A client that does not fit is skipped.

    References
    ----------
    Algorithm 3, where selection and aggregation take no time.
    """
    remaining = np.arange(len(update))
    chosen: list[int] = []
    elapsed = 0.0  # Θ
    while len(remaining):
        wait = upload[remaining] + np.maximum(0, update[remaining] - elapsed)
        best = int(wait.argmin())
        end = elapsed + float(wait[best])
        if end < deadline:
            elapsed = end
            chosen.append(int(remaining[best]))
        remaining = np.delete(remaining, best)
    return np.array(chosen, np.int64)


@dataclass
class FedCSState:
    """Each client's seconds, shape (n,), and the deadline in seconds."""

    seconds: Array
    deadline: float


class FedCS(Scheme, name="fedcs", title="Client selection by deadline (FedCS)", short="FedCS"):
    """As many of d random clients as meet the deadline, the fastest first.

    Requesting the clients' resources takes no time, as in the paper.  The server estimates each
    client's time by its expected seconds.

    The paper leaves these choices open, or its setting differs.  ``upload`` is the fraction of a
    client's seconds that no other upload may overlap, as on the paper's shared channel.  In the
    runs' clock uploads do overlap, so the default is zero, and every client faster than the
    deadline is selected.  The seconds include the download.  The paper's deadline is three minutes;
    null takes the median client's seconds.  If no client meets the deadline, the model stays
    unchanged.

    References
    ----------
    Nishio, Yonetani 2019, Protocol 2 with d = ⌈K × C⌉; the average is FedAvg's.
    """

    d: Positive = Field(description="number of random clients whose resources are requested")
    deadline: PositiveFloat | None = Field(
        default=None, description="T_round in seconds; null: the median client's seconds"
    )
    upload: Annotated[float, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="fraction of a client's seconds during which no other client can upload",
    )

    needs = frozenset({"delays"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    counts = ("d",)
    grid = {"deadline": (50.0, 110.0, "linear")}

    def initial_state(self, setup: Setup) -> FedCSState:
        """Set the deadline."""
        seconds = np.asarray(setup.delays)
        # The next larger number, so that the median client itself is in time.
        median = np.nextafter(np.median(seconds), np.inf)
        return FedCSState(seconds, float(median) if self.deadline is None else self.deadline)

    def select(self, state: FedCSState, view: View, rng: Draws) -> Slots:
        """Draw d clients, and select the clients that meet the deadline."""
        d = min(self.d, len(view.offered))
        requested = view.offered[distinct(len(view.offered), rng.uniforms("clients", d))]
        clients = []
        for candidates in requested:
            seconds = state.seconds[candidates]
            parts = (1 - self.upload) * seconds, self.upload * seconds
            clients.append(candidates[before_deadline(*parts, state.deadline)])
        return Slots.stack(clients)

    def weigh(self, state: FedCSState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)
