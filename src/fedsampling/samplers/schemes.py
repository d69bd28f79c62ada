"""The simplest schemes as samplers: thin classes over :mod:`fedsampling.samplers.basic`."""

import numpy as np
from numpy.typing import NDArray

from fedsampling.samplers.basic import md, uniform
from fedsampling.samplers.slots import Slots, View
from fedsampling.streams import Draws

NOTHING: frozenset[str] = frozenset()


class MD:
    """m draws with replacement in proportion to importance; a client drawn twice trains twice.

    References
    ----------
    Fraboni et al. 2022, equation (5).
    """

    needs = NOTHING

    def __init__(self, m: int) -> None:
        self.m = m

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw l_1, …, l_m with P(l_k = i) = p_i."""
        return Slots.stack([md(view.p, self.m, run) for run in rng.generators("clients")])

    def weigh(self, slots: Slots, view: View, rng: Draws) -> NDArray[np.float64]:
        """1/m for each draw."""
        return np.full(len(slots), 1 / self.m)


class Uniform:
    """m of n clients without replacement, all subsets alike.

    References
    ----------
    Fraboni et al. 2022, equation (6); with p_i = 1/n each weight is 1/m, as in FedAvg.
    """

    needs = NOTHING

    def __init__(self, m: int) -> None:
        self.m = m

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw m distinct clients."""
        n = len(view.p)
        return Slots.stack([uniform(n, self.m, run) for run in rng.generators("clients")])

    def weigh(self, slots: Slots, view: View, rng: Draws) -> NDArray[np.float64]:
        """(n/m) p_i for each client drawn."""
        return len(view.p) / self.m * view.p[slots.client]
