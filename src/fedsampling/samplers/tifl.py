"""TiFL: clients are grouped into tiers of similar speed; each round uses the clients of one tier.

References
----------
Chai, Ali, Zawad, Truex, Anwar, Baracaldo, Zhou, Ludwig, Yan, Cheng: TiFL: A Tier-based Federated
Learning System. HPDC 2020 (arXiv 2001.09249).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import distinct, invert
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances


def tiers(seconds: Array, count: int) -> list[Ints]:
    """Split the clients, sorted by speed, into tiers of (almost) equal size.

    Parameters
    ----------
    seconds : float array, shape (n,)
        Duration of a round of each client.
    count : int
        Number of tiers, at most n.

    Returns
    -------
    list of int arrays
        The clients of each tier, the fastest tier first.  Ties are broken by the client's index.
    """
    return np.array_split(np.argsort(seconds, kind="stable"), count)


def tier_losses(losses: Array, samples: Ints, tiers: list[Ints]) -> Array:
    """Average the clients' losses within each tier, weighted by their numbers of samples.

    Parameters
    ----------
    losses : float array, shape (runs, n)
        NaN for clients that are not available.

    Returns
    -------
    float array, shape (runs, tiers)
        NaN for a tier without available clients.
    """
    unavailable = np.isnan(losses)
    weight, value = np.where(unavailable, 0.0, samples), np.where(unavailable, 0.0, losses)
    sums = [[part[:, tier].sum(1) for tier in tiers] for part in (weight * value, weight)]
    total, count = np.array(sums)
    mean: Array = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0).T
    return mean


def rank_odds(losses: Array, usable: Bools) -> Array:
    """Compute the tiers' probabilities from the ranks of their losses, shape (tiers,).

    Of n usable tiers, sorted by decreasing loss, the i-th gets (n − i)/D with D = n (n − 1)/2, so
    the tier with the least loss gets zero.  A single usable tier gets one.

    References
    ----------
    ChangeProbs in Algorithm 2.
    """
    order = np.argsort(-losses, kind="stable")
    order = order[usable[order]]
    n = len(order)
    odds = np.zeros(len(losses))
    odds[order] = (n - 1 - np.arange(n)) / (n * (n - 1) / 2) if n > 1 else 1.0
    return odds


def drawn_tiers(tiers: list[Ints], odds: Array, view: View, rng: Draws) -> Ints:
    """Draw each run's tier by `odds`, shape (runs, tiers), among those with available clients."""
    available = np.array([np.isin(tier, view.offered).any() for tier in tiers])
    drawn = [
        int(invert(odds * available if (odds * available).any() else available * 1.0, u_run))
        for odds, u_run in zip(odds, rng.uniform("tiers"), strict=True)
    ]
    return np.array(drawn)


@dataclass
class Tiers:
    """The tiers, their relative probabilities, and the tier of each run's last round."""

    tiers: list[Ints]  # the clients of each, the fastest first
    odds: Array  # shape (runs, tiers)
    drawn: Ints  # shape (runs,)


class TiFL(Scheme, name="tifl", title="Tier-based selection (TiFL)", short="TiFL"):
    """m clients, uniformly from one tier of similar speed that is drawn in each round.

    This is the *static* policy: the tiers' probabilities are equal ("uniform" in the paper), or
    proportional to ``odds``.  :class:`AdaptiveTiFL` is the adaptive policy.

    The paper leaves these choices open: tiers have equal numbers of clients (the paper splits a
    histogram of latencies); latencies are the expected seconds, without profiling rounds.  There
    are fewer than ``tiers`` tiers if they would have fewer than m clients each, as the paper
    requires.

    References
    ----------
    Chai et al. 2020, sections 4.2 and 4.3; the weights are those of Algorithm 1, s_c/Σ s_c.
    """

    m: Positive
    tiers: Positive = Field(default=5, description="number of groups of clients by speed")
    odds: tuple[NotNegative, ...] | None = Field(
        default=None,
        description="relative probability of each tier, the fastest first; null: equal",
    )

    needs = frozenset({"delays"})
    unbiased: ClassVar[bool | None] = None
    failure_weights = "average"
    intermittent = True
    grid = {"tiers": (2, 5, "integer")}

    def initial_state(self, setup: Setup) -> Tiers:
        """Form the tiers."""
        count = min(self.tiers, len(setup.p) // self.m)
        if self.odds is not None and (len(self.odds) != count or not any(self.odds)):
            raise InputError(
                f"sampler.odds: {len(self.odds)} values for {count} tiers; give one for each tier, "
                "at least one of them above zero"
            )
        odds = np.ones(count) if self.odds is None else np.array(self.odds)
        of_runs = np.broadcast_to(odds, (setup.runs, count)).copy()
        drawn = np.zeros(setup.runs, np.int64)
        return Tiers(tiers(np.asarray(setup.delays), count), of_runs, drawn)

    def is_unbiased(self, setup: Setup) -> bool:
        """Whether the clients, the tiers' sizes and their probabilities are all equal."""
        state = self.initial_state(setup)
        sizes = [len(tier) for tier in state.tiers]
        spread = max(np.ptp(sizes), np.ptp(state.odds), np.ptp(setup.p))
        return bool(spread < 1e-12)

    def begin(self, state: Any, view: View, rng: Draws) -> Any:
        """Draw the round's tier among those that have available clients."""
        state.drawn = drawn_tiers(state.tiers, state.odds, view, rng)
        return state

    def select(self, state: Any, view: View, rng: Draws) -> Slots:
        """Draw m available clients of the tier."""
        u = rng.uniforms("clients", self.m)
        clients = []
        for tier, u_run in zip(state.drawn, u, strict=True):
            members = state.tiers[tier][np.isin(state.tiers[tier], view.offered)]
            clients.append(members[distinct(len(members), u_run[None, : len(members)])[0]])
        return Slots.stack(clients)

    def weigh(self, state: Any, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)


@dataclass
class AdaptiveTiers(Tiers):
    """What the adaptive policy remembers, in addition to the tiers."""

    before: Array  # losses of the tiers at the last update, shape (runs, tiers)
    credits: Array  # remaining credits, shape (runs, tiers)


class AdaptiveTiFL(
    TiFL, name="tifl_adaptive", title="Adaptive tier selection (TiFL)", short="TiFL, adaptive"
):
    """TiFL with adaptive probabilities: tiers with larger losses are drawn more often.

    Every I rounds, if the loss of the current tier has not decreased in the last I rounds, the
    probabilities are recomputed from the ranks of the tiers' losses.  A tier without credits is no
    longer drawn.

    The paper leaves these choices open: tiers are ranked by the loss on their clients' training
    samples, not by the accuracy on clients' test samples; all clients compute this loss every I
    rounds, when the probabilities may change, and are charged for it; a tier without available
    clients keeps its last loss, and is ranked worst before it has one; I is 20 rounds; credits are
    unlimited by default, and ignored once all are used up.

    References
    ----------
    Chai et al. 2020, section 4.4, Algorithm 2 with its ChangeProbs.  Neither the paper's text nor
    the authors' code was available.  FLTK and FLGo, which also implement it, give the i-th of n
    tiers (n + 1 − i)/(n (n + 1)/2), so that the best tier keeps a positive probability, give each
    tier ⌈rounds/n⌉ credits, and evaluate accuracies every I rounds.
    """

    interval: Positive = Field(
        default=20, description="I: rounds between updates of the probabilities"
    )
    credits: tuple[Positive, ...] | None = Field(
        default=None,
        description="credits: rounds that each tier may be used, fastest first; null: all",
    )

    needs = frozenset({"delays", "losses"})
    unbiased = False
    grid = {"tiers": (2, 5, "integer"), "interval": (5, 40, "integer")}

    def initial_state(self, setup: Setup) -> AdaptiveTiers:
        """Form the tiers, and give them their credits."""
        state = super().initial_state(setup)
        if self.credits is not None and len(self.credits) != len(state.tiers):
            raise InputError(
                f"sampler.credits: {len(self.credits)} values for {len(state.tiers)} tiers; give "
                "one for each tier"
            )
        shape = state.odds.shape
        credits = np.broadcast_to(np.array(self.credits or np.inf, np.float64), shape).copy()
        before = np.full(shape, np.inf)
        return AdaptiveTiers(state.tiers, state.odds, state.drawn, before, credits)

    def is_unbiased(self, setup: Setup) -> bool:
        """Never: tiers with larger losses are drawn more often."""
        return False

    def begin(self, state: AdaptiveTiers, view: View, rng: Draws) -> AdaptiveTiers:
        """Update the probabilities every I rounds, and draw the round's tier."""
        if view.round % self.interval == 0:
            losses = tier_losses(view.observed["losses"], view.n_samples, state.tiers)
            losses = np.where(np.isnan(losses), state.before, losses)
            for run, tier in enumerate(state.drawn):
                if view.round and losses[run, tier] >= state.before[run, tier]:
                    state.odds[run] = rank_odds(losses[run], state.credits[run] > 0)
            state.before = losses
        has_credits = state.credits > 0
        odds = state.odds * has_credits
        # If no tier with credits has a positive probability, those with credits are equal.
        others = np.where(has_credits.any(1, keepdims=True), has_credits * 1.0, state.odds)
        odds = np.where(odds.any(1, keepdims=True), odds, others)
        state.drawn = drawn_tiers(state.tiers, odds, view, rng)
        state.credits[np.arange(view.runs), state.drawn] -= 1
        return state

    def asked(self, state: AdaptiveTiers, view: View) -> Bools:
        """Return the clients that had to compute a loss, shape (runs, n): all every I rounds."""
        reporting = np.zeros((view.runs, len(view.p)), np.bool_)
        if view.round % self.interval == 0:
            reporting[:, view.offered] = True
        return reporting
