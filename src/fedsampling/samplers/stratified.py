"""Stratified sampling: each stratum of similar clients gets draws in proportion to its size.

References
----------
Cochran: Sampling Techniques. Wiley 1977, chapter 5.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.protocol.slots import Setup, Slots, View


def proportional(sizes: Ints, m: int, d: Array) -> Ints:
    """Allocate m draws to strata in proportion to their sizes, rounded at random.

    Parameters
    ----------
    sizes : int array, shape (strata,)
        N_h, the number of units in each stratum; sums to N ≥ m.
    d : float array, shape (runs,)
        Uniform on [0, 1).

    Returns
    -------
    int array, shape (runs, strata)
        m_h: m N_h/N rounded up or down, with this value as expectation; sums to m.

    Notes
    -----
    Systematic sampling: the strata lie end to end on a line of length m, and each gets as many
    draws as it covers of the points d, d + 1, …, d + m − 1.
    """
    ends = m * np.cumsum(sizes) / sizes.sum()
    below = np.ceil(ends - d[:, None])
    counts: Ints = np.diff(below, axis=1, prepend=0.0).astype(np.int64)
    return counts


def from_strata(stratum: Ints, counts: Ints, u: Array) -> Bools:
    """Choose `counts` units of each stratum; all subsets are equally likely.

    Parameters
    ----------
    stratum : int array, shape (n,)
        Stratum 0, 1, … of each unit.
    counts : int array, shape (runs, strata)
    u : float array, shape (runs, n)
        Uniform on [0, 1), one variate for each unit.

    Returns
    -------
    bool array, shape (runs, n)
    """
    order = np.argsort(stratum + u, axis=1)
    size = np.bincount(stratum, minlength=counts.shape[1])
    ordered = np.repeat(np.arange(len(size)), size)
    rank = np.arange(len(stratum)) - (np.cumsum(size) - size)[ordered]
    member = np.zeros(u.shape, np.bool_)
    np.put_along_axis(member, order, rank < counts[:, ordered], axis=1)
    return member


@dataclass
class Strata:
    """The stratum of each client, shape (n,)."""

    of: Ints


class Stratified(Uniform, name="stratified", title="Stratified sampling", short="Stratified"):
    """m clients from strata of similar clients; each stratum gets draws in proportion to its size.

    A stratum contains clients of similar sample count (strata of almost equal size), or clients
    with the same most frequent label, which no practical server knows.  The numbers of draws are
    rounded at random, so there may be more strata than draws; each client has probability m/n.

    References
    ----------
    Cochran 1977, chapter 5, where the numbers are rounded to the nearest integer.
    """

    m: Positive
    by: Literal["size", "label"] = "size"
    strata: Positive = Field(
        default=4, description="number of strata by size; by label, one per label"
    )

    grid = {"strata": (2, 5, "integer")}

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Labels, if they define the strata."""
        return frozenset({"labels"} if self.by == "label" else ())

    def initial_state(self, setup: Setup) -> Strata:
        """Form the strata."""
        n = len(setup.p)
        if self.by == "label":
            return Strata(np.unique(np.asarray(setup.labels), return_inverse=True)[1])
        stratum = np.empty(n, np.int64)
        order = np.argsort(setup.n_samples, kind="stable")
        for number, part in enumerate(np.array_split(order, min(self.strata, n))):
            stratum[part] = number
        return Strata(stratum)

    def select(self, state: Strata, view: View, rng: Draws) -> Slots:
        """Allocate the draws to the strata, and draw within each of them."""
        offered = view.offered
        stratum = state.of[offered]
        sizes = np.bincount(stratum, minlength=state.of.max() + 1)
        counts = proportional(sizes, min(self.m, len(offered)), rng.uniform("strata"))
        member = np.zeros((view.runs, len(view.p)), np.bool_)
        u = rng.uniforms("clients", len(view.p)).take(offered, axis=1)
        member[:, offered] = from_strata(stratum, counts, u)
        return Slots.of(member)
