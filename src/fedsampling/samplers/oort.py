"""Oort: selects clients by expected learning progress and speed, and explores new clients.

A client's *statistical utility* is computed from its losses.  Its *system utility* is reduced if it
takes longer than a round should last, T.  Some clients that have taken part before are drawn by the
product of both utilities (exploitation), the others by speed (exploration).

References
----------
Lai, Zhu, Madhyastha, Chowdhury: Oort: Efficient Federated Learning via Guided Participant
Selection. OSDI 2021 (arXiv 2010.06081), section 4, equations (1) and (2), Algorithm 1.  The
authors' code, which differs from Algorithm 1, is :mod:`fedsampling.samplers.oort_fedscale`.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import NotNegative, Positive, Proportion, Share
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import candidates
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances

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


def drawn_parts(odds: Array, count: Ints, m: int, rng: Draws) -> list[tuple[Ints, Ints]]:
    """Draw each run's explored and unexplored clients.

    `odds`, shape (2, runs, n): relative probabilities. `count`, shape (2, runs): at most m.
    """
    n = odds.shape[2]
    explored = candidates(odds[0], m, rng.uniforms("clients", n))
    unexplored = candidates(odds[1], m, rng.uniforms("explore", n))
    return [(explored[run, :k], unexplored[run, :rest]) for run, (k, rest) in enumerate(count.T)]


@dataclass
class OortState:
    """What Oort remembers of each client, and its pacer of the last rounds."""

    utility: Array  # U, shape (runs, n)
    last: Ints  # L, counted from 1; 0 if unexplored, shape (runs, n)
    achieved: Array  # Σ U over the participants of each of the last 2W rounds, shape (runs, 2W)
    paces: Array  # quantile that defines T, shape (runs,)


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
    explore: Proportion = Field(
        default=0.9, description="ε in the first round: fraction of unexplored clients"
    )
    decay: Proportion = Field(default=0.98, description="factor on ε in each round")
    explore_least: float = Field(
        ge=0, le=1, allow_inf_nan=False, default=0.2, description="smallest value of ε"
    )
    cutoff: Proportion = Field(
        default=0.95, description="c: fraction of the k-th utility that admits a client"
    )
    penalty: NotNegative = Field(
        default=2.0, description="α: penalty exponent of clients slower than T"
    )
    window: Positive = Field(default=20, description="W: rounds between actions of the pacer")
    pace: Share = Field(default=0.3, description="initial T, as a quantile of the clients' seconds")
    relax: NotNegative = Field(
        default=0.05, description="Δ: increase of that quantile by the pacer"
    )
    clip: Proportion = Field(
        default=0.95, description="quantile at which statistical utilities are clipped"
    )

    needs = frozenset({"delays", "work_losses"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {
        "explore_least": (0.0, 0.5, "linear"),
        "penalty": (0.5, 5.0, "log"),
        "pace": (0.3, 0.95, "linear"),
    }

    def initial_state(self, setup: Setup) -> OortState:
        """Mark all clients as unexplored."""
        shape = (setup.runs, len(setup.p))
        return OortState(
            utility=np.zeros(shape),
            last=np.zeros(shape, np.int64),
            achieved=np.zeros((setup.runs, 2 * self.window)),
            paces=np.full(setup.runs, self.pace),
        )

    def select(self, state: OortState, view: View, rng: Draws) -> Slots:
        """Draw (1 − ε) m explored clients by utility, and ε m unexplored clients by speed."""
        n, R, offered = len(view.p), view.round + 1, view.offered
        m = min(self.m, len(offered))
        max_unexplored = int(m * max(self.explore * self.decay**view.round, self.explore_least))
        seconds = view.observed["delays"]
        is_explored = (state.last > 0)[:, offered]
        odds = np.zeros((2, view.runs, n))  # relative probabilities: explored, unexplored
        count = np.zeros((2, view.runs), np.int64)
        for run in range(view.runs):
            explored, unexplored = offered[is_explored[run]], offered[~is_explored[run]]
            k = max(min(m - max_unexplored, len(explored)), m - len(unexplored))
            count[:, run] = k, m - k
            odds[1, run, unexplored] = 1 / seconds[unexplored]
            if k:
                pace = state.paces[run]
                T = np.quantile(seconds, pace) if pace < 1 else np.inf
                util = utilities(
                    state.utility[run, explored],
                    system_utility(seconds[explored], float(T), self.penalty),
                    state.last[run, explored],
                    R,
                    self.clip,
                )
                odds[0, run, explored] = np.where(admitted(util, k, self.cutoff), util, 0.0)
        return Slots.stack([np.concatenate(parts) for parts in drawn_parts(odds, count, m, rng)])

    def weigh(self, state: OortState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)

    def learn(self, state: OortState, slots: Slots, view: View) -> OortState:
        """Update the participants' utilities, and T every W rounds."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0, posinf=0)
        utility = statistical_utility(view.n_samples[slots.client], loss)
        state.utility[slots.run, slots.client] = utility
        state.last[slots.run, slots.client] = view.round + 1
        state.achieved = np.roll(state.achieved, -1, axis=1)
        state.achieved[:, -1] = np.bincount(slots.run, utility, view.runs)
        R, W = view.round + 1, self.window
        if R >= 2 * W and R % W == 0:
            falls = state.achieved[:, :W].sum(1) > state.achieved[:, W:].sum(1)
            state.paces = np.where(falls, np.minimum(state.paces + self.relax, 1.0), state.paces)
        return state
