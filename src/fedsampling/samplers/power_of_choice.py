"""Power-of-Choice: of some random candidates, the clients with the largest losses.

The module implements π_pow-d, whose candidates compute their losses; π_cpow-d, whose candidates
estimate them on a mini-batch; and π_rpow-d, which uses losses that clients reported earlier.

References
----------
Cho, Wang, Joshi: Towards Understanding Biased Client Selection in Federated Learning. AISTATS 2022
(arXiv 2010.01243).
Goetz, Malik, Bui, Moon, Liu, Kumar: Active Federated Learning. arXiv 1909.12641, 2019, section 2
and Algorithm 1.  Neither its text nor the authors' code was available; our code agrees with the
AFL servers of Plato and other simulators on α1, α2, α3, softmax, and rounding (1 − α3) m down.
"""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field, ValidationInfo

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import NotNegative, Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Scheme, Setup, Slots, View, normalised_importances


def _at_least_m(d: int, info: ValidationInfo) -> int:
    m = info.data.get("m", d)
    if d < m:
        raise ValueError(f"{d} candidates are fewer than the {m} clients; give at least {m}")
    return d


Candidates = Annotated[
    Positive, Field(description="number of candidates, at least m"), AfterValidator(_at_least_m)
]


def candidates(p: Array, d: int, u: Array) -> Ints:
    """Draw d distinct clients one after another, each with probability proportional to p.

    Parameters
    ----------
    p : float array, shape (n,) or (runs, n)
        Relative probabilities; at least d of them positive.
    u : float array, shape (runs, n)
        Uniform on [0, 1), one variate for each client.

    Returns
    -------
    int array, shape (runs, d)
        In the order of the draws.

    Notes
    -----
    Clocks that ring after exponential times with rates p_i ring in this order.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        clocks = -np.log1p(-u) / p
    clocks[np.broadcast_to(p == 0, u.shape)] = np.inf
    drawn: Ints = np.argsort(clocks, axis=1, kind="stable")[:, :d]
    return drawn


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
    d: Candidates

    needs = frozenset({"losses"})
    unbiased = False
    intermittent = True
    counts = ("m", "d")
    grid = {"d": (6, 15, "integer")}

    _candidates: Bools

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw the candidates, and select the clients with the largest losses."""
        clients = _draw_candidates(self.d, view, rng)
        self._candidates = np.zeros((view.runs, len(view.p)), np.bool_)
        np.put_along_axis(self._candidates, clients, True, axis=1)
        (losses,) = self.needs
        return Slots.stack(largest_losses(clients, view.observed[losses], self.m))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each selected client."""
        return np.full(len(slots), view.runs / len(slots))

    def asked(self) -> Bools:
        """Return the candidates, which had to compute their losses, shape (runs, n)."""
        return self._candidates


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
    d: Candidates

    needs = frozenset({"work_losses"})
    unbiased = False
    intermittent = True
    counts = ("m", "d")
    memory = ("last",)
    grid = {"d": (6, 15, "integer")}

    _last: Array  # loss that each client last reported, shape (runs, n)

    def prepare(self, setup: Setup) -> None:
        """Mark all losses as unknown."""
        self._last = np.full((setup.runs, len(setup.p)), np.inf)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw the candidates, and select the clients with the largest reported losses."""
        drawn = _draw_candidates(self.d, view, rng)
        return Slots.stack(largest_losses(drawn, self._last, self.m))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/m for each selected client, and store the clients' losses."""
        self._last[slots.run, slots.client] = view.observed["work_losses"]
        return np.full(len(slots), view.runs / len(slots))


def _draw_candidates(d: int, view: View, rng: Draws) -> Ints:
    """Draw d candidates of each run, or all clients with p > 0 if fewer, shape (runs, ≤ d)."""
    d = min(d, int((view.p > 0).sum()))
    return candidates(view.p, d, rng.uniforms("clients", len(view.p)))


# Active federated learning: clients are drawn by the losses that they last reported.


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
        0.75, ge=0, lt=1, description="α1: fraction of clients left out, those of lowest value"
    )
    temperature: NotNegative = Field(0.01, description="α2: exponent of the valuation")
    uniform: float = Field(0.1, ge=0, le=1, description="α3: fraction of m drawn uniformly")

    needs = frozenset({"work_losses"})
    unbiased = False
    intermittent = True
    memory = ("values",)
    grid = {
        "least": (0.0, 0.9, "linear"),
        "temperature": (0.01, 10.0, "log"),
        "uniform": (0.0, 0.5, "linear"),
    }

    _values: Array  # v_k, shape (runs, n)

    def prepare(self, setup: Setup) -> None:
        """Mark all valuations as unknown."""
        self._values = np.full((setup.runs, len(setup.p)), np.inf)

    def select(self, view: View, rng: Draws) -> Slots:
        """Draw ⌊(1 − α3) m⌋ clients by valuation, and the remaining clients uniformly."""
        n, offered = len(view.p), view.offered
        m = min(self.m, len(offered))
        u_value, u_explore = rng.uniforms("clients", n), rng.uniforms("explore", n)
        chosen = []
        for run in range(view.runs):
            relative = np.zeros(n)
            relative[offered] = odds(self._values[run, offered], self.least, self.temperature)
            count = min(int((1 - self.uniform) * m), int((relative > 0).sum()))
            by_value = candidates(relative, count, u_value[run : run + 1])[0]
            remaining = np.delete(offered, np.searchsorted(offered, by_value))
            order = np.argsort(u_explore[run, remaining], kind="stable")
            uniformly = remaining[order[: m - count]]
            chosen.append(np.concatenate([by_value, uniformly]))
        return Slots.stack(chosen)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return p_i divided by the sum over the selected clients, and store their valuations."""
        # The losses of a run that diverges may be anything; they must not stop the other runs.
        loss = np.nan_to_num(view.observed["work_losses"], nan=0.0, posinf=0.0)
        self._values[slots.run, slots.client] = valuation(view.n_samples[slots.client], loss)
        return normalised_importances(slots, view)
