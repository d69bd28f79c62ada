"""FedCS: as many clients as can deliver their updates before a deadline.

References
----------
Nishio, Yonetani: Client Selection for Federated Learning with Heterogeneous Resources in Mobile
Edge. ICC 2019 (arXiv 1804.08333), Protocol 2 and Algorithm 3.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from fedsampling.base.records import Positive, Variance
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import (
    Array,
    Ints,
    Scheme,
    Setup,
    Slots,
    View,
    among_present,
    distinct,
)


def before_deadline(
    download: Array, update: Array, upload: Array, deadline: float, overhead: float = 0.0
) -> Ints:
    """Choose greedily, each time the client that lengthens the round least.

    Parameters
    ----------
    download : float array, shape (n,)
        Seconds until the model has reached a client.  It is sent to all at once, so that T^d_S is
        the largest of the chosen.
    update : float array, shape (n,)
        t^UD: seconds of local work, of all clients at the same time.
    upload : float array, shape (n,)
        t^UL: seconds of sending the update, of one client after another.
    deadline : float
        T_round.
    overhead : float
        T_cs + T_agg: seconds of selection and aggregation.

    Returns
    -------
    int array
        In the order of uploads.  A client that does not fit is passed over, and the next is tried.

    References
    ----------
    Algorithm 3.
    """
    left = np.arange(len(update))
    chosen: list[int] = []
    elapsed = slowest = 0.0  # Θ and T^d_S
    while len(left):
        wait = upload[left] + np.maximum(0, update[left] - elapsed)
        longer = np.maximum(download[left] - slowest, 0) + wait
        best = int(longer.argmin())
        x = int(left[best])
        then = elapsed + float(wait[best])
        sent = max(slowest, float(download[x]))
        if overhead + sent + then < deadline:
            elapsed, slowest = then, sent
            chosen.append(x)
        left = np.delete(left, best)
    return np.array(chosen, np.int64)


class FedCS(Scheme, name="fedcs"):
    """Of d random clients as many as make the deadline, the quickest first.

    What clients are asked for, their resources, takes no time, as in the paper; the server's
    estimate is the expected seconds of each.

    Left open, and chosen: of these seconds ``upload`` is the part that clients take one after
    another, as on the paper's shared channel; the clock of the runs lets them overlap, so that it
    is zero unless asked for, and the greedy choice then takes everybody quicker than the deadline.
    Seconds hold the download already.  The paper's deadline is three minutes; null is the median
    client's seconds.  Where nobody makes it the model stays as it is.

    References
    ----------
    Nishio, Yonetani 2019, Protocol 2 with d = ⌈K × C⌉; the average is FedAvg's.
    """

    d: Positive = Field(description="clients that are asked for their resources")
    deadline: Variance | None = Field(
        None, description="T_round, seconds; null: those of the median client"
    )
    upload: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="part of a client's seconds that no other may overlap"
    )

    needs = frozenset({"delays"})
    unbiased = False
    intermittent = True
    counts = ("d",)

    _seconds: Array
    _deadline: float

    def prepare(self, setup: Setup) -> None:
        """Set the deadline."""
        self._seconds = np.asarray(setup.delays)
        # The median client itself is in time.
        usual = np.nextafter(np.median(self._seconds), np.inf)
        self._deadline = float(usual) if self.deadline is None else self.deadline

    def select(self, view: View, rng: Draws) -> Slots:
        """Ask d clients, and take those who make it."""
        d = min(self.d, len(view.offered))
        asked = view.offered[distinct(len(view.offered), rng.uniforms("clients", d))]
        clients = []
        for of_run in asked:
            seconds = self._seconds[of_run]
            parts = (1 - self.upload) * seconds, self.upload * seconds
            clients.append(of_run[before_deadline(np.zeros(d), *parts, self._deadline)])
        return Slots.stack(clients)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """p_i among the participants."""
        return among_present(slots, view)
