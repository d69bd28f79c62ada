"""Rounds without training, in which :mod:`fedsampling.samplers.checks.check` tests a sampler."""

from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws, stream
from fedsampling.clients.failures import Reporting, draw
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Reports, Setup, Slots, View

# Small populations of clients, and observations of them, on which samplers are checked.
#
# All observations are drawn from streams keyed by seed, so a run's observations do not depend on
# the other runs.


N, D = 12, 5  # number of clients, and of the model's parameters
MANY_CLIENTS = 60  # number of clients of the largest population


class _AnyInfo(dict[str, Array]):
    """Positive numbers of each client for any property that a sampler reads in ``setup.info``."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __missing__(self, name: str) -> Array:
        return self.setdefault(name, stream(0, f"info {name}").lognormal(size=self._n))


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


def observations(needs: Set[str], seeds: Ints, t: int, n: int) -> dict[str, Any]:
    """Draw the observations that `needs` names, before a round's selection."""
    observed: dict[str, Any] = {}
    for name in needs & _OBSERVATIONS.keys():
        draw = _OBSERVATIONS[name]
        if name == "delays":  # known to the server, the same for all runs
            observed[name] = draw(stream(0, "optimum"), n)
        else:
            observed[name] = np.stack([draw(stream(int(seed), name, t), n) for seed in seeds])
    return observed


def client_updates(seeds: Ints, t: int, n: int) -> NDArray[np.float32]:
    """Draw every client's θ_i − θ, shape (runs, n, d); clients of the same label are similar."""
    centres = 2 * stream(0, "centres").normal(size=(N, D))
    noise = np.stack([stream(int(seed), "updates", t).normal(size=(n, D)) for seed in seeds])
    return (centres[np.resize(LABELS, n)] + noise).astype(np.float32)


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


class Round(NamedTuple):
    """A sampler's slots and weights in one round of some runs."""

    slots: Slots
    omega: Array
    runs: int


def play_rounds(
    make: Callable[[Ints], Prepared],
    population: Population,
    seeds: Ints,
    rounds: int,
    offered: Callable[[int], Ints] | None = None,
    reporting: Reporting | None = None,
) -> list[Round]:
    """Run some rounds with a newly prepared sampler."""
    sampler = make(seeds)
    checked = Checked(sampler, len(seeds), warns=False)
    return [
        play_round(
            sampler, population, seeds, t, offered(t) if offered else None, checked, reporting
        )
        for t in range(rounds)
    ]


def play_round(
    sampler: Prepared,
    population: Population,
    seeds: Ints,
    t: int,
    offered: Ints | None = None,
    checked: Checked | None = None,
    reporting: Reporting | None = None,
) -> Round:
    """Run one round with updates and observations that are determined by the seeds."""
    n, rng = len(population.p), Draws(seeds, t)
    checked = checked or Checked(sampler, len(seeds))
    before = _Observed(observations(sampler.needs, seeds, t, n))
    view = View(population.n_samples, population.p, t, len(seeds), before)
    view = view if offered is None else view.restricted_to(offered)
    with checked.blaming(t):
        slots = checked.select(view, rng)
        if reporting:
            reported = draw(reporting, slots.run, slots.client, rng).reported
            view = replace(view, reports=Reports(slots, reported, reporting.chance))
            slots = slots.at(reported)
        updates = client_updates(seeds, t, n)[slots.run, slots.client]
        if "updates" in sampler.needs:
            before["updates"] = updates
        if "update_norms" in sampler.needs:
            norms = np.linalg.norm(updates.astype(np.float64), axis=1)
            before["update_norms"] = norms
        if "bias_updates" in sampler.needs:
            before["bias_updates"] = updates[:, -CLASSES:].astype(np.float64)
        if "work_losses" in sampler.needs:
            losses = np.stack([stream(int(s), "work", t).lognormal(size=n) for s in seeds])
            before["work_losses"] = losses[slots.run, slots.client]
        view = replace(view, observed=before)
        omega = checked.weigh(slots, view, rng)
        added = sampler.addition()
        if added is not None and np.shape(added) != (len(seeds), D):
            raise InputError(
                f"addition: shape {np.shape(added)}; must be (runs, d), {len(seeds), D}"
            )
        bits, requested = sampler.exchange_bits(), sampler.asked()
        if bits is not None:
            checked.per_run("exchange_bits", bits, view)
        for name, value in sampler.measured().items():
            checked.per_run(f"measured {name}", value, view)
        sampler.learn()
    if requested is not None and np.shape(requested) != (len(seeds), n):
        raise InputError(f"asked: shape {np.shape(requested)}; must be (runs, n), {len(seeds), n}")
    return Round(slots, omega, len(seeds))


def one_run(played: Round, run: int) -> Round:
    """Return the part of one run."""
    slots = played.slots
    rows = slots.run == run
    part = slots.at(rows)
    return Round(replace(part, run=part.run * 0), played.omega[rows], 1)


def same_round(first: Round, second: Round) -> bool:
    """Whether two rounds have the same slots and weights."""
    pairs = [(first.omega, second.omega)]
    for name in ("run", "client", "scale", "times"):
        pairs.append((getattr(first.slots, name), getattr(second.slots, name)))
    return all(np.array_equal(a, b) for a, b in pairs)


class _Observed(dict[str, Any]):
    """Observations; reading an undeclared observation is an error."""

    def __missing__(self, name: str) -> Any:
        raise InputError(f"observed.{name}: not declared in `needs`; add it there")
