"""Rounds of a prepared sampler, without training."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Scheme, Setup, Slots, View


def equal(n: int, runs: int = 1, **more: Any) -> Setup:
    """Describe n clients with one sample each and the same importance."""
    ones = np.ones(n, np.int64)
    return Setup(ones, ones / n, runs, **more)


def play(
    sampler: Scheme,
    setup: Setup,
    t: int = 0,
    observed: Mapping[str, Any] | None = None,
    trained: Callable[[Slots], Mapping[str, Any]] = lambda slots: {},
    offered: Sequence[int] | None = None,
) -> tuple[Slots, Any]:
    """Play round t; return the slots and their weights.

    Parameters
    ----------
    observed : mapping
        The server's information before it selects.
    trained : callable
        Returns information on the slots after their training, such as ``update_norms``.
    offered : sequence of int, optional
        Available clients; all by default.
    """
    view = View(setup.n_samples, setup.p, t, setup.runs, observed or {})
    view = view if offered is None else view.restricted_to(np.array(offered))
    draws = Draws(np.arange(setup.runs), t)
    slots = sampler.select(view, draws)
    after = replace(view, observed={**view.observed, **trained(slots)})
    return slots, sampler.weigh(slots, after, draws)
