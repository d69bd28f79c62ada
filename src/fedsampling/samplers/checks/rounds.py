"""Rounds without training, in which :mod:`fedsampling.samplers.checks.check` tests a sampler."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws, stream
from fedsampling.clients.failures import Reporting, draw
from fedsampling.samplers.checks.populations import (
    CLASSES,
    D,
    Population,
    client_updates,
    observations,
)
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import requests_of_needs
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Reports, Slots, View


class Round(NamedTuple):
    """A sampler's slots and weights in one round of some runs, and what it was charged for."""

    slots: Slots
    omega: Array
    runs: int
    exchange_bits: Array  # shape (runs,)
    asked: Bools  # shape (runs, n)


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
    before = _Observed(observations(sampler.needs, seeds, t, n, offered))
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
    if bits is None:
        bits = np.zeros(len(seeds))
    if requested is None:
        of_needs = requests_of_needs(sampler.needs, t, view.offered, n)
        requested = np.tile(of_needs, (len(seeds), 1))
    return Round(slots, omega, len(seeds), np.asarray(bits), np.asarray(requested))


def one_run(played: Round, run: int) -> Round:
    """Return the part of one run."""
    slots = played.slots
    rows = slots.run == run
    part = slots.at(rows)
    bits, requested = played.exchange_bits[[run]], played.asked[[run]]
    return Round(replace(part, run=part.run * 0), played.omega[rows], 1, bits, requested)


def difference(first: Round, second: Round) -> str:
    """Name what differs between two rounds: draws, or a cost; empty if they are the same."""
    pairs = [(first.omega, second.omega)]
    for name in ("run", "client", "scale", "times"):
        pairs.append((getattr(first.slots, name), getattr(second.slots, name)))
    if not all(np.array_equal(a, b) for a, b in pairs):
        return "draws"
    costs = ("exchange_bits", "asked")
    pairs = [(getattr(first, name), getattr(second, name)) for name in costs]
    differs = (name for name, pair in zip(costs, pairs, strict=True) if not np.array_equal(*pair))
    return next(differs, "")


class _Observed(dict[str, Any]):
    """Observations; reading an undeclared observation is an error."""

    def __missing__(self, name: str) -> Any:
        raise InputError(f"observed.{name}: not declared in `needs`; add it there")
