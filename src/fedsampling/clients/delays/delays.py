"""Delays of clients: constant seconds per client, plus random seconds in each round."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import stream, uniforms


@dataclass(frozen=True, eq=False)
class LogNormal:
    """A log-normal delay: ``median · exp(sd · Z)``, Z standard normal."""

    median: Array  # shape (n,): median in seconds by client; 0 for no delay
    sd: float  # standard deviation of the logarithm

    @property
    def mean(self) -> Array:
        """Mean in seconds, shape (n,)."""
        mean: Array = self.median * np.exp(self.sd**2 / 2)
        return mean

    def quantile(self, u: Array, clients: Ints) -> Array:
        """Return each client's quantile at `u`, in seconds."""
        from scipy.special import ndtri

        seconds: Array = self.median[clients] * np.exp(self.sd * ndtri(u))
        return seconds


@dataclass(frozen=True)
class Uniform:
    """A delay uniform on [low, high) seconds, the same for all clients."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """Mean in seconds."""
        return (self.low + self.high) / 2

    def quantile(self, u: Array, clients: Ints) -> Array:
        """Return the quantile at `u`, in seconds."""
        return self.low + (self.high - self.low) * u


@dataclass(frozen=True, eq=False)
class Delays:
    """Seconds from the server's request to the return of a client's update."""

    base: Array  # shape (n,): constant part in seconds
    noise: LogNormal | Uniform | None = None  # random part, drawn independently in each round

    @property
    def mean(self) -> Array:
        """Expected seconds per round of each client, shape (n,): the τ that samplers see."""
        return self.base + (0.0 if self.noise is None else self.noise.mean)

    def round_seconds(self, seed: ArrayLike, round: ArrayLike, clients: ArrayLike) -> Array:
        """Draw the seconds of clients in a round.

        A client's delay depends only on seed, round and client.  The other selected clients and
        their order do not matter, so all samplers see the same delays.

        `seed`, `round`, `clients`, shape (...): broadcast against each other. Returns shape (...).
        """
        seeds, rounds, index = np.broadcast_arrays(
            *(np.asarray(key, np.int64) for key in (seed, round, clients))
        )
        seconds: Array = self.base[index]
        if self.noise is None:
            return seconds
        u = uniforms(seeds, "delays", rounds, index, n=1)[..., 0]
        return np.asarray(seconds + self.noise.quantile(u, index))


def assign(delays: Delays, clients: int, seed: int) -> Delays:
    """Assign each client of a training problem to a place, whose delays it gets.

    `delays`: delays of n places. `clients`: number of clients.  If it exceeds n, places are reused;
    their numbers of uses differ by at most one. `seed`: seed of the assignment.  Its first entries
    do not depend on the number of clients.
    """
    n = len(delays.base)
    order = stream(seed, "delays.assign").permutation(n)
    place = order[np.arange(clients) % n]
    noise = delays.noise
    if isinstance(noise, LogNormal):
        noise = replace(noise, median=noise.median[place])
    return Delays(delays.base[place], noise)
