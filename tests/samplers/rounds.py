"""Rounds of a prepared sampler, without training."""

from dataclasses import replace
from functools import partial

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, View


def equal(n, runs=1, **options):
    """Describe n clients with one sample each and the same importance."""
    one_each = np.ones(n, np.int64)
    return Setup(one_each, one_each / n, runs, **options)


def sized(sizes, runs=1, **options):
    """Return the setup of clients with importances proportional to their sample counts."""
    sizes = np.array(sizes)
    return Setup(sizes, sizes / sizes.sum(), runs, **options)


def play(sampler, setup, t=0, observed=None, trained=lambda slots: {}, offered=None):
    """Play round t, from which the sampler learns; return the slots and their weights.

    The server knows `observed` before it selects among the clients `offered` (by default all), and
    what `trained` returns of the slots, such as ``update_norms`` or ``updates``, after their
    training.
    """
    result = weighed(sampler, setup, t, observed, trained, offered)
    sampler.learn()
    return result


def weighed(sampler, setup, t=0, observed=None, trained=lambda slots: {}, offered=None):
    """Play round t as far as the weights."""
    view = View(setup.n_samples, setup.p, t, setup.runs, observed or {})
    view = view if offered is None else view.restricted_to(np.array(offered))
    draws = Draws(np.arange(setup.runs), t)
    slots = sampler.select(view, draws)
    after = replace(view, observed={**view.observed, **trained(slots)})
    return slots, sampler.weigh(slots, after, draws)


def play_all(sampler, setup, rounds, observed=None, trained=lambda t, slots: {}, offered=None):
    """Play rounds 0, 1, …; yield the slots and the weights of each.

    What `observed` and `offered` have of each round, and `trained` as a function of the round too,
    is as for `play`.
    """
    for t in range(rounds):
        known, present = (None if of is None else of[t] for of in (observed, offered))
        yield play(sampler, setup, t, known, partial(trained, t), present)


def play_with_losses(scheme, setup, rounds, loss):
    """Play rounds with known delays, in which clients report `loss` of the round and themselves.

    Return the prepared sampler after the rounds, and each round's slots and weights.
    """
    ready, delays = prepared(scheme, setup), [{"delays": setup.delays}] * rounds
    losses = lambda t, slots: {"work_losses": loss(t, slots.client)}  # noqa: E731
    return ready, [*play_all(ready, setup, rounds, delays, losses)]


def mean_weights(slots, omega, setup):
    """Return the mean of every client's weight over the runs, and its standard error."""
    total = np.zeros((setup.runs, len(setup.p)))
    np.add.at(total, (slots.run, slots.client), omega)
    return total.mean(0), total.std(0) / np.sqrt(setup.runs)
