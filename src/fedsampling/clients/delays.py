"""Delays of clients: constant seconds per client, plus random seconds in each round.

A :class:`DelayModel` creates :class:`Delays`.  Samplers that select by delay see the mean delays;
the clock of a training run uses the delays of each round.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.base.records import Positive, PositiveFloat, Range, hashed_if_set
from fedsampling.base.streams import stream, uniforms


@dataclass(frozen=True, eq=False)
class LogNormalDelay:
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

    def within(self, seconds: Array) -> Array:
        """Return the probability of at most `seconds`, which are of each client, shape (n,)."""
        from scipy.special import ndtr

        with np.errstate(divide="ignore", invalid="ignore"):  # no delay, or a negative limit
            z = (np.log(seconds) - np.log(self.median)) / self.sd
        return np.where(self.median > 0, np.where(seconds > 0, ndtr(z), 0.0), seconds >= 0)


@dataclass(frozen=True)
class UniformDelay:
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

    def within(self, seconds: Array) -> Array:
        """Return the probability of at most `seconds`, which are of each client, shape (n,)."""
        if self.high == self.low:
            return (seconds >= self.low).astype(np.float64)
        return np.clip((seconds - self.low) / (self.high - self.low), 0, 1)


@dataclass(frozen=True, eq=False)
class Delays:
    """Seconds from the server's request to the return of a client's update."""

    base: Array  # shape (n,): constant part in seconds
    noise: LogNormalDelay | UniformDelay | None = (
        None  # random part, drawn independently in each round
    )

    @property
    def mean(self) -> Array:
        """Expected seconds per round of each client, shape (n,): the τ that samplers see."""
        return self.base + (0.0 if self.noise is None else self.noise.mean)

    def round_seconds(self, seed: ArrayLike, round: ArrayLike, clients: ArrayLike) -> Array:
        """Draw the seconds of clients in a round; seeds, rounds and clients broadcast.

        A client's delay depends only on these three, so all samplers see the same delays.
        """
        seeds, rounds, index = np.broadcast_arrays(
            *(np.asarray(key, np.int64) for key in (seed, round, clients))
        )
        seconds: Array = self.base[index]
        if self.noise is None:
            return seconds
        u = uniforms(seeds, "delays", rounds, index, n=1)[..., 0]
        return np.asarray(seconds + self.noise.quantile(u, index))

    def within(self, seconds: float) -> Array | None:
        """Return each client's probability of at most `seconds`, shape (n,); None if unknown."""
        if self.noise is None:
            return (self.base <= seconds).astype(np.float64)
        return self.noise.within(seconds - self.base)


def assign(delays: Delays, clients: int, seed: int) -> Delays:
    """Assign each client of a training problem to a place, whose delays it gets.

    If there are more clients than places, numbers of uses differ by at most one. The first entries
    do not depend on the number of clients.
    """
    n = len(delays.base)
    order = stream(seed, "delays.assign").permutation(n)
    return _of_places(delays, order[np.arange(clients) % n])


def _of_places(delays: Delays, place: Ints) -> Delays:
    """Give client i the delays of ``place[i]``."""
    noise = delays.noise
    if isinstance(noise, LogNormalDelay):
        noise = replace(noise, median=noise.median[place])
    return Delays(delays.base[place], noise)


class DelayModel(Named, package="fedsampling.clients"):
    """A model of delays: its settings, and how it draws a delay for each client."""

    # Names of the official datasets in sources.yaml; empty if the delays are always generated.
    official: ClassVar[tuple[str, ...]] = ()

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official

    def network(self, source: str, cache: Path, mirror: str | None) -> Any:
        """Read or generate the network that determines the delays; None without a network."""
        return None

    def draw(
        self,
        seed: int,
        network: Any = None,
        clients: int | None = None,
        model_bytes: float | None = None,
    ) -> Delays:
        """Draw a population's delays.

        `seed`: seed of the population. `network`: result of :meth:`network`. `clients`: number of
        clients of the training problem. `model_bytes`: size of the trained model.
        """
        raise NotImplementedError

    def for_clients(
        self,
        seed: int,
        network: Any,
        names: NDArray[Any],
        n_samples: Ints,
        model_bytes: float,
        rounds: int,
    ) -> Delays:
        """Draw the delays of a training's clients, by `names` and `n_samples`, shape (n,)."""
        delays = assign(self.draw(seed, network, len(names), model_bytes), len(names), seed)
        return self.arranged(delays, n_samples)

    def arranged(self, delays: Delays, n_samples: Ints) -> Delays:
        """Give the drawn delays to the clients in another order; by default unchanged."""
        return delays


class SyntheticDelays(DelayModel, name="synthetic"):
    """Random link speed and computation time of each client: τ_i = MS / c_i + τ_i,comp.

    The synthetic delays of Harshvardhan et al. 2025, section 7.1. In the text, τ_i has no index for
    the round, so both are drawn once per client; with ``per_round``, the other reading, computation
    is drawn in each round. KB and MB are powers of ten. The model is transmitted once. ``spread``
    and ``order`` are ours: delays that vary around each client's mean, and large clients that are
    slow.
    """

    clients: Positive | None = hashed_if_set(
        None, description="null: the clients of the training problem"
    )
    model_bytes: PositiveFloat | None = hashed_if_set(
        None, description="MS; null: four bytes for each parameter of the model that is trained"
    )
    speed: Range = Field((200e3, 5e6), description="range of c_i, bytes per second")
    computation: Range = Field((15.0, 100.0), description="range of τ_i,comp, seconds")
    per_round: bool = Field(False, description="draw the computation in each round")
    spread: float = hashed_if_set(
        0.0,
        ge=0,
        le=3,
        description="standard deviation, over rounds, of the logarithm of a client's seconds",
    )
    order: Literal["random", "samples"] = hashed_if_set(
        "random", description="samples: the more samples a client has, the slower it is"
    )

    @model_validator(mode="after")
    def _all_have_an_effect(self) -> "SyntheticDelays":
        if self.per_round and (self.spread or self.order != "random"):
            raise ValueError("spread, order: no effect with per_round; remove one of them")
        if self.clients and self.order != "random":
            raise ValueError("order: no effect without training; remove it, or clients")
        return self

    def draw(
        self,
        seed: int,
        network: Any = None,
        clients: int | None = None,
        model_bytes: float | None = None,
    ) -> Delays:
        """Draw uniform c_i and τ_i,comp; a client's draws depend only on seed and client."""
        n, size = self.clients or clients, self.model_bytes or model_bytes
        if n is None or size is None:
            raise InputError("clients, model_bytes: missing; add them")
        u = uniforms(seed, "delays.synthetic", np.arange(n), n=2)
        c = self.speed[0] + (self.speed[1] - self.speed[0]) * u[:, 0]
        noise = UniformDelay(*self.computation)
        if self.per_round:
            return Delays(size / c, noise)
        seconds = size / c + noise.quantile(u[:, 1], np.arange(n))
        if not self.spread:
            return Delays(seconds)
        median = seconds * np.exp(-(self.spread**2) / 2)
        return Delays(np.zeros(n), LogNormalDelay(median, self.spread))

    def arranged(self, delays: Delays, n_samples: Ints) -> Delays:
        """Sort the delays by `n_samples`, if they are to be in this order."""
        if self.order == "random":
            return delays
        place = np.empty(len(n_samples), np.int64)
        place[np.lexsort((delays.mean, n_samples))] = np.argsort(delays.mean)
        return _of_places(delays, place)
