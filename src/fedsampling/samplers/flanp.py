"""FLANP: starts with the fastest clients, and adds slower clients as the model improves.

References
----------
Reisizadeh, Tziotis, Hassani, Mokhtari, Pedarsani: Straggler-Resilient Federated Learning:
Leveraging the Interplay Between Statistical Accuracy and System Heterogeneity. IEEE JSAIT 2022
(arXiv 2012.14453).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.records import Positive, PositiveFloat, hashed_if_set
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.slots import Setup, Slots, View


def fastest(delays: Array, n: int) -> Ints:
    """Return the n clients with the shortest delays, ascending; ties are broken by index."""
    return np.sort(np.argsort(delays, kind="stable")[:n])


def statistically_accurate(squared_norm: Array, samples: Array, constant: float) -> Any:
    """Test in which runs the stage ends by the paper's rule ‖∇L_n(w)‖² ≤ 2 μ V_ns, V_ns = c/(n s).

    Parameters
    ----------
    squared_norm : float array, shape (runs,)
        ‖∇L_n‖² of the mean loss of the active clients.
    samples : float array, shape (runs,)
        n s, the number of the active clients' samples.
    constant : float
        2 μ c.  For linear regression with half the squared error, d features and noise of standard
        deviation σ, the excess loss of the least-squares solution from N samples is σ² d/(2 N) on
        average, so that c = σ² d/2 and 2 μ c = μ σ² d; μ is the least eigenvalue of the second
        moment.

    References
    ----------
    Reisizadeh et al. 2022, Algorithm 1 and section III.
    """
    return squared_norm <= constant / samples


def finished(
    squared_norm: Array, reference: Array, active: Ints, first: int, accuracy: float
) -> Any:
    """Test in which runs the active clients' problem is solved to its statistical accuracy.

    The paper's rule is ‖∇L_n(w)‖² ≤ 2 μ V_ns with V_ns = c/(n s), for n active clients with s
    samples each (:func:`statistically_accurate`).  If μ and c are unknown, the rule determines only
    that the threshold decreases as 1/n.  Here the threshold of the first stage is `accuracy` times
    the squared norm at the start, and later thresholds decrease as 1/n.

    Parameters
    ----------
    squared_norm : float array, shape (runs,)
        ‖∇L_n‖² of the mean loss of the active clients.
    reference : float array, shape (runs,)
        ‖∇L_{n_0}‖² at the first model.
    active : int array, shape (runs,)
        n, the number of active clients.
    first : int
        n_0, the number of active clients in the first stage.

    Returns
    -------
    bool array, shape (runs,)
    """
    return squared_norm <= accuracy * reference * first / active


@dataclass
class Stage:
    """The delays, shape (n,), and the present stage of each run, shape (runs,)."""

    delays: Array
    active: Ints  # n
    since: Ints  # rounds since the stage began
    reference: Array  # squared gradient norm at the first model


class Flanp(Scheme, name="flanp", title="Fastest clients first (FLANP)", short="FLANP"):
    """The n fastest clients in every round; n doubles from stage to stage.

    References
    ----------
    Reisizadeh et al. 2022, Algorithm 1.  As in Harshvardhan et al. 2025, FedAvg replaces its
    subroutine FedGATE, and each active client has weight 1/n.
    """

    first: Positive = Field(description="n_0: number of clients in the first stage")
    stop: Literal["gradient", "statistical", "rounds"] = Field(
        default="gradient",
        description="rule that ends a stage: relative norm, the paper's 2 μ V_ns, or its length",
    )
    accuracy: PositiveFloat = Field(
        default=0.1,
        description="squared gradient norm that ends the first stage, relative to the start",
    )
    constant: PositiveFloat | None = hashed_if_set(
        None,
        description="2 μ c in the rule 2 μ V_ns = 2 μ c/(n s)",
    )
    rounds: Positive = Field(default=20, description="length of a stage if ``stop`` is rounds")

    unbiased = False
    counts = ("first",)
    grid = {"rounds": (2, 20, "integer")}

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Delays, and gradients unless stages have a fixed length."""
        return frozenset({"delays"} if self.stop == "rounds" else {"delays", "gradients"})

    @model_validator(mode="after")
    def _check_constant(self) -> "Flanp":
        if (self.stop == "statistical") != (self.constant is not None):
            raise ValueError("constant: required if stop is 'statistical', otherwise invalid")
        return self

    def expected_clients(self, clients: int, rounds: int) -> float:
        """Return the mean over fixed stages; otherwise the size of the first, the longest stage."""
        if self.stop != "rounds":
            return float(self.first)
        stages = np.arange(rounds) // self.rounds
        return float(np.minimum(self.first * 2.0 ** np.minimum(stages, 60), clients).mean())

    def initial_state(self, setup: Setup) -> Stage:
        """Begin the first stage."""
        return Stage(
            delays=np.asarray(setup.delays),
            active=np.full(setup.runs, self.first),
            since=np.zeros(setup.runs, np.int64),
            reference=np.full(setup.runs, np.nan),
        )

    def begin(self, state: Stage, view: View, rng: Draws) -> Stage:
        """Double the number of active clients where a stage has ended."""
        ended = self._stage_ended(state, view)
        state.active = np.where(ended, np.minimum(2 * state.active, len(view.p)), state.active)
        state.since = np.where(ended, 0, state.since) + 1
        return state

    def select(self, state: Stage, view: View, rng: Draws) -> Slots:
        """Select the active clients."""
        return Slots.stack([fastest(state.delays, int(n)) for n in state.active])

    def weigh(self, state: Stage, slots: Slots, view: View, rng: Draws) -> Array:
        """Return 1/n for each active client."""
        return 1 / state.active[slots.run]

    def measured(self, state: Stage, slots: Slots, omega: Array, view: View) -> Mapping[str, Array]:
        """Return the number of active clients, shape (runs,)."""
        return {"active": state.active.astype(np.float64)}

    def _stage_ended(self, state: Stage, view: View) -> Bools:
        if self.stop == "rounds":
            return state.since >= self.rounds
        active = [fastest(state.delays, int(n)) for n in state.active]
        # All active clients took part in the last round: these gradients are one round old.
        gradients = zip(view.observed["gradients"], active, strict=True)
        means = [g[clients].mean(0, dtype=np.float64) for g, clients in gradients]
        norms = np.array([np.square(mean).sum() for mean in means])
        if self.constant is not None:
            samples = np.array([view.n_samples[clients].sum() for clients in active])
            ended = statistically_accurate(norms, samples, self.constant)
        else:
            state.reference = np.where(np.isnan(state.reference), norms, state.reference)
            ended = finished(norms, state.reference, state.active, self.first, self.accuracy)
        return np.asarray(ended & (state.since > 0))
