"""Samplers that use only the importances p and a number m of clients.

References
----------
Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated Learning.
IJCAI-FL workshop 2022 (arXiv 2107.12211), section 2.2 and Appendix A.
McMahan, Moore, Ramage, Hampson, Agüera y Arcas: Communication-Efficient Learning of Deep Networks
from Decentralized Data. AISTATS 2017 (arXiv 1602.05629).
"""

from typing import Any, ClassVar

import numpy as np

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import FailureWeights, Scheme
from fedsampling.samplers.protocol.draws import distinct, invert
from fedsampling.samplers.protocol.slots import (
    Duplicates,
    Setup,
    Slots,
    View,
    normalised_importances,
)
from fedsampling.theory.weights import check_poisson


class Full(Scheme, name="full", title="Full participation (all clients)", short="all clients"):
    """All clients in every round.

    References
    ----------
    Fraboni et al. 2021, equation (2).
    """

    intermittent = True

    def select(self, state: None, view: View, rng: Draws) -> Slots:
        """Select all available clients."""
        return Slots.stack([view.offered] * view.runs)

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i."""
        return view.p[slots.client]


class MD(Scheme, name="md", title="MD sampling (multinomial)", short="MD"):
    """m draws with replacement, with probabilities p_i.

    A client drawn twice trains twice, on different batches (code of Fraboni et al. 2021), or once
    with twice the weight (code of Fraboni et al. 2022).

    References
    ----------
    Fraboni et al. 2022, equation (5); 2021, equation (4).
    """

    m: Positive
    duplicates: Duplicates = "independently"

    intermittent = True

    def select(self, state: None, view: View, rng: Draws) -> Slots:
        """Draw l_1, …, l_m with P(l_k = i) = p_i."""
        return Slots.drawn(invert(view.p, rng.uniforms("clients", self.m)), self.duplicates)

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each draw."""
        return slots.times / self.m


class Uniform(Scheme, name="uniform", title="Uniform sampling", short="Uniform"):
    """m clients, uniformly without replacement, with unbiased weights.

    References
    ----------
    Fraboni et al. 2022, equation (6); with p_i = 1/n each weight is 1/m.
    """

    m: Positive

    intermittent = True

    def select(self, state: Any, view: View, rng: Draws) -> Slots:
        """Draw m distinct clients; all subsets are equally likely."""
        n = len(view.offered)
        u = rng.uniforms("clients", self.m)[:, :n]
        return Slots.stack(view.offered[distinct(n, u)])

    def weigh(self, state: Any, slots: Slots, view: View, rng: Draws) -> Array:
        """Return (n/m) p_i for each selected client."""
        n = len(view.offered)
        return n / min(self.m, n) * view.p[slots.client]


class FedAvg(
    Uniform,
    name="fedavg",
    title="FedAvg in which absent clients keep the global model",
    short="FedAvg, absent keep the model",
):
    """m clients, uniformly without replacement; the others count as if they returned the model.

    The weights of the clients that are not selected stay on the global model, so the server's step
    is shorter: E[ω_i] = (m/n) p_i.  FedAvg as usually implemented is ``fedavg_normalised``.

    References
    ----------
    Fraboni et al. 2021, equation (3), after McMahan et al. 2017.
    """

    unbiased = False
    shrinks = True
    failure_weights = "own"  # a client that fails is absent, too

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i for each selected client."""
        return view.p[slots.client]


class FedAvgNormalised(
    Uniform,
    name="fedavg_normalised",
    title="FedAvg, weights normalised over participants",
    short="FedAvg",
):
    """FedAvg as usually implemented: m clients uniformly, averaged by importance.

    The weights p_i / Σ_S p_j sum to one in every round.

    References
    ----------
    McMahan et al. 2017, Algorithm 1: weights n_k / m_t with m_t = Σ_S n_k (later arXiv versions).
    """

    unbiased = None
    failure_weights: ClassVar[FailureWeights] = "average"

    def is_unbiased(self, setup: Setup) -> bool:
        """Whether all clients are equally important."""
        return bool(np.ptp(setup.p) < 1e-12)

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)


class Random(FedAvgNormalised, name="random", title="Random selection", short="random"):
    """m clients, uniformly without replacement, with weight 1/m regardless of importance.

    References
    ----------
    Harshvardhan et al. 2025, section 7.1: "the random baseline samples clients uniformly".
    """

    failure_weights = "divide"

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each selected client."""
        return np.full(len(slots), 1 / min(self.m, len(view.offered)))


class Poisson(Scheme, name="poisson", title="Poisson sampling", short="Poisson"):
    """Each client independently with probability m p_i, so that m clients are expected.

    References
    ----------
    Fraboni et al. 2022, equation (44).
    """

    m: Positive

    def initial_state(self, setup: Setup) -> None:
        """Reject a population in which some m p_i exceeds one."""
        check_poisson(setup.p, self.m)

    def select(self, state: None, view: View, rng: Draws) -> Slots:
        """Include each client independently with probability m p_i."""
        inclusion = check_poisson(view.p, self.m)
        return Slots.of(rng.uniforms("clients", len(view.p)) < inclusion)

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each selected client."""
        return np.full(len(slots), 1 / self.m)


class Binomial(Uniform, name="binomial", title="Binomial sampling", short="Binomial"):
    """Each client independently with probability m/n, so that m clients are expected.

    References
    ----------
    Fraboni et al. 2022, equation (49).
    """

    def select(self, state: None, view: View, rng: Draws) -> Slots:
        """Include each client independently with probability m/n."""
        member = rng.uniforms("clients", len(view.p)) < self.m / len(view.offered)
        available = np.isin(np.arange(len(view.p)), view.offered)
        return Slots.of(member & available)
