"""OSMD: online stochastic mirror descent on the sampling probabilities, from participants' norms.

References
----------
Zhao, Wang, Liu, Zhang, Zhou, Chen, Kolar: Adaptive Client Sampling in Federated Learning via Online
Learning with Bandit Feedback. 2021 (arXiv 2112.14332).  Only the abstract was available as text;
this module follows the authors' code, github.com/boxinz17/FL-Client-Sampling at commit 8d12ac3,
``Synthetic/algorithms.py`` and ``Real_Data/algorithms_cv.py``.
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array
from fedsampling.base.records import Positive, PositiveFloat, Proportion
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import invert
from fedsampling.samplers.protocol.slots import Duplicates, Setup, Slots, View


def mirror_step(p: Array, gradient: Array, eta: float, alpha: float) -> Array:
    """Take one step of mirror descent with the entropy as mirror map.

    Parameters
    ----------
    p : float array, shape (M,)
        Positive probabilities with sum one.
    gradient : float array, shape (M,)
        Of the estimated variance with respect to p.
    eta : float
        η, the learning rate.
    alpha : float
        α in (0, 1]: no probability falls below α/M.

    Returns
    -------
    float array, shape (M,)
        The projection of p exp(−η gradient), which minimises the Kullback-Leibler divergence to it
        over the probabilities of at least α/M.
    """
    M = len(p)
    log_p = np.log(p) - eta * gradient
    return project(np.exp(log_p - log_p.max()), alpha / M)


def project(p: Array, floor: float) -> Array:
    """Project positive numbers onto the probabilities of at least `floor`, by KL divergence.

    The result is max(floor, c p), where c makes the sum one.
    """
    order = np.argsort(p, kind="stable")
    above = np.cumsum(p[order][::-1])[::-1]  # sum of the entries from the m-th smallest on
    c = (1 - floor * np.arange(len(p))) / above  # if the m smallest entries are at the floor
    is_valid = c * p[order] >= floor
    is_valid[-1] = True  # up to rounding, as M floor ≤ 1
    projected: Array = np.maximum(floor, c[is_valid.argmax()] * p)
    projected /= projected.sum()
    return projected


def variance_gradient(p: Array, a: Array, K: int) -> Array:
    """Estimate the gradient of the variance l(p) = Σ_m a_m/(K p_m), with a_m = λ_m² ‖g_m‖².

    Parameters
    ----------
    p : float array, shape (M,)
        Probabilities of the K draws.
    a : float array, shape (M,)
        a_m times the number of draws of client m.

    Returns
    -------
    float array, shape (M,)
        −a_m/(K² p_m³); its expectation is the gradient, as client m is drawn K p_m times.
    """
    gradient: Array = -a / (K**2 * p**3)
    return gradient


@dataclass
class OSMDState:
    """The sampling probabilities, those of the round, and the largest first feedback."""

    p: Array  # among all clients, shape (runs, n)
    q: Array  # among the available clients, shape (runs, n)
    largest: Array  # ā, shape (runs,); zero until the first feedback


class OSMD(Scheme, name="osmd", title="Online stochastic mirror descent (OSMD)", short="OSMD"):
    """m draws with replacement; mirror descent raises the probabilities of large updates.

    The feedback of a participant is a = λ² ‖U‖², its squared importance times that of its update's
    norm.

    The step is η = ``eta`` K² α³/(M³ ā), the form of the authors' learning rates: the exponent of a
    client with feedback ā, drawn once, is then at most ``eta``.  The authors compute ā, the largest
    feedback, from gradients of all clients before the first round; here it is the largest feedback
    of the first round, which samples uniformly.  Their code runs up to ten learning rates, which
    depend on the number of rounds, and mixes their probabilities; here tuning chooses one.  It
    counts a client that is drawn twice once in the feedback; as l(p)'s estimate requires, we count
    it twice.  Unavailable clients keep their probabilities.

    References
    ----------
    Zhao et al. 2021, the authors' code with its α = 0.4: ``OMD_solver`` and ``lr_set_fun``.
    """

    m: Positive = Field(description="K: draws in each round")
    eta: PositiveFloat = Field(default=1.0, description="η, in units of K² α³/(M³ ā)")
    alpha: Proportion = Field(default=0.4, description="α: all probabilities are at least α/M")
    duplicates: Duplicates = "independently"

    needs = frozenset({"update_norms"})
    intermittent = True
    grid = {"eta": (0.1, 10.0, "log"), "alpha": (0.1, 0.8, "linear")}

    def initial_state(self, setup: Setup) -> OSMDState:
        """Start from equal probabilities."""
        M = len(setup.p)
        p = np.full((setup.runs, M), 1 / M)
        return OSMDState(p, p.copy(), np.zeros(setup.runs))

    def begin(self, state: OSMDState, view: View, rng: Draws) -> OSMDState:
        """Restrict the probabilities to the available clients."""
        state.q = np.zeros_like(state.p)
        state.q[:, view.offered] = state.p[:, view.offered]
        state.q /= state.q.sum(1, keepdims=True)
        return state

    def select(self, state: OSMDState, view: View, rng: Draws) -> Slots:
        """Draw m clients in each run."""
        u = rng.uniforms("clients", self.m)
        drawn = [invert(q, u_run) for q, u_run in zip(state.q, u, strict=True)]
        return Slots.drawn(np.stack(drawn), self.duplicates)

    def weigh(self, state: OSMDState, slots: Slots, view: View, rng: Draws) -> Array:
        """Return λ_m/(K p_m) for each draw."""
        q = state.q[slots.run, slots.client]
        return view.p[slots.client] * slots.times / (self.m * q)

    def learn(self, state: OSMDState, slots: Slots, view: View) -> OSMDState:
        """Take a mirror step by the participants' feedback."""
        norms = view.observed["update_norms"]
        # Norms of runs that diverge carry no information.
        a = np.square(view.p[slots.client] * np.where(np.isfinite(norms), norms, 0.0))
        offered, M, K = view.offered, len(view.offered), self.m
        for run in range(view.runs):
            in_run = slots.run == run
            if state.largest[run] == 0:
                state.largest[run] = a[in_run].max(initial=0.0)
                if state.largest[run] == 0:
                    continue
            eta = self.eta * K**2 * self.alpha**3 / (M**3 * state.largest[run])
            total = np.zeros(len(view.p))
            np.add.at(total, slots.client[in_run], (a * slots.times)[in_run])
            q = state.q[run, offered]
            gradient = variance_gradient(q, total[offered], K)
            share = state.p[run, offered].sum()
            state.p[run, offered] = share * mirror_step(q, gradient, eta, self.alpha)
        return state
