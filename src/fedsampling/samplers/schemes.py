"""The simplest schemes as samplers: thin classes over :mod:`fedsampling.samplers.basic`."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fedsampling.samplers.basic import invert
from fedsampling.samplers.slots import Setup, Slots, View
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

    @classmethod
    def make(cls, given: Any, setup: Setup) -> Self:
        """Build it from its settings record."""
        return cls(given.m)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw l_1, …, l_m with P(l_k = i) = p_i."""
        return Slots.stack(list(invert(view.p, rng.uniforms("clients", self.m))))

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

    @classmethod
    def make(cls, given: Any, setup: Setup) -> Self:
        """Build it from its settings record."""
        return cls(given.m)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw m distinct clients."""
        return Slots.stack(list(distinct(len(view.p), rng.uniforms("clients", self.m))))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> NDArray[np.float64]:
        """(n/m) p_i for each client drawn."""
        return len(view.p) / self.m * view.p[slots.client]


def distinct(n: int, u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Turn m uniform variates into m of n units, every ordered choice alike.

    Parameters
    ----------
    n : int
    u : float array, shape (runs, m)
        In [0, 1).

    Returns
    -------
    int array, shape (runs, m)

    References
    ----------
    The first m swaps of the shuffle of Fisher and Yates: Knuth, TAOCP 2, algorithm 3.4.2 P.
    """
    runs = np.arange(len(u))
    units = np.tile(np.arange(n), (len(u), 1))
    for j, u_j in enumerate(u.T):
        other = j + (u_j * (n - j)).astype(np.int64)
        units[runs, other], units[:, j] = units[:, j], units[runs, other]
    return units[:, : u.shape[1]].copy()
