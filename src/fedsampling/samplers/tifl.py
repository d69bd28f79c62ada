"""TiFL: tiers of clients of like speed; each round takes its clients from one tier.

References
----------
Chai, Ali, Zawad, Truex, Anwar, Baracaldo, Zhou, Ludwig, Yan, Cheng: TiFL: A Tier-based Federated
Learning System. HPDC 2020 (arXiv 2001.09249).
"""

import numpy as np
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import (
    Array,
    Ints,
    Scheme,
    Setup,
    Slots,
    View,
    among_present,
    distinct,
    invert,
)


def tiers(seconds: Array, count: int) -> list[Ints]:
    """Cut the clients, in the order of their seconds, into tiers of sizes as equal as can be.

    Parameters
    ----------
    seconds : float array, shape (n,)
    count : int
        At most n.

    Returns
    -------
    list of int arrays
        Clients of each tier, the fastest tier first; of equal clients the first in the faster one.
    """
    return np.array_split(np.argsort(seconds, kind="stable"), count)


class TiFL(Scheme, name="tifl"):
    """m clients, uniformly, of one tier of like speed that is drawn for the round.

    Built is the *static* choice of a tier with fixed odds, ``uniform`` in the paper unless ``odds``
    says otherwise.  The adaptive one (Algorithm 2) needs each tier's accuracy on test data that
    its clients hold, which nothing here can show.

    Left open, and chosen: tiers are of equal numbers of clients (the paper cuts a histogram of
    latencies); there are fewer than ``tiers`` where they would not hold m clients each, as the
    paper asks; latencies are the expected seconds, known without the profiling rounds.

    References
    ----------
    Chai et al. 2020, sections 4.2 and 4.3; the weights are those of Algorithm 1, s_c/Σ s_c.
    """

    m: Positive
    tiers: Positive = Field(5, description="of clients, by speed")
    odds: tuple[NotNegative, ...] | None = Field(
        None, description="of each tier, the fastest first; null: all alike"
    )

    needs = frozenset({"delays"})
    intermittent = True

    _tiers: list[Ints]
    _odds: Array
    _fair: bool

    @property
    def unbiased(self) -> bool:  # type: ignore[override]
        """Where clients are equally important and each is in a tier as likely and as large."""
        return self._fair

    def prepare(self, setup: Setup) -> None:
        """Make the tiers."""
        count = min(self.tiers, len(setup.p) // self.m)
        if self.odds is not None and (len(self.odds) != count or not any(self.odds)):
            raise InputError(
                f"sampler.odds: {len(self.odds)} do not suit {count} tiers; give one for each, "
                "some of them above zero"
            )
        self._tiers = tiers(np.asarray(setup.delays), count)
        self._odds = np.ones(count) if self.odds is None else np.array(self.odds)
        sizes = [len(tier) for tier in self._tiers]
        uneven = max(np.ptp(sizes), np.ptp(self._odds), np.ptp(setup.p))
        self._fair = bool(uneven < 1e-12)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw a tier with somebody in it, and m of its clients."""
        within = [tier[np.isin(tier, view.offered)] for tier in self._tiers]
        there = np.array([len(tier) > 0 for tier in within])
        odds = self._odds * there
        drawn = invert(odds if odds.any() else there * 1.0, rng.uniform("tiers"))
        u = rng.uniforms("clients", self.m)
        clients = []
        for tier, u_run in zip(drawn, u, strict=True):
            members = within[tier]
            clients.append(members[distinct(len(members), u_run[None, : len(members)])[0]])
        return Slots.stack(clients)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """p_i among the participants."""
        return among_present(slots, view)
