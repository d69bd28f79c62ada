"""Oort as its authors implement it in FedScale, which differs from the paper's Algorithm 1.

The pacer relaxes T if the utility changes by at most a tenth, and tightens it if the utility grows
fivefold; candidates are all clients above 0.05 of the cut-off utility, and at least ten times the
number of draws; the unexplored clients with the most samples are taken, with a penalty for slow
clients; ε is at least 0.3.

References
----------
Lai, Dai, Singapuram, Liu, Zhu, Madhyastha, Chowdhury: FedScale. ICML 2022 (arXiv 2105.11367).  Its
code, github.com/SymbioticLab/FedScale at commit 3e5ba36, ``thirdparty/oort/oort.py``: the training
selector; defaults of ``fedscale/cloud/config_parser.py``.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import NotNegative, Positive, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.oort import UNCERTAINTY, drawn_parts, statistical_utility
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances

# The pacer acts on relative changes of the exploited utility up to or beyond these.
SMALL_CHANGE, LARGE_CHANGE = 0.1, 5.0
MIN_RANGE = 1e-4
POOL_FACTOR = 10  # clients in the exploitation pool beyond the cut-off, for each client to draw


def scaled(reward: Array, all_rewards: Array, clip: float) -> Array:
    """Scale rewards by the range of all clients' rewards, after clipping.

    Parameters
    ----------
    reward : float array, shape (explored,)
        Statistical utilities of the explored clients.
    all_rewards : float array, shape (clients,)
        Rewards of all clients, explored or not; at least one.
    clip : float
        Rewards above this quantile are clipped to it; the range is that before clipping.

    Returns
    -------
    float array, shape (explored,)
    """
    low = 0.999 * all_rewards.min()
    ceiling = np.minimum(reward, _ranked(all_rewards, int(len(all_rewards) * clip)))
    share: Array = (ceiling - low) / max(all_rewards.max() - low, MIN_RANGE)
    return share


def slowed(value: Array, seconds: Array, preferred: float, penalty: float) -> Array:
    """Multiply the values of clients slower than T by (T/t_i)^α."""
    factor = np.where(seconds > preferred, preferred / np.maximum(seconds, 1e-4), 1.0) ** penalty
    return value * factor


def preferred_duration(seconds: Array, percentile: float) -> float:
    """Return T, a percentile of all clients' durations; infinite from the percentile 100 on."""
    if percentile >= 100:
        return float("inf")
    return _ranked(seconds, int(len(seconds) * percentile / 100))


def pool(scores: Array, k: int, cutoff: float) -> Bools:
    """Mark the clients above `cutoff` times the (k + 1)-th largest score, and at least 10 k."""
    best = np.argsort(-scores, kind="stable")[: POOL_FACTOR * k + 1]
    admitted: Bools = scores >= cutoff * scores[best[min(k, len(best) - 1)]]
    admitted[best] = True
    return admitted


def _ranked(values: Array, rank: int) -> float:
    """Return the value that would be at a position, or the last, if the values were sorted."""
    position = min(rank, len(values) - 1)
    return float(np.partition(values, position)[position])


@dataclass
class OortFedScaleState:
    """What the selector remembers of each client, and its pacer of the last rounds."""

    reward: Array  # statistical utility; number of samples if unexplored, shape (runs, n)
    last: Ints  # round of the last participation, counted from 1; 0 if unexplored, shape (runs, n)
    achieved: Array  # mean utility of the exploited clients in the last 2 W rounds
    paces: Array  # percentile that defines T, shape (runs,)


class OortFedScale(
    Scheme, name="oort_fedscale", title="Oort as in FedScale's code", short="Oort, FedScale"
):
    """Oort as in FedScale: draws from a wide pool by utility, explores clients with many samples.

    Differences from the paper's box: before a client has trained, its utility is its number of
    samples; utilities are scaled by the range over all clients, explored or not; the pool has all
    clients above 5 % of the cut-off, and at least ten times the number of draws; unexplored clients
    are drawn by samples and speed among the best of them; T moves in both directions.

    Differences from FedScale: once all clients are explored, its code keeps adding the clients that
    it explored last; here exploitation fills their places.  Over-commitment (1.3 in FedScale) and
    the blacklist (off) are not implemented.  A client's duration is its expected duration, not its
    last one.  Losses are means over mini-batches, not over single samples.  Updates are averaged by
    importance.

    References
    ----------
    FedScale, ``thirdparty/oort/oort.py``, ``getTopK`` and ``pacer``; ``fedscale/cloud/
    config_parser.py`` for the defaults.
    """

    m: Positive
    explore: Proportion = Field(
        default=0.9, description="exploration_factor: fraction of unexplored clients"
    )
    decay: Proportion = Field(
        default=0.98, description="exploration_decay: factor on it in each round"
    )
    explore_least: float = Field(
        ge=0, le=1, allow_inf_nan=False, default=0.3, description="exploration_min"
    )
    cutoff: Proportion = Field(
        default=0.05, description="cut_off_util: fraction of the cut-off utility"
    )
    penalty: NotNegative = Field(
        default=2.0, description="round_penalty: exponent for slow clients"
    )
    window: Positive = Field(
        default=20, description="pacer_step: rounds between actions of the pacer"
    )
    pace: float = Field(
        default=30.0, gt=0, le=100, description="round_threshold: percentile that T is at"
    )
    relax: NotNegative = Field(default=5.0, description="pacer_delta: percentiles that T moves by")
    clip: Proportion = Field(
        default=0.9, description="clip_bound: quantile at which utilities are clipped"
    )
    sample_window: float = Field(
        default=5.0, ge=1, description="unexplored clients considered, for each one that is drawn"
    )

    needs = frozenset({"delays", "work_losses"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {
        "explore_least": (0.1, 0.5, "linear"),
        "cutoff": (0.05, 0.95, "linear"),
        "pace": (20.0, 95.0, "linear"),
    }

    def initial_state(self, setup: Setup) -> OortFedScaleState:
        """Register all clients as unexplored."""
        shape = (setup.runs, len(setup.p))
        return OortFedScaleState(
            reward=np.tile(setup.n_samples.astype(np.float64), (setup.runs, 1)),
            last=np.zeros(shape, np.int64),
            achieved=np.zeros((setup.runs, 2 * self.window)),
            paces=np.full(setup.runs, self.pace),
        )

    def select(self, state: OortFedScaleState, view: View, rng: Draws) -> Slots:
        """Draw explored clients by utility, and fill up with unexplored clients."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        epsilon = max(self.explore * self.decay ** (view.round + 1), self.explore_least)
        seconds = view.observed["delays"]
        odds = np.zeros((2, view.runs, n))  # relative probabilities: explored, unexplored
        count = np.zeros((2, view.runs), np.int64)
        for run in range(view.runs):
            T = preferred_duration(seconds, state.paces[run])
            is_explored = state.last[run, offered] > 0
            explored, unexplored = offered[is_explored], offered[~is_explored]
            k = max(min(m - int(m * epsilon), len(explored)), m - len(unexplored))
            count[:, run] = k, m - k
            if k:
                utility = self._utility(state, run, explored, offered, view.round + 1)
                score = np.abs(slowed(utility, seconds[explored], T, self.penalty))
                odds[0, run, explored] = np.where(pool(score, k, self.cutoff), score + 1e-12, 0.0)
            if m > k:
                value = slowed(state.reward[run, unexplored], seconds[unexplored], T, self.penalty)
                best = np.argsort(-value, kind="stable")[: int(self.sample_window * (m - k))]
                odds[1, run, unexplored[best]] = value[best] + 1e-12
        return Slots.stack([np.concatenate(parts) for parts in drawn_parts(odds, count, m, rng)])

    def weigh(self, state: OortFedScaleState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)

    def learn(self, state: OortFedScaleState, slots: Slots, view: View) -> OortFedScaleState:
        """Update the participants' rewards, and the pacer."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0, posinf=0)
        reward = statistical_utility(view.n_samples[slots.client], loss)
        exploited = state.last[slots.run, slots.client] > 0
        state.reward[slots.run, slots.client] = reward
        state.last[slots.run, slots.client] = view.round + 1
        total = np.bincount(slots.run, reward * exploited, view.runs)
        state.achieved = np.roll(state.achieved, -1, axis=1)
        state.achieved[:, -1] = total / (np.bincount(slots.run, exploited, view.runs) + 1e-4)
        state.paces = self._moved_paces(state, view.round + 1)
        return state

    def _utility(
        self, state: OortFedScaleState, run: int, explored: Ints, offered: Ints, round: int
    ) -> Array:
        """Compute the utilities of the explored clients: scaled reward and uncertainty."""
        rewards = state.reward[run]
        positive = rewards[offered][rewards[offered] > 0]
        share = scaled(rewards[explored], positive if len(positive) else np.zeros(1), self.clip)
        utility: Array = share + np.sqrt(UNCERTAINTY * np.log(round) / state.last[run, explored])
        return utility

    def _moved_paces(self, state: OortFedScaleState, round: int) -> Array:
        """Move T up if the exploited utility stays, and down if it changes fivefold."""
        W = self.window
        if round < 2 * W or round % W:
            return state.paces
        before, now = state.achieved[:, :W].sum(1), state.achieved[:, W:].sum(1)
        change = np.abs(now - before)
        up, down = change <= SMALL_CHANGE * before, change >= LARGE_CHANGE * before
        raised = np.minimum(state.paces + self.relax, 100.0)
        lowered = np.maximum(state.paces - self.relax, self.relax)
        paces: Array = np.where(up, raised, np.where(down, lowered, state.paces))
        return paces
