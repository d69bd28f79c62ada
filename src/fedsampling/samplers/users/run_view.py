"""The server's information for a sampler of one run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsampling.base.arrays import Array, Ints
from fedsampling.samplers.protocol.base import NETWORK_NEEDS
from fedsampling.samplers.protocol.guest import lent
from fedsampling.samplers.protocol.slots import View

SLOT_NEEDS = frozenset({"bias_updates", "update_norms", "work_losses"})  # one row per slot
SHARED_NEEDS = frozenset({"delays"})  # the same for every run


@dataclass(frozen=True)
class RunView:
    """The server's information for a sampler of one run in one round.

    The quantities that ``needs`` names are attributes: ``view.losses`` (n,), ``view.gradients``
    (n, d), ``view.heterogeneity`` (n, n), ``view.delays`` (n,).  In ``weigh`` there are also
    ``view.update_norms`` and ``view.work_losses``, one number per selected client.

    Parameters
    ----------
    n_samples : int array, shape (n,)
    p : float array, shape (n,)
        Importance of each client; zero for unavailable clients; sums to one.
    round : int
    observed : mapping
        The same quantities by name.
    offered : int array, shape (offered,)
        Clients that are available in this round, ascending.
    """

    n_samples: Ints
    p: Array
    round: int
    observed: Mapping[str, Any] = field(default_factory=dict)
    offered: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.p)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.observed:
            return self.observed[name]
        fix = "add it to `needs`" if name in NETWORK_NEEDS else "see `RunView` for its attributes"
        raise AttributeError(f"view has no {name!r}; {fix}")


def run_view(run: int, view: View, observed: Mapping[str, Any]) -> RunView:
    """Extract a run's part of the observations."""
    shared = SLOT_NEEDS | SHARED_NEEDS  # already reduced to this run, or equal in all runs
    run_values = {
        name: values if name in shared else values[run]
        for name, values in observed.items()
        if name != "updates"  # which saw_updates receives
    }
    return lent(RunView(view.n_samples, view.p, view.round, run_values, view.offered))


def is_finite(view: RunView) -> bool:
    """Whether all observations of available clients are finite."""
    for values in view.observed.values():
        available = values[view.offered] if len(values) == view.n else values
        if not np.isfinite(available).all():
            return False
    return True
