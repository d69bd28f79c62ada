"""Rounds of a prepared sampler, without training."""

from dataclasses import replace

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Setup, View


def equal(n, runs=1, **options):
    """Describe n clients with one sample each and the same importance."""
    one_each = np.ones(n, np.int64)
    return Setup(one_each, one_each / n, runs, **options)


def play(sampler, setup, t=0, observed=None, trained=lambda slots: {}, offered=None):
    """Play round t; return the slots and their weights.

    The server knows `observed` before it selects among the clients `offered` (by default all), and
    what `trained` returns of the slots, such as ``update_norms``, after their training.
    """
    view = View(setup.n_samples, setup.p, t, setup.runs, observed or {})
    view = view if offered is None else view.restricted_to(np.array(offered))
    draws = Draws(np.arange(setup.runs), t)
    slots = sampler.select(view, draws)
    after = replace(view, observed={**view.observed, **trained(slots)})
    return slots, sampler.weigh(slots, after, draws)
