"""Models of client availability, independent or correlated over rounds.

Availability belongs to the population, like the clients' delays: it is drawn once from the
problem's seed and is the same for all seeds and samplers, so that samplers are compared on the same
absences.  A client's availability in a round depends only on the seed, the client and the round.

The server offers a sampler only the available clients (``view.offered``), with importances
normalised over them.  An unbiased sampler is then unbiased for the mean over *available* clients;
nothing corrects for clients that are available more often than others.

References
----------
Ribero, Vikalo, De Veciana: Federated Learning Under Intermittent Client Availability and
Time-Varying Communication Constraints. IEEE JSTSP 2023 (arXiv 2205.06730).
Wang, Ji: A Unified Analysis of Federated Learning with Arbitrary Client Participation. NeurIPS 2022
(arXiv 2205.13648).
Rodio, Faticanti, Marfoq, Neglia, Leonardi: Federated Learning under Heterogeneous and Correlated
Client Availability. INFOCOM 2023 (arXiv 2301.04632): a two-state Markov chain for each client.
"""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.base.records import InOrder, Proportion, hashed_if_set
from fedsampling.base.streams import uniforms


class Availability(Named, package="fedsampling.clients"):
    """The settings of a model of availability."""

    def trace(
        self,
        seed: int,
        rounds: int,
        clients: int,
        labels: Ints | None = None,
        names: NDArray[Any] | None = None,
    ) -> Bools:
        """Draw the available clients of each round, shape (rounds, clients); at least one client.

        If no client would be available, the one with the smallest variate of the round becomes
        available. Adding rounds or clients does not change the other draws. `labels`, shape
        (clients,), are the clients' most frequent ones; `names` are those in a recorded trace.
        """
        u = uniforms(seed, "availability", np.arange(rounds)[:, None], np.arange(clients), n=1)
        u = u[..., 0]
        available = self.available(seed, u, labels)
        empty = np.flatnonzero(~available.any(1))
        available[empty, u[empty].argmin(1)] = True
        return available

    def available(self, seed: int, u: Array, labels: Ints | None) -> Bools:
        """Return availability from one uniform variate per client and round, shape of `u`."""
        raise NotImplementedError


class Bernoulli(Availability, name="bernoulli"):
    """Independent availability of each client in each round (Wang, Ji 2022)."""

    rate: Annotated[tuple[Proportion, Proportion], InOrder] = Field(
        (0.5, 0.5), description="range of a client's share of rounds, drawn uniformly"
    )
    by: Literal["random", "label"] = hashed_if_set(
        "random",
        description="label: the share rises evenly with the number of a client's most frequent "
        "label, so that absences bias the data",
    )

    def available(self, seed: int, u: Array, labels: Ints | None) -> Bools:
        """Compare each variate with the client's rate."""
        return np.asarray(u < self.rates(seed, u.shape[1], labels))

    def rates(self, seed: int, clients: int, labels: Ints | None = None) -> Array:
        """Draw the expected share of rounds in which each client is available, shape (clients,)."""
        low, high = self.rate
        if self.by == "label":
            if labels is None:
                raise InputError("availability.by: label needs labels; choose random")
            place = labels / max(labels.max(), 1)
        else:
            place = uniforms(seed, "availability.rate", np.arange(clients), n=1)[:, 0]
        rates: Array = low + (high - low) * place
        return rates


class Markov(Bernoulli, name="markov"):
    """A two-state Markov chain for each client (Rodio et al. 2023).

    With stationary availability π and persistence λ, an available client remains available with
    probability π + λ(1 − π), and an unavailable one becomes available with probability (1 − λ)π.
    The correlation between rounds t and t + k is λ^k.
    """

    persistence: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.8, description="λ: correlation between a client's rounds; 0 is bernoulli"
    )

    def available(self, seed: int, u: Array, labels: Ints | None) -> Bools:
        """Simulate the chains from their stationary distribution."""
        rates = self.rates(seed, u.shape[1], labels)
        available = np.empty(u.shape, np.bool_)
        expected = rates
        for t, u_round in enumerate(u):
            available[t] = u_round < expected
            expected = rates + self.persistence * (available[t] - rates)
        return available
