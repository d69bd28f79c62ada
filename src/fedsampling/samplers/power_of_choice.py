"""Power-of-Choice: of some random candidates, the clients with the largest losses.

The module implements π_pow-d, whose candidates compute their losses; π_cpow-d, whose candidates
estimate them on a mini-batch; and π_rpow-d, which uses losses that clients reported earlier.

References
----------
Cho, Wang, Joshi: Towards Understanding Biased Client Selection in Federated Learning. AISTATS 2022
(arXiv 2010.01243).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import candidates
from fedsampling.samplers.protocol.slots import Setup, Slots, View, averages


def _at_least_m(d: int, info: ValidationInfo) -> int:
    m = info.data.get("m", d)
    if d < m:
        raise ValueError(f"{d} candidates are fewer than the {m} clients; give at least {m}")
    return d


CandidateCount = Annotated[
    Positive, Field(description="number of candidates, at least m"), AfterValidator(_at_least_m)
]


def largest_losses(clients: Ints, losses: Array, m: int) -> Ints:
    """Select the m candidates with the largest losses; ties go to the candidate drawn first.

    Parameters
    ----------
    clients : int array, shape (runs, d)
    losses : float array, shape (runs, n)
        NaN counts as the largest loss: this run has diverged.

    Returns
    -------
    int array, shape (runs, m)
    """
    candidate_losses = np.nan_to_num(np.take_along_axis(losses, clients, axis=1), nan=np.inf)
    order = np.argsort(-candidate_losses, axis=1, kind="stable")[:, :m]
    return np.take_along_axis(clients, order, axis=1)


@dataclass
class Candidates:
    """The candidates of the round, shape (runs, ≤ d)."""

    clients: Ints


class PowerOfChoice(
    Scheme,
    name="power_of_choice",
    title="Power-of-Choice (largest losses)",
    short="Power-of-Choice",
):
    """Of d random candidates, the m with the largest losses.

    References
    ----------
    Cho et al. 2022, π_pow-d: candidates are drawn without replacement with probabilities p_k, their
    losses are those of the global model on all training data, and models are averaged with 1/m.
    """

    m: Positive
    d: CandidateCount

    needs = frozenset({"losses"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    counts = ("m", "d")
    grid = {"d": (6, 15, "integer")}

    def initial_state(self, setup: Setup) -> Candidates:
        """Start without candidates."""
        return Candidates(np.zeros((setup.runs, 0), np.int64))

    def begin(self, state: Candidates, view: View, rng: Draws) -> Candidates:
        """Draw the candidates, which compute their losses."""
        return Candidates(_draw_candidates(self.d, view, rng))

    def select(self, state: Candidates, view: View, rng: Draws) -> Slots:
        """Select the candidates with the largest losses."""
        (losses,) = self.needs
        return Slots.stack(largest_losses(state.clients, view.observed[losses], self.m))

    def weigh(self, state: Candidates, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each of the m clients."""
        return averages(slots, view)

    def asked(self, state: Candidates, view: View) -> Bools:
        """Return the candidates, which had to compute their losses, shape (runs, n)."""
        mask = np.zeros((view.runs, len(view.p)), np.bool_)
        np.put_along_axis(mask, state.clients, True, axis=1)
        return mask


class CheapPowerOfChoice(
    PowerOfChoice,
    name="cpow_d",
    title="Power-of-Choice with losses on a mini-batch (cpow-d)",
    short="Power-of-Choice, mini-batch",
):
    """Of d random candidates, the m with the largest losses on one mini-batch.

    The mini-batch is as large as those of local training; each round draws a new one.

    References
    ----------
    Cho et al. 2022, section 4, π_cpow-d: Σ f(w, ξ)/|ξ̂_k| over a mini-batch ξ̂_k of b samples takes
    the place of the loss on all samples.  The paper's text was not available; this class follows an
    excerpt of a public implementation.
    """

    needs = frozenset({"batch_losses"})
    grid = {"d": (6, 15, "integer")}


@dataclass
class LastLosses:
    """The loss that each client last reported, infinite if it never did, shape (runs, n)."""

    losses: Array


class RememberedPowerOfChoice(
    Scheme,
    name="rpow_d",
    title="Power-of-Choice with stale losses (rpow-d)",
    short="Power-of-Choice, stale losses",
):
    """Of d random candidates, the m whose last reported losses are largest.

    A client that trains reports its average loss during local training with its model, so that
    nothing has to be computed before a round.  The losses of clients that were never selected count
    as infinite.

    A deviation: the loss of a slot is the root mean square of its mini-batch losses, not their mean
    as in the paper.

    References
    ----------
    Cho et al. 2022, section 4, π_rpow-d: the accumulated averaged loss over local iterations,
    infinite for clients that were never selected.  No code by the authors was available for
    comparison.
    """

    m: Positive
    d: CandidateCount

    needs = frozenset({"work_losses"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    counts = ("m", "d")
    grid = {"d": (6, 15, "integer")}

    def initial_state(self, setup: Setup) -> LastLosses:
        """Mark all losses as unknown."""
        return LastLosses(np.full((setup.runs, len(setup.p)), np.inf))

    def select(self, state: LastLosses, view: View, rng: Draws) -> Slots:
        """Draw the candidates, and select the clients with the largest reported losses."""
        drawn = _draw_candidates(self.d, view, rng)
        return Slots.stack(largest_losses(drawn, state.losses, self.m))

    def weigh(self, state: LastLosses, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each of the m clients."""
        return averages(slots, view)

    def learn(self, state: LastLosses, slots: Slots, view: View) -> LastLosses:
        """Store the losses that the clients reported."""
        state.losses[slots.run, slots.client] = view.observed["work_losses"]
        return state


def _draw_candidates(d: int, view: View, rng: Draws) -> Ints:
    """Draw d candidates of each run, or all clients with p > 0 if fewer, shape (runs, ≤ d)."""
    d = min(d, int((view.p > 0).sum()))
    return candidates(view.p, d, rng.uniforms("clients", len(view.p)))
