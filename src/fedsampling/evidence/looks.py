"""Looks: seeds are added in declared steps, and intervals allow for all of them.

A comparison that is tested again after each batch of new seeds, each time at 5 %, finds a
difference that does not exist in more than 5 % of cases. Here all looks of a plan use one stricter
level, chosen so that the probability that *any* of them errs is the nominal one (Pocock 1977). The
level comes from a simulation of t-tests on normal data, separately for each nominal level, because
the ratio of the two levels is not constant.

References
----------
Pocock: Group sequential methods in the design and analysis of clinical trials. Biometrika 1977.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from fedsampling.base.arrays import Array, Ints
from fedsampling.evidence.look_levels import LEVELS

PATHS, PATHS_AT_ONCE = 1_000_000, 10_000
OF_INTEREST = 0.2  # larger p-values decide nothing


@dataclass(frozen=True)
class Looks:
    """A declared plan of looks.

    Parameters
    ----------
    seeds : tuple of int
        Numbers of seeds after which a comparison is judged, in increasing order; one number is a
        plan without interim looks.
    """

    seeds: tuple[int, ...]

    def level(self, level: float) -> float:
        """Return the level of each look's interval, for intervals that all cover with `level`."""
        if len(self.seeds) == 1:
            return level
        return LEVELS.get(self.seeds, {}).get(level) or simulated_level(self.seeds, level)

    def finished(self, n: int) -> int:
        """Return how many looks `n` seeds are enough for."""
        return sum(seeds <= n for seeds in self.seeds)


@cache  # claims ask for few levels, each for hundreds of intervals
def simulated_level(looks: tuple[int, ...], level: float) -> float:
    """Compute the level of each look's interval, for intervals that all cover with `level`."""
    level_of_tests = float(np.quantile(smallest_p_values(looks), 1 - level))
    if level_of_tests > OF_INTEREST:
        raise ValueError(f"level: {level} is too low for several looks")
    return 1 - level_of_tests


@lru_cache
def smallest_p_values(looks: Sequence[int], paths: int = PATHS, seed: int = 0) -> Array:
    """Simulate the smallest two-sided p-value over all looks if there is no difference.

    Parameters
    ----------
    looks : sequence of int
        Numbers of seeds, in increasing order.
    paths : int
        Simulated experiments.
    seed : int
        Seed of the simulation; fixed, so that an interval depends only on the runs.

    Returns
    -------
    float array, shape (paths,)
        p-values above :data:`OF_INTEREST` are 1.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for first in range(0, paths, PATHS_AT_ONCE):
        values = rng.standard_normal((min(PATHS_AT_ONCE, paths - first), looks[-1]))
        parts.append(_p_values(values, np.array(looks)).min(axis=1))
    return np.concatenate(parts)


def _p_values(values: Array, n: Ints) -> Array:
    """Two-sided p-values of t-tests of mean zero: of the first `n` values, for each row and n."""
    sums, squares = _sums(values, n), _sums(values**2, n)
    t = np.abs(sums) / np.sqrt((n * squares - sums**2) / (n - 1))
    p_values = np.ones_like(t)
    rows, looks = np.nonzero(t > stdtrit(n - 1, 1 - OF_INTEREST / 2))
    p_values[rows, looks] = 2 * stdtr(n[looks] - 1, -t[rows, looks])
    return p_values


def _sums(values: Array, n: Ints) -> Array:
    """Sum the first `n` values of each row, for each n; a column is read only once."""
    batches = np.split(values, n[:-1], axis=1)
    return np.stack([batch.sum(axis=1) for batch in batches], axis=1).cumsum(axis=1)
