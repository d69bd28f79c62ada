"""Active federated learning: clients are drawn by the losses that they last reported.

References
----------
Goetz, Malik, Bui, Moon, Liu, Kumar: Active Federated Learning. arXiv 1909.12641, 2019, section 2
and Algorithm 1.  Neither its text nor the authors' code was available; our code agrees with the
AFL servers of Plato and other simulators on α1, α2, α3, softmax, and rounding (1 − α3) m down.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import candidates
from fedsampling.samplers.protocol.slots import Setup, Slots, View, normalised_importances


def valuation(samples: Ints, loss: Array) -> Array:
    """Compute v_k = (1/√n_k) Σ l over the client's samples from its mean loss l̄, shape (n,)."""
    return np.sqrt(samples) * loss


def odds(values: Array, excluded: float, temperature: float) -> Array:
    """Turn valuations into relative probabilities: 0 for the smallest, otherwise exp(α2 v_k).

    Parameters
    ----------
    values : float array, shape (n,)
        Valuations v_k; infinite values are unknown and count as the largest known value.
    excluded : float
        α1: fraction of the clients, those with the smallest values, that get probability 0.
    temperature : float
        α2.

    Returns
    -------
    float array, shape (n,)
        Relative to the largest, which is one.
    """
    finite = np.isfinite(values)
    values = np.where(finite, values, values[finite].max() if finite.any() else 0.0)
    relative: Array = np.exp(temperature * (values - values.max()))
    relative[np.argsort(values, kind="stable")[: int(excluded * len(values))]] = 0.0
    return relative


@dataclass
class Valuations:
    """v_k, infinite if client k was never selected, shape (runs, n)."""

    values: Array


class ActiveFL(
    Scheme, name="active_fl", title="Active federated learning (ActiveFL)", short="ActiveFL"
):
    """m clients: most by the losses that they last reported, the others uniformly.

    A client that trains reports its valuation with its model; other valuations stay unchanged.

    The paper leaves these choices open: a client that was never selected gets the largest known
    valuation (in Plato, a relative probability of 0.01); the loss of a client is the root mean
    square of its mini-batch losses during local training, not the loss of the received model;
    updates are averaged by importance; if α1 leaves fewer than m clients, the others are drawn
    uniformly.

    References
    ----------
    Goetz et al. 2019, Algorithm 1, with its α1 = 0.75, α2 = 0.01 and α3 = 0.1.
    """

    m: Positive
    least: float = Field(
        default=0.75,
        ge=0,
        lt=1,
        description="α1: fraction of clients left out, those of lowest value",
    )
    temperature: NotNegative = Field(default=0.01, description="α2: exponent of the valuation")
    uniform: float = Field(default=0.1, ge=0, le=1, description="α3: fraction of m drawn uniformly")

    needs = frozenset({"work_losses"})
    unbiased = False
    failure_weights = "average"
    intermittent = True
    grid = {
        "least": (0.0, 0.9, "linear"),
        "temperature": (0.01, 10.0, "log"),
        "uniform": (0.0, 0.5, "linear"),
    }

    def initial_state(self, setup: Setup) -> Valuations:
        """Mark all valuations as unknown."""
        return Valuations(np.full((setup.runs, len(setup.p)), np.inf))

    def select(self, state: Valuations, view: View, rng: Draws) -> Slots:
        """Draw ⌊(1 − α3) m⌋ clients by valuation, and the remaining clients uniformly."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        u_value, u_explore = rng.uniforms("clients", n), rng.uniforms("explore", n)
        chosen = []
        for run in range(view.runs):
            relative = np.zeros(n)
            relative[offered] = odds(state.values[run, offered], self.least, self.temperature)
            by_valuation = int(round((1 - self.uniform) * m, 9))  # (1 − 0.8) · 5 is below 1
            count = min(by_valuation, int((relative > 0).sum()))
            by_value = candidates(relative, count, u_value[run : run + 1])[0]
            remaining = np.delete(offered, np.searchsorted(offered, by_value))
            order = np.argsort(u_explore[run, remaining], kind="stable")
            uniformly = remaining[order[: m - count]]
            chosen.append(np.concatenate([by_value, uniformly]))
        return Slots.stack(chosen)

    def weigh(self, state: Valuations, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients."""
        return normalised_importances(slots, view)

    def learn(self, state: Valuations, slots: Slots, view: View) -> Valuations:
        """Store the participants' valuations."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0.0, posinf=0.0)
        state.values[slots.run, slots.client] = valuation(view.n_samples[slots.client], loss)
        return state
