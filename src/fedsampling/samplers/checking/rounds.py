"""Rounds without training, in which :mod:`fedsampling.samplers.checking.check` tests a sampler."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws, stream
from fedsampling.samplers.checking.populations import (
    CLASSES,
    D,
    Population,
    client_updates,
    observations,
)
from fedsampling.samplers.checking.validation import Validator, call
from fedsampling.samplers.interface.one_run import guest_of
from fedsampling.samplers.scheme import Scheme, Slots, View


class Round(NamedTuple):
    """A sampler's slots and weights in one round of some runs."""

    slots: Slots
    omega: Array
    runs: int


def play_rounds(
    make: Callable[[Ints], Scheme],
    population: Population,
    seeds: Ints,
    rounds: int,
    offered: Callable[[int], Ints] | None = None,
) -> list[Round]:
    """Run some rounds with a new copy of the sampler."""
    scheme = make(seeds)
    validator = Validator(scheme, len(seeds), warns=False)
    return [
        play_round(scheme, population, seeds, t, offered(t) if offered else None, validator)
        for t in range(rounds)
    ]


def play_round(
    scheme: Scheme,
    population: Population,
    seeds: Ints,
    t: int,
    offered: Ints | None = None,
    validator: Validator | None = None,
) -> Round:
    """Run one round with updates and observations that are determined by the seeds."""
    n, rng = len(population.p), Draws(seeds, t)
    validator = validator or Validator(scheme, len(seeds))
    before = _Observed(observations(scheme.needs, seeds, t, n))
    view = View(population.n_samples, population.p, t, len(seeds), before)
    view = view if offered is None else view.restricted_to(offered)
    with guest_of(scheme).blaming(t):
        slots = validator.checked_slots(call(scheme, "select", t, view, rng), view)
        updates = client_updates(seeds, t, n)[slots.run, slots.client]
        if "updates" in scheme.needs:
            call(scheme, "saw_updates", t, slots, updates)
        if "update_norms" in scheme.needs:
            norms = np.linalg.norm(updates.astype(np.float64), axis=1)
            before["update_norms"] = norms
        if "bias_updates" in scheme.needs:
            before["bias_updates"] = updates[:, -CLASSES:].astype(np.float64)
        if "work_losses" in scheme.needs:
            losses = np.stack([stream(int(s), "work", t).lognormal(size=n) for s in seeds])
            before["work_losses"] = losses[slots.run, slots.client]
        view = replace(view, observed=before)
        omega = call(scheme, "weigh", t, slots, view, rng)
        omega = validator.checked_weights(omega, slots, view)
        _check_addition(scheme, t, len(seeds))
        bits, requested = scheme.exchange_bits(), scheme.asked()
        if bits is not None:
            validator.checked_per_run("exchange_bits", bits, view)
        for name, value in scheme.measured().items():
            validator.checked_per_run(f"measured {name}", value, view)
    if requested is not None and np.shape(requested) != (len(seeds), n):
        raise InputError(f"asked: shape {np.shape(requested)}; must be (runs, n), {len(seeds), n}")
    return Round(slots, omega, len(seeds))


def one_run(played: Round, run: int) -> Round:
    """Return the part of one run."""
    slots = played.slots
    rows = slots.run == run
    part = Slots(slots.run[rows] * 0, slots.client[rows], slots.scale[rows], slots.times[rows])
    return Round(part, played.omega[rows], 1)


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


def _check_addition(scheme: Scheme, t: int, runs: int) -> None:
    """Raise InputError unless the addition to the server's step has the updates' shape."""
    added = call(scheme, "addition", t)
    if added is not None and np.shape(added) != (runs, D):
        raise InputError(f"addition: shape {np.shape(added)}; must be (runs, d), {runs, D}")
