"""Importance sampling of agents and of their data: the ISFedAvg scheme of rizk2022importance.

First the sampling scheme of Hartley and Rao, which meets given inclusion probabilities exactly;
then the optimal probabilities and their two approximations; last the scheme itself, with what it
remembers between rounds.  Symbols as in the paper: K agents, L of them active, agent k with N_k
samples, mini-batches of B_k, E_k epochs; p_k and p_n^(k) are *normalised* inclusion
probabilities.

References
----------
Rizk, Vlaski, Sayed: Federated Learning under Importance Sampling. IEEE TSP 2022, section IV.
Hartley, Rao: Sampling with unequal probabilities and without replacement. Ann. Math. Stat. 1962.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Array, Batch, Bools, DataScheme, Ints, Setup, Slots, View

BITS = 40
UNIT = 1 << BITS  # of the progressive totals

NEEDS = {
    ("optimal", "optimum"): frozenset({"optimum"}),
    ("optimal", "estimated"): frozenset({"optimum"}),
    ("approximate", "optimum"): frozenset({"optimum", "client_gradients", "sample_norms"}),
    ("approximate", "estimated"): frozenset({"client_gradients", "mean_norms", "sample_norms"}),
    ("tracked", "optimum"): frozenset({"optimum", "batch_gradients"}),
    ("tracked", "estimated"): frozenset({"batch_gradients"}),
}


def hartley_rao(inclusion: Array, rng: np.random.Generator) -> Ints:
    """Draw without replacement so that unit k is included with probability ``inclusion[k]``.

    Systematic sampling along the progressive totals Π_k: with one uniform variate d, choose the
    units with Π_{k-1} ≤ d + l < Π_k for some l = 0, 1, …, L − 1 (end of section IV-C).  The order
    of the units is kept as it is; Hartley and Rao shuffle it first, which the paper leaves out
    (`rng.permutation` before the call does it; inclusion probabilities are the same, joint ones
    are not).

    Parameters
    ----------
    inclusion : float array, shape (n,)
        In [0, 1]; sums to an integer L.
    rng : numpy.random.Generator
        One uniform variate is drawn.

    Returns
    -------
    int array, shape (L,)
        Ascending indices.

    Raises
    ------
    InputError
        If a probability lies outside [0, 1] or their sum is no integer.
    """
    pi = np.asarray(inclusion, dtype=np.float64)
    if not ((pi >= 0) & (pi <= 1 + 1e-9)).all():
        raise InputError(
            f"inclusion: {pi.min():.6g} to {pi.max():.6g} leaves [0, 1]; "
            "cap the probabilities with samplers.importance.capped"
        )
    L = round(pi.sum())
    if abs(pi.sum() - L) > 1e-6:
        raise InputError(
            f"inclusion: sums to {pi.sum():.6g}; scale it to an integer number of draws"
        )
    if L == 0:
        return np.empty(0, np.int64)
    totals = progressive_totals(capped(pi, L))  # takes what the sum lacks out of the way
    return np.flatnonzero(chosen(totals, np.float64(rng.random())))


def capped(p: Array, size: Ints | int) -> Array:
    """Inclusion probabilities of `size` draws in proportion to `p`, none above one.

    The paper sets L p_k (and B_k p_n) without saying what happens above one.  Here such units are
    always taken, and the others share what is left in proportion to `p`, again until none exceeds
    one: the solution of the paper's own minimisation under the constraint it omits.

    Parameters
    ----------
    p : float array, shape (..., n)
        Non-negative, in any unit; at least `size` entries positive along the last axis.
    size : int or int array, shape (...)

    Returns
    -------
    float array, shape (..., n)
        In [0, 1]; sums to `size` along the last axis.
    """
    size = np.broadcast_to(size, p.shape[:-1])[..., None]
    pi: Array = p * (size / p.sum(-1, keepdims=True))
    while (over := pi.max(-1) > 1).any():
        full = pi[over] >= 1
        rest = np.where(full, 0.0, p[over])
        left, weight = size[over] - full.sum(-1, keepdims=True), rest.sum(-1, keepdims=True)
        pi[over] = np.where(full, 1.0, rest * (left / np.where(weight > 0, weight, 1.0)))
    return pi


def progressive_totals(pi: Array) -> Ints:
    """Π_k = Σ_{l≤k} π_l along the last axis, in units of 2**-40.

    Sums of integers are exact: the last total is the number of draws, no unit spans more than one
    and a unit of probability zero spans nothing, so that :func:`chosen` always marks as many
    different units as there are draws.

    Parameters
    ----------
    pi : float array, shape (..., n)
        In [0, 1]; sums to an integer, up to rounding.

    Returns
    -------
    int array, shape (..., n)
    """
    # Rounded upwards they sum to the integer at least; what is too much comes off the last ones.
    share = np.multiply(pi, UNIT)
    totals = np.ceil(share, out=share).astype(np.int64)
    np.cumsum(totals, axis=-1, out=totals)
    np.minimum(totals, totals[..., -1:] & -UNIT, out=totals)
    return totals


def chosen(totals: Ints, d: Array | np.float64) -> Bools:
    """Mark the units with Π_{k-1} ≤ d + l < Π_k for an integer l ≥ 0.

    Parameters
    ----------
    totals : int array, shape (..., n)
        Progressive totals of inclusion probabilities, in units of 2**-40.
    d : float array, shape (...)
        In [0, 1).

    Returns
    -------
    bool array, shape (..., n)
    """
    offset = (np.asarray(d) * UNIT).astype(np.int64)[..., None]
    # d + l < Π_k for exactly ceil(Π_k − d) of the integers l ≥ 0; a unit is hit where this grows.
    below = totals + (UNIT - 1 - offset)
    below >>= BITS
    mark = np.empty(below.shape, np.bool_)
    np.greater(below[..., 0], 0, out=mark[..., 0])
    np.not_equal(below[..., 1:], below[..., :-1], out=mark[..., 1:])
    return mark


def in_proportion(scores: Array, member: Bools | None = None) -> Array:
    """p_k = scores_k / Σ_l scores_l.

    Of ‖∇Q_k(w; x_{k,n})‖, an agent's samples, equation (44) at w = w^o and (49) at w = w_{i−1}; of
    :func:`agent_scores` equations (48) and (50).

    Parameters
    ----------
    scores : float array, shape (..., n)
    member : bool array, shape (..., n), optional
        False where an entry is padding.

    Returns
    -------
    float array, shape (..., n)
        Sums to one along the last axis; alike where the scores' sum is zero, or is not finite, as
        in a run that diverges.
    """
    alike = np.ones(scores.shape) if member is None else member.astype(np.float64)
    usable = _divides(total := scores.sum(-1, keepdims=True))
    p: Array = np.where(usable, scores, alike)
    p /= np.where(usable, total, alike.sum(-1, keepdims=True))
    return p


def data_variability(mean_norm: Array, E: Ints, B: Ints) -> Array:
    """σ²_{s,k} of equation (23) under the optimal data probabilities (44).

    With p_n ∝ ‖∇Q_n‖, (1/N²) Σ_n ‖∇Q_n‖²/p_n is the square of the mean norm.

    Parameters
    ----------
    mean_norm : float array, shape (..., K)
        (1/N_k) Σ_n ‖∇Q_k(w; x_{k,n})‖.
    E, B : int array, shape (K,)

    Returns
    -------
    float array, shape (..., K)
    """
    variability: Array = 6 / (E * B) * mean_norm**2
    return variability


def agent_scores(sigma2: Array, gradient: Array, E: Ints, B: Ints) -> Array:
    """√(σ²_{s,k} + α_k ‖∇P_k(w)‖²) with α_k = 3 + 6/(E_k B_k), Lemma 7.

    Parameters
    ----------
    sigma2 : float array, shape (..., K)
    gradient : float array, shape (..., K, M)
        ∇P_k, or its mini-batch estimate.
    E, B : int array, shape (..., K)

    Returns
    -------
    float array, shape (..., K)
        :func:`in_proportion` to them is equation (48) at w^o and (50) at w_{i−1}.
    """
    alpha = 3 + 6 / (E * B)
    scores: Array = np.sqrt(sigma2 + alpha * np.einsum("...m,...m->...", gradient, gradient))
    return scores


def reassign(p: Array, scores: Array, member: Bools | None = None) -> Array:
    """Share the probability of those who were sampled anew, in proportion to their scores.

    Equations (52) and (53): the factor 1 − Σ_{not sampled} p̂ is what the sampled ones held before,
    so a single sampled unit keeps its probability whatever its score.

    Parameters
    ----------
    p, scores : float array, shape (..., sampled)
        Held before, and scores; `p` stays as it is where scores are all zero, or not finite as the
        run diverges.
    member : bool array, shape (..., sampled), optional
        False where an entry is padding.

    Returns
    -------
    float array, shape (..., sampled)
    """
    if member is not None:
        p, scores = np.where(member, p, 0.0), np.where(member, scores, 0.0)
    total = scores.sum(-1, keepdims=True)
    held = p.sum(-1, keepdims=True)
    # Shares first: the probability held, over a total that is hardly above zero, would overflow.
    usable = _divides(total)
    return np.where(usable, held * (scores / np.where(usable, total, 1.0)), p)


def _divides(total: Array) -> Bools:
    """Say where scores may be divided by their sum: it is above zero and finite."""
    found: Bools = (total > 0) & np.isfinite(total)
    return found


class ISFedAvg(DataScheme, name="isfedavg"):
    """Importance sampling of agents and data.

    Algorithm 1 with the probabilities of the curves in Figure 1:

    ``optimal``
        Equations (44) and (48), from the gradients at the minimiser w^o; fixed.
    ``approximate``
        Equations (49) and (50), from all gradients of all agents at the current model.
    ``tracked``
        Equations (52) and (53), from what was sampled; all start uniform.

    σ²_{s,k} in equations (50) and (52) is printed without a hat: ``optimum`` takes (23) at w^o as
    it is defined, though no server has it; ``estimated`` takes it at the current model, in (52)
    from the sampled batches.
    """

    m: Positive = Field(description="L")
    probabilities: Literal["optimal", "approximate", "tracked"]
    variability: Literal["optimum", "estimated"] = Field(
        "optimum", description="σ²_s,k in equations (50), (52): at w^o, or from what is sampled"
    )

    memory = ("p_agents", "p_data")  # of which the tracked ones depend on all rounds so far

    _E: Ints
    _B: Ints
    _N: Ints
    _sigma2: Array | None
    _p_agents: Array
    _p_data: Array
    _pi: Array
    _totals: Ints
    _row: Ints  # where `_pi` and `_totals` have a client's data: its own row, or its slot's

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """What the probabilities are computed from."""
        return NEEDS[self.probabilities, self.variability]

    def prepare(self, setup: Setup) -> None:
        """Set the probabilities of the first round.

        Raises
        ------
        InputError
            If agents differ in importance, for equation (1) weighs them alike.
        """
        if np.ptp(setup.p) > 1e-12:
            raise InputError(
                "sampler.name: isfedavg takes all agents as equally important, but these are not; "
                "give a dataset with equal importances"
            )
        E, B, N, optimum = setup.E, setup.B, setup.n_samples, setup.optimum
        self._E, self._B, self._N = E, B, N
        self._sigma2 = None
        if self.variability == "optimum":
            self._sigma2 = data_variability(optimum["mean_norm"], E, B)
        K = len(N)
        samples = np.arange(N.max()) < N[:, None]
        self._p_agents = np.full((setup.runs, K), 1 / K)
        self._p_data = samples / N[:, None]
        self._row = np.tile(np.arange(K), (setup.runs, 1))
        if self.probabilities == "optimal":
            sigma2 = data_variability(optimum["mean_norm"], E, B)
            scores = agent_scores(sigma2, optimum["gradient"], E, B)
            self._p_agents[:] = in_proportion(scores)
            self._p_data = in_proportion(optimum["sample_norms"], samples)
            self._pi = capped(self._p_data, B)
            self._totals = progressive_totals(self._pi)
        elif self.probabilities == "tracked":
            self._p_data = np.repeat(self._p_data[None], setup.runs, axis=0)

    def select(self, view: View, rng: Draws) -> Slots:
        """Sample L agents without replacement, with inclusion probabilities L p_k."""
        if self.probabilities == "approximate":  # equation (50)
            sigma2 = self._sigma2
            if sigma2 is None:
                sigma2 = data_variability(view.observed["mean_norms"], self._E, self._B)
            scores = agent_scores(sigma2, view.observed["client_gradients"], self._E, self._B)
            self._p_agents = in_proportion(scores)
        pi = capped(self._p_agents, self.m)
        run, client = np.nonzero(chosen(progressive_totals(pi), rng.uniform("agents")))
        K = len(self._N)
        return Slots(run, client, self.m / (K * pi[run, client]))  # 1/(K p_k), equation (8)

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """1/L each: equation (9); 1/(K p_k) is already in the local step."""
        return np.full(len(slots), 1 / self.m)

    def saw_samples(self, slots: Slots, norms: Array) -> None:
        """Take the data probabilities (49) of this round.

        Parameters
        ----------
        norms : float array, shape (slots, N_max)
            ‖∇Q_k(w_{i−1}; x_{k,n})‖ of all samples of each slot's client.
        """
        samples = self._p_data[slots.client] > 0
        self._pi = capped(in_proportion(norms, samples), self._B[slots.client])
        self._totals = progressive_totals(self._pi)
        self._row[slots.run, slots.client] = np.arange(len(slots))

    def batch(self, slots: Slots, d: Array) -> Batch:
        """Sample B_k of a client's N_k points without replacement, inclusion B_k p_n.

        Parameters
        ----------
        d : float array, shape (slots,)
            The uniform variates.

        Returns
        -------
        Batch
            Weights 1/(B_k N_k p_n), equation (7).
        """
        k, B = slots.client, self._B[slots.client]
        if self.probabilities == "tracked":
            row, pi = np.arange(len(slots)), capped(self._p_data[slots.run, k], B)
            totals = progressive_totals(pi)
        else:
            row, pi = self._row[slots.run, k], self._pi
            totals = self._totals.take(row, axis=0)
        drawn = np.flatnonzero(chosen(totals, d))  # B_k of each slot, slot after slot
        slot = np.repeat(np.arange(len(slots)), B)
        n = drawn - slot * pi.shape[1]
        member = np.arange(self._B.max()) < B[:, None]
        index = np.zeros(member.shape, np.int64)
        weight = np.zeros(member.shape)
        index[member] = n
        weight[member] = 1 / (self._N[k][slot] * pi[row[slot], n])
        return Batch(index, weight)

    def saw_batch(self, slots: Slots, batch: Batch, norms: Array) -> None:
        """Track the data probabilities of what was sampled, equation (53).

        Parameters
        ----------
        norms : float array, shape (slots, B)
            ‖∇Q_k(w_{i−1}; x_b)‖ of the batch.
        """
        member = batch.weight > 0
        _, K, N = self._p_data.shape
        where = ((slots.run * K + slots.client) * N)[:, None] + batch.index
        p = self._p_data.reshape(-1)  # a view
        new = reassign(p.take(where), norms, member)
        p[where[member]] = new[member]

    def saw_round(self, slots: Slots, observed: Mapping[str, Any]) -> None:
        """Track the agents' probabilities, equation (52).

        Parameters
        ----------
        observed : mapping
            ``gradient`` (slots, M): the estimate (7) at w_{i−1}; ``sigma2`` (slots,): equation (23)
            estimated from the same batches, since w^o and unsampled gradients are unknown.
        """
        E, B = self._E[slots.client], self._B[slots.client]
        sigma2 = observed["sigma2"] if self._sigma2 is None else self._sigma2[slots.client]
        scores = agent_scores(sigma2, observed["gradient"], E, B)
        by_run = (len(self._p_agents), self.m)
        rows, clients = slots.run.reshape(by_run), slots.client.reshape(by_run)
        self._p_agents[rows, clients] = reassign(
            self._p_agents[rows, clients], scores.reshape(by_run)
        )
