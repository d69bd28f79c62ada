"""F3AST: selects the available clients that have taken part least, relative to their importance.

The server tracks the rate r_k at which each client takes part.  It selects greedily the clients
that reduce the variance Σ p_k²/r_k most, and divides each update by its client's rate, so that
rarely available clients have their full weight in the long run.

References
----------
Ribero, Vikalo, de Veciana: Federated Learning Under Intermittent Client Availability and
Time-Varying Communication Constraints. IEEE Journal of Selected Topics in Signal Processing 2023
(arXiv 2205.06730), Algorithm 1.  The paper's text was not available; the module was compared with
the authors' code (github.com/mriberodiaz/f3ast, utils/training_utils.py), which selects by the same
derivative, updates the rates before it weighs by p_k/r_k, and divides by m, since its rates sum to
one.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View


def greedy(p: Array, rates: Array, m: int, u: Array) -> Ints:
    """Select the m clients with the largest −∂/∂r_k Σ p_k²/r_k = p_k²/r_k².

    Parameters
    ----------
    p, rates : float array, shape (n,)
    u : float array, shape (n,)
        Uniform on [0, 1); breaks ties.

    Returns
    -------
    int array, shape (m,)
    """
    return np.lexsort((u, -((p / rates) ** 2)))[:m]


def tracked(rates: Array, member: Bools, beta: float) -> Array:
    """Compute r_k(t) = (1 − β) r_k(t − 1) + β 1{k ∈ S_t}."""
    return (1 - beta) * rates + beta * member


@dataclass
class Rates:
    """The importances among all clients, shape (n,), and the rates r, shape (runs, n)."""

    p: Array
    r: Array


class F3AST(Scheme, name="f3ast", title="Sampling by participation rates (F3AST)", short="F3AST"):
    """m clients that have taken part least relative to their importance, weighted by 1/rate.

    The weights are unbiased only in the long run, as the rates converge.  The selection is
    deterministic except for ties.

    The paper leaves this choice open: rates start at m/n, as under uniform sampling.  This is an
    option of the authors' code; its default is m p_k, and its β is 0.01.

    References
    ----------
    Ribero et al. 2023, Algorithm 1 for independent clients: H(r) = Σ p_k²/r_k and weights
    p_k/r_k(t), with rates that include this round's selection.
    """

    m: Positive
    beta: Proportion = Field(
        default=0.001, description="β: weight of the current round in the rates"
    )

    unbiased = False
    failure_weights = "own"  # the rates are those of the reports
    intermittent = True
    grid = {"beta": (0.001, 0.3, "log")}

    def initial_state(self, setup: Setup) -> Rates:
        """Start from the rates of uniform sampling."""
        n = len(setup.p)
        return Rates(setup.p, np.full((setup.runs, n), min(self.m, n) / n))

    def select(self, state: Rates, view: View, rng: Draws) -> Slots:
        """Select among the available clients."""
        u = rng.uniforms("clients", len(view.p))
        offered = view.offered
        clients = [
            offered[greedy(state.p[offered], rates[offered], self.m, u_run[offered])]
            for rates, u_run in zip(state.r, u, strict=True)
        ]
        return Slots.stack(clients)

    def weigh(self, state: Rates, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i/r_i, with importances among all clients and rates that include this round."""
        return state.p[slots.client] / self._tracked(state, slots)[slots.run, slots.client]

    def learn(self, state: Rates, slots: Slots, view: View) -> Rates:
        """Update all rates."""
        return Rates(state.p, self._tracked(state, slots))

    def _tracked(self, state: Rates, slots: Slots) -> Array:
        member = np.zeros(state.r.shape, np.bool_)
        member[slots.run, slots.client] = True
        return tracked(state.r, member, self.beta)
