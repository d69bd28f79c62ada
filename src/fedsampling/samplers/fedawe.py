"""FedAWE: clients train their own stale models, and clients that were away step further.

Every client keeps the model x_i that it received when it last took part, in round τ_i.  A
participant trains this model and multiplies its update by t − τ_i, and the server averages the
participants' models: x^{t+1} = Σ_i share_i (x_i − η_g (t − τ_i) G_i), where G_i is x_i minus the
trained model.  The average spreads the information of clients that are seldom available.

References
----------
Xiang, Ioannidis, Yeh, Joe-Wong, Su: Efficient Federated Learning against Heterogeneous and
Non-stationary Client Unavailability. NeurIPS 2024 (arXiv 2409.17446), Algorithm 1.  Compared with
the authors' code, github.com/mingxiang12/FedAWE at commit e0b8538, ``varying_awe.py``.
"""

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.streams import Draws
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.scheme import Array, Ints, Setup, Slots, View, normalised_importances

Models = NDArray[np.floating]


class FedAWE(Uniform, name="fedawe"):
    """m available clients, uniformly, that train their own models and catch up on missed rounds.

    The paper's clients train whenever they are available.  Here m of them are drawn, so a client
    that is not drawn counts as unavailable.  Clients are weighed by importance among the
    participants; the paper's clients are all equal.  With these weights the gossip keeps
    Σ p_i x_i, as it keeps the mean in the paper.

    The server's step η_g scales the updates only, not the gossip.  As updates of clients that were
    away for long are multiplied, steps that suit FedAvg may be too large.

    References
    ----------
    Xiang et al. 2024, Algorithm 1, lines 5 and 10 to 21.
    """

    unbiased = False
    grows = True
    memory = ("x", "tau", "joined")

    _x: Models  # x_i, the model of each client, shape (runs, n, d)
    _tau: Ints  # τ_i, the last round in which each client took part, shape (runs, n)
    _joined: NDArray[np.bool_]  # clients that get the next global model, shape (runs, n)

    def demand(self, n: int, d: int, runs: int) -> tuple[float, float]:
        """Count the clients' models."""
        return runs * n * d, n

    def prepare(self, setup: Setup) -> None:
        """Start with τ_i = −1; all clients get the first model."""
        shape = setup.runs, len(setup.p)
        self._x = np.zeros((*shape, setup.dimension), np.float32)
        self._tau = np.full(shape, -1)
        self._joined = np.ones(shape, np.bool_)

    def local_models(self, slots: Slots, view: View, theta: Models) -> tuple[Models, Models]:
        """Give the last participants the global model; participants train their own models."""
        run, client = np.nonzero(self._joined)
        self._x[run, client] = theta[run]
        self._joined[:] = False
        self._joined[slots.run, slots.client] = True
        x = self._x[slots.run, slots.client]
        mixed = np.zeros(theta.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges
            np.add.at(mixed, slots.run, normalised_importances(slots, view)[:, None] * x)
        return x, mixed.astype(theta.dtype)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return share_i (t − τ_i), and remember this round."""
        missed = view.round - self._tau[slots.run, slots.client]
        self._tau[slots.run, slots.client] = view.round
        omega: Array = normalised_importances(slots, view) * missed
        return omega
