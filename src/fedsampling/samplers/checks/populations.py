"""Small populations of clients, and their observations, on which samplers are checked.

All observations are drawn from streams keyed by seed, so a run's observations do not depend on the
other runs.
"""

from collections.abc import Callable, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import stream
from fedsampling.samplers.protocol.slots import Setup

N, D = 12, 5  # number of clients, and of the model's parameters
MANY_CLIENTS = 60  # number of clients of the largest population


class Population(NamedTuple):
    """Clients without data: sample counts n_i and importances p_i, shape (n,)."""

    n_samples: Ints
    p: Array


_ONES = np.ones(N, np.int64)
_RISING = np.arange(4, 4 + N)
_HUGE = np.where(np.arange(N) == 3, 40, 3)
_MANY = 4 + np.arange(MANY_CLIENTS) % 17
POPULATIONS = {
    "equal clients": Population(7 * _ONES, _ONES / N),
    "unequal clients": Population(_RISING, _RISING / _RISING.sum()),
    "unequal sizes, equal importance": Population(_RISING, _ONES / N),
    "one huge client": Population(_HUGE, _HUGE / _HUGE.sum()),
    f"{MANY_CLIENTS} clients": Population(_MANY, _MANY / _MANY.sum()),
}
CLASSES = 3  # length of the output layer's bias, the last parameters
LABELS = np.array([0, 0, 1, 2, 2, 2, 1, 2, 0, 2, 1, 2])  # groups of unequal size


def setup(population: Population, seeds: Ints) -> Setup:
    """Return a setup with all information that any sampler may need."""
    n_samples, n = population.n_samples, len(population.p)
    rng = stream(0, "optimum")
    sample_norms = rng.lognormal(size=(n, n_samples.max()))
    sample_norms[np.arange(n_samples.max()) >= n_samples[:, None]] = 0
    optimum = {
        "w": rng.normal(size=D),
        "gradient": rng.normal(size=(n, D)),
        "mean_norm": sample_norms.sum(1) / n_samples,
        "sample_norms": sample_norms,
    }
    return Setup(
        n_samples,
        population.p,
        len(seeds),
        np.ones(n, np.int64),
        np.ones(n, np.int64),
        optimum,
        labels=np.resize(LABELS, n),
        label_counts=_label_counts(n_samples, np.resize(LABELS, n)),
        dimension=D,
        delays=_delays(rng, n),
        info=_AnyInfo(n),
    )


def observations(
    needs: Set[str], seeds: Ints, t: int, n: int, offered: Ints | None = None
) -> dict[str, Any]:
    """Draw the observations that `needs` names, before a round's selection.

    As in training, the losses of clients that are not in `offered` are NaN.
    """
    observed: dict[str, Any] = {}
    for name in needs & _OBSERVATIONS.keys():
        draw = _OBSERVATIONS[name]
        if name == "delays":  # known to the server, the same for all runs
            observed[name] = draw(stream(0, "optimum"), n)
        else:
            observed[name] = np.stack([draw(stream(int(seed), name, t), n) for seed in seeds])
        if offered is not None and name in ("batch_losses", "losses"):
            observed[name][:, np.setdiff1d(np.arange(n), offered)] = np.nan
    return observed


def client_updates(seeds: Ints, t: int, n: int) -> NDArray[np.float32]:
    """Draw every client's θ_i − θ, shape (runs, n, d); clients of the same label are similar."""
    centres = 2 * stream(0, "centres").normal(size=(N, D))
    noise = np.stack([stream(int(seed), "updates", t).normal(size=(n, D)) for seed in seeds])
    return (centres[np.resize(LABELS, n)] + noise).astype(np.float32)


class _AnyInfo(dict[str, Array]):
    """Positive numbers of each client for any property that a sampler reads in ``setup.info``."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __missing__(self, name: str) -> Array:
        return self.setdefault(name, stream(0, f"info {name}").lognormal(size=self._n))


def _label_counts(n_samples: Ints, labels: Ints) -> Ints:
    """Return counts of labels, shape (n, classes): half of a client's samples have its label."""
    spread = np.repeat(n_samples[:, None] // (2 * CLASSES), CLASSES, axis=1)
    spread[np.arange(len(labels)), labels] += n_samples - spread.sum(1)
    return spread


def _delays(rng: np.random.Generator, n: int) -> Array:
    return rng.lognormal(size=n)


def _heterogeneity(rng: np.random.Generator, n: int) -> Array:
    place = rng.normal(size=(n, 2))
    distance: Array = np.linalg.norm(place[:, None] - place[None, :], axis=-1)
    return distance


_OBSERVATIONS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "batch_losses": lambda rng, n: rng.lognormal(size=n),
    "client_gradients": lambda rng, n: rng.normal(size=(n, D)),
    "delays": _delays,
    "gradients": lambda rng, n: rng.normal(size=(n, D)),
    "heterogeneity": _heterogeneity,
    "losses": lambda rng, n: rng.lognormal(size=n),
    "mean_norms": lambda rng, n: rng.lognormal(size=n),
}
