"""Groups of clients: sampled in proportion to their sizes (strata), or in turns (cycles).

References
----------
Cochran: Sampling Techniques. Wiley 1977, chapter 5.
Cho, Sharma, Joshi, Xu, Kale, Zhang: On the Convergence of Federated Averaging with Cyclic Client
Participation. ICML 2023 (arXiv 2302.03109).
Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling. ICML 2021 (arXiv 2105.05883), section 6 (target
sampling).
"""

from typing import Literal

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws, uniforms
from fedsampling.samplers.basic import Uniform
from fedsampling.samplers.scheme import Scheme, Setup, Slots, View, distinct, normalised_importances


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
    strata: Positive = Field(4, description="number of strata by size; by label, one per label")

    grid = {"strata": (2, 5, "integer")}

    _stratum: Ints

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Labels, if they define the strata."""
        return frozenset({"labels"} if self.by == "label" else ())

    def prepare(self, setup: Setup) -> None:
        """Form the strata."""
        n = len(setup.p)
        if self.by == "label":
            self._stratum = np.unique(np.asarray(setup.labels), return_inverse=True)[1]
            return
        self._stratum = np.empty(n, np.int64)
        order = np.argsort(setup.n_samples, kind="stable")
        for number, part in enumerate(np.array_split(order, min(self.strata, n))):
            self._stratum[part] = number

    def select(self, view: View, rng: Draws) -> Slots:
        """Allocate the draws to the strata, and draw within each of them."""
        offered = view.offered
        stratum = self._stratum[offered]
        sizes = np.bincount(stratum, minlength=self._stratum.max() + 1)
        counts = proportional(sizes, min(self.m, len(offered)), rng.uniform("strata"))
        member = np.zeros((view.runs, len(view.p)), np.bool_)
        u = rng.uniforms("clients", len(view.p)).take(offered, axis=1)
        member[:, offered] = from_strata(stratum, counts, u)
        return Slots.of(member)


class Cyclic(Scheme, name="cyclic", title="Cyclic client participation", short="Cyclic"):
    """m clients, uniformly from one group; the groups take turns.

    Groups follow one another in a fixed order, so the weights of a round are unbiased for its
    group, not for all clients.

    The paper leaves these choices open: groups of almost equal size are drawn at random for each
    run, or consist of clients with similar labels (``label``), as if availability depended on the
    data.  There are fewer than ``groups`` groups if they would have fewer than m clients each.

    References
    ----------
    Cho et al. 2023, section 3: K̄ groups in cyclic order, m clients of a group without replacement.
    The paper averages equally important clients; here weights are proportional to importance.
    """

    m: Positive
    groups: Positive = Field(5, description="K̄")
    by: Literal["random", "label"] = "random"

    unbiased = False
    intermittent = True
    grid = {"groups": (2, 10, "integer")}

    _count: int
    _labels: Ints | None

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Labels, if they define the groups."""
        return frozenset({"labels"} if self.by == "label" else ())

    def prepare(self, setup: Setup) -> None:
        """Determine the number of groups."""
        self._count = min(self.groups, len(setup.p) // self.m)
        self._labels = np.asarray(setup.labels) if self.by == "label" else None

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw m clients of the group whose turn it is, or of the next with available clients."""
        u = rng.uniforms("clients", self.m)
        clients = []
        for group, u_run in zip(self._groups(view, rng)[:, view.offered], u, strict=True):
            turns = (group - view.round) % self._count
            members = view.offered[turns == turns.min()]
            clients.append(members[distinct(len(members), u_run[None, : len(members)])[0]])
        return Slots.stack(clients)

    def _groups(self, view: View, rng: Draws) -> Ints:
        """Return the group of each client, shape (runs, n); it is fixed for each run."""
        n = len(view.p)
        order = uniforms(rng.seeds, "groups", n=n)
        if self._labels is not None:
            order = np.tile(self._labels, (view.runs, 1))
        place = np.empty((view.runs, n), np.int64)
        np.put_along_axis(place, np.argsort(order, axis=1, kind="stable"), np.arange(n), axis=1)
        return place * self._count // n

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)


# Target sampling: one client of each label, an ideal that clustered sampling is compared with.
#
# No practical server can do it, since it needs each client's most frequent label.


class Target(Scheme, name="target", title="Target sampling (one client per label)", short="target"):
    """One client of each label, drawn uniformly.

    With ten clients for each of ten digits, draw j selects client 10 j + u, u uniform on 0, …, 9.
    """

    needs = frozenset({"labels"})

    _groups: list[Ints]
    _size: Ints  # of each client's group

    def prepare(self, setup: Setup) -> None:
        """Group the clients by their labels."""
        labels = np.asarray(setup.labels)
        self._groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        self._size = np.empty(len(labels), np.int64)
        for group in self._groups:
            self._size[group] = len(group)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw one client from each group."""
        u = rng.uniforms("clients", len(self._groups))
        picks = [group[(u[:, j] * len(group)).astype(int)] for j, group in enumerate(self._groups)]
        return Slots.stack(np.stack(picks, axis=1))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i times the size of the group: 1/m for m equal groups of equal clients."""
        return view.p[slots.client] * self._size[slots.client]
