"""Oort: selects clients by expected learning progress and speed, and explores new clients.

A client's *statistical utility* is computed from its losses.  Its *system utility* is reduced if it
takes longer than a round should last, T.  Some clients that have taken part before are drawn by the
product of both utilities (exploitation), the others by speed (exploration).

References
----------
Lai, Zhu, Madhyastha, Chowdhury: Oort: Efficient Federated Learning via Guided Participant
Selection. OSDI 2021 (arXiv 2010.06081), section 4, equations (1) and (2), Algorithm 1.  The
authors' code is ``thirdparty/oort/oort.py`` of FedScale.
Lai, Dai, Singapuram, Liu, Zhu, Madhyastha, Chowdhury: FedScale. ICML 2022 (arXiv 2105.11367).  Its
code, github.com/SymbioticLab/FedScale at commit 3e5ba36, ``thirdparty/oort/oort.py``: the training
selector; defaults of ``fedscale/cloud/config_parser.py``.

The code differs from the paper's Algorithm 1: the pacer relaxes T if the utility changes by at most
a tenth, and tightens it if the utility grows fivefold; candidates are all clients above 0.05 of the
cut-off utility, and at least ten times the number of draws; the unexplored clients with the most
samples are taken, with a penalty for slow clients; ε is at least 0.3.
"""

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import NotNegative, Part, Positive, Share
from fedsampling.base.streams import Draws
from fedsampling.samplers.power_of_choice import candidates
from fedsampling.samplers.scheme import Scheme, Setup, Slots, View, normalised_importances

UNCERTAINTY = 0.1  # constant in the temporal uncertainty √(0.1 log R / L(i))


def statistical_utility(samples: Ints, loss: Array) -> Array:
    """Compute |B_i| √((1/|B_i|) Σ_k Loss(k)²), equation (1).

    Parameters
    ----------
    samples : int array, shape (n,)
        |B_i|.
    loss : float array, shape (n,)
        Root mean square of the client's losses.
    """
    return samples * loss


def system_utility(seconds: Array, preferred: float, penalty: float) -> Array:
    """Compute (T/t_i)^α if client i is slower than T, otherwise 1: factor in equation (2)."""
    return np.where(seconds > preferred, preferred / seconds, 1.0) ** penalty


def utilities(
    statistical: Array, system: Array, last: Ints, round: int, clip: float = 0.95
) -> Array:
    """Compute Util(i) of the explored clients: lines 8 to 12 of Algorithm 1.

    Parameters
    ----------
    statistical : float array, shape (explored,)
        U(i), from the client's last participation.
    system : float array, shape (explored,)
    last : int array, shape (explored,)
        L(i): round of the last participation, counted from 1.
    round : int
        R: current round, counted from 1.
    clip : float
        Quantile at which the statistical utilities are clipped.

    Returns
    -------
    float array, shape (explored,)
        Non-negative.

    Notes
    -----
    U(i) is a number of samples times a loss, and the temporal uncertainty is below one.  Added as
    printed, the latter would have no effect.  As in the authors' code, U(i) is scaled linearly to
    [0, 1] over the explored clients; if all are equal, to one.
    """
    clipped = np.minimum(statistical, np.quantile(statistical, clip))
    low, high = clipped.min(), clipped.max()
    scaled = (clipped - low) / (high - low) if high > low else np.ones(len(clipped))
    util: Array = (scaled + np.sqrt(UNCERTAINTY * np.log(round) / last)) * system
    return util


def admitted(util: Array, k: int, cutoff: float) -> Bools:
    """Mark the clients with at least `cutoff` times the k-th largest utility (line 14)."""
    return np.asarray(util >= cutoff * np.partition(util, -k)[-k])


def _drawn(odds: Array, count: Ints, m: int, rng: Draws) -> list[tuple[Ints, Ints]]:
    """Draw each run's explored and unexplored clients.

    `odds`, shape (2, runs, n): relative probabilities. `count`, shape (2, runs): at most m.
    """
    n = odds.shape[2]
    explored = candidates(odds[0], m, rng.uniforms("clients", n))
    unexplored = candidates(odds[1], m, rng.uniforms("explore", n))
    return [(explored[run, :k], unexplored[run, :rest]) for run, (k, rest) in enumerate(count.T)]


class Oort(Scheme, name="oort", title="Oort: guided participant selection", short="Oort"):
    """m clients: most by statistical and system utility, some that were never selected.

    The sampler observes the participants' losses during local training, and all clients' expected
    seconds.

    The paper leaves these choices open, or cannot be followed here.  Losses are means over
    mini-batches, not single samples, so their root mean square is at most that of equation (1).
    t_i is the client's expected seconds, not its last duration.  As in the authors' code, T starts
    at a quantile of all clients' seconds and increases in steps of quantiles (Algorithm 1 has T ← Δ
    without a unit), and the pacer acts every W rounds (Algorithm 1: every round).  Unexplored
    clients are drawn with probability proportional to 1/t_i ("by speed").  Updates are averaged by
    importance; the paper leaves this to the federated optimiser.  Not implemented: over-commitment,
    noise on utilities, and the blacklist of frequently selected clients, which is off in the code.

    References
    ----------
    Lai et al. 2021, Algorithm 1; settings of section 7.1.
    """

    m: Positive
    explore: Part = Field(0.9, description="ε in the first round: fraction of unexplored clients")
    decay: Part = Field(0.98, description="factor on ε in each round")
    explore_least: NotNegative = Field(0.2, description="smallest value of ε")
    cutoff: Part = Field(0.95, description="c: fraction of the k-th utility that admits a client")
    penalty: NotNegative = Field(2.0, description="α: penalty exponent of clients slower than T")
    window: Positive = Field(20, description="W: rounds between actions of the pacer")
    pace: Share = Field(0.3, description="initial T, as a quantile of the clients' seconds")
    relax: NotNegative = Field(0.05, description="Δ: increase of that quantile by the pacer")
    clip: Part = Field(0.95, description="quantile at which statistical utilities are clipped")

    needs = frozenset({"delays", "work_losses"})
    unbiased = False
    intermittent = True
    memory = ("utility", "last", "achieved", "paces")
    grid = {
        "explore_least": (0.0, 0.5, "linear"),
        "penalty": (0.5, 5.0, "log"),
        "pace": (0.3, 0.95, "linear"),
    }

    _utility: Array  # U, shape (runs, n)
    _last: Ints  # L, counted from 1; 0 if unexplored
    _achieved: Array  # Σ U over the participants of each of the last 2W rounds, shape (runs, 2W)
    _paces: Array  # quantile that defines T, shape (runs,)

    def prepare(self, setup: Setup) -> None:
        """Mark all clients as unexplored."""
        shape = (setup.runs, len(setup.p))
        self._utility = np.zeros(shape)
        self._last = np.zeros(shape, np.int64)
        self._achieved = np.zeros((setup.runs, 2 * self.window))
        self._paces = np.full(setup.runs, self.pace)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw (1 − ε) m explored clients by utility, and ε m unexplored clients by speed."""
        n, R, offered = len(view.p), view.round + 1, view.offered
        m = min(self.m, len(offered))
        max_unexplored = int(m * max(self.explore * self.decay**view.round, self.explore_least))
        seconds = view.observed["delays"]
        is_explored = (self._last > 0)[:, offered]
        odds = np.zeros((2, view.runs, n))  # relative probabilities: explored, unexplored
        count = np.zeros((2, view.runs), np.int64)
        for run in range(view.runs):
            explored, unexplored = offered[is_explored[run]], offered[~is_explored[run]]
            k = max(min(m - max_unexplored, len(explored)), m - len(unexplored))
            count[:, run] = k, m - k
            odds[1, run, unexplored] = 1 / seconds[unexplored]
            if k:
                pace = self._paces[run]
                T = np.quantile(seconds, pace) if pace < 1 else np.inf
                util = utilities(
                    self._utility[run, explored],
                    system_utility(seconds[explored], float(T), self.penalty),
                    self._last[run, explored],
                    R,
                    self.clip,
                )
                odds[0, run, explored] = np.where(admitted(util, k, self.cutoff), util, 0.0)
        return Slots.stack([np.concatenate(parts) for parts in _drawn(odds, count, m, rng)])

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i over the sum of the selected p; update the utilities, and T every W rounds."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0, posinf=0)
        utility = statistical_utility(view.n_samples[slots.client], loss)
        self._utility[slots.run, slots.client] = utility
        self._last[slots.run, slots.client] = view.round + 1
        self._achieved = np.roll(self._achieved, -1, axis=1)
        self._achieved[:, -1] = np.bincount(slots.run, utility, view.runs)
        R, W = view.round + 1, self.window
        if R >= 2 * W and R % W == 0:
            falls = self._achieved[:, :W].sum(1) > self._achieved[:, W:].sum(1)
            self._paces = np.where(falls, np.minimum(self._paces + self.relax, 1.0), self._paces)
        return normalised_importances(slots, view)


# Oort as its authors implement it in FedScale, which differs from the paper's Algorithm 1.

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
    explore: Part = Field(0.9, description="exploration_factor: fraction of unexplored clients")
    decay: Part = Field(0.98, description="exploration_decay: factor on it in each round")
    explore_least: NotNegative = Field(0.3, description="exploration_min")
    cutoff: Part = Field(0.05, description="cut_off_util: fraction of the cut-off utility")
    penalty: NotNegative = Field(2.0, description="round_penalty: exponent for slow clients")
    window: Positive = Field(20, description="pacer_step: rounds between actions of the pacer")
    pace: float = Field(30.0, gt=0, le=100, description="round_threshold: percentile that T is at")
    relax: NotNegative = Field(5.0, description="pacer_delta: percentiles that T moves by")
    clip: Part = Field(0.9, description="clip_bound: quantile at which utilities are clipped")
    sample_window: float = Field(
        5.0, ge=1, description="unexplored clients considered, for each one that is drawn"
    )

    needs = frozenset({"delays", "work_losses"})
    unbiased = False
    intermittent = True
    memory = ("reward", "last", "achieved", "paces", "exploited")
    grid = {
        "explore_least": (0.1, 0.5, "linear"),
        "cutoff": (0.05, 0.95, "linear"),
        "pace": (20.0, 95.0, "linear"),
    }

    _reward: Array  # statistical utility; number of samples if unexplored, shape (runs, n)
    _last: Ints  # round of the last participation, counted from 1; 0 if unexplored
    _achieved: Array  # mean utility of the exploited clients in the last 2 W rounds
    _paces: Array  # percentile that defines T, shape (runs,)
    _exploited: Bools  # clients of the last exploitation, shape (runs, n)

    def prepare(self, setup: Setup) -> None:
        """Register all clients as unexplored."""
        shape = (setup.runs, len(setup.p))
        self._reward = np.tile(setup.n_samples.astype(np.float64), (setup.runs, 1))
        self._last = np.zeros(shape, np.int64)
        self._achieved = np.zeros((setup.runs, 2 * self.window))
        self._paces = np.full(setup.runs, self.pace)
        self._exploited = np.zeros(shape, np.bool_)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw explored clients by utility, and fill up with unexplored clients."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        epsilon = max(self.explore * self.decay ** (view.round + 1), self.explore_least)
        seconds = view.observed["delays"]
        self._exploited = np.zeros((view.runs, n), np.bool_)
        odds = np.zeros((2, view.runs, n))  # relative probabilities: explored, unexplored
        count = np.zeros((2, view.runs), np.int64)
        for run in range(view.runs):
            T = preferred_duration(seconds, self._paces[run])
            is_explored = self._last[run, offered] > 0
            explored, unexplored = offered[is_explored], offered[~is_explored]
            k = max(min(m - int(m * epsilon), len(explored)), m - len(unexplored))
            count[:, run] = k, m - k
            if k:
                utility = self._utility(run, explored, offered, view.round + 1)
                score = np.abs(slowed(utility, seconds[explored], T, self.penalty))
                odds[0, run, explored] = np.where(pool(score, k, self.cutoff), score + 1e-12, 0.0)
            if m > k:
                value = slowed(self._reward[run, unexplored], seconds[unexplored], T, self.penalty)
                best = np.argsort(-value, kind="stable")[: int(self.sample_window * (m - k))]
                odds[1, run, unexplored[best]] = value[best] + 1e-12
        drawn = _drawn(odds, count, m, rng)
        for run, (exploited, _) in enumerate(drawn):
            self._exploited[run, exploited] = True
        return Slots.stack([np.concatenate(parts) for parts in drawn])

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i over the sum of the selected p; update the utilities and the pacer."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0, posinf=0)
        reward = statistical_utility(view.n_samples[slots.client], loss)
        self._reward[slots.run, slots.client] = reward
        self._last[slots.run, slots.client] = view.round + 1
        exploited = self._exploited[slots.run, slots.client]
        total = np.bincount(slots.run, reward * exploited, view.runs)
        self._achieved = np.roll(self._achieved, -1, axis=1)
        self._achieved[:, -1] = total / (np.bincount(slots.run, exploited, view.runs) + 1e-4)
        self._move_pace(view.round + 1)
        return normalised_importances(slots, view)

    def _utility(self, run: int, explored: Ints, offered: Ints, round: int) -> Array:
        """Compute the utilities of the explored clients: scaled reward and uncertainty."""
        rewards = self._reward[run]
        positive = rewards[offered][rewards[offered] > 0]
        share = scaled(rewards[explored], positive if len(positive) else np.zeros(1), self.clip)
        utility: Array = share + np.sqrt(UNCERTAINTY * np.log(round) / self._last[run, explored])
        return utility

    def _move_pace(self, round: int) -> None:
        """Move T up if the exploited utility stays, and down if it changes fivefold."""
        W = self.window
        if round < 2 * W or round % W:
            return
        before, now = self._achieved[:, :W].sum(1), self._achieved[:, W:].sum(1)
        change = np.abs(now - before)
        up, down = change <= SMALL_CHANGE * before, change >= LARGE_CHANGE * before
        raised = np.minimum(self._paces + self.relax, 100.0)
        lowered = np.maximum(self._paces - self.relax, self.relax)
        self._paces = np.where(up, raised, np.where(down, lowered, self._paces))
