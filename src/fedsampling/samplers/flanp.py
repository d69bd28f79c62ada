"""FLANP: begin with the fastest clients, and admit slower ones as the model gets better.

References
----------
Reisizadeh, Tziotis, Hassani, Mokhtari, Pedarsani: Straggler-Resilient Federated Learning:
Leveraging the Interplay Between Statistical Accuracy and System Heterogeneity. IEEE JSAIT 2022
(arXiv 2012.14453).
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from fedsampling.base.records import Positive, Variance
from fedsampling.base.streams import Draws
from fedsampling.samplers.scheme import Array, Bools, Ints, Scheme, Setup, Slots, View


def fastest(delays: Array, n: int) -> Ints:
    """Return the n clients with the least delay, ascending; of equals the first."""
    return np.sort(np.argsort(delays, kind="stable")[:n])


def statistically_accurate(squared_norm: Array, samples: Array, constant: float) -> Any:
    """Say in which runs FLANP's own rule ends the stage: ‖∇L_n(w)‖² ≤ 2 μ V_ns, V_ns = c/(n s).

    Parameters
    ----------
    squared_norm : float array, shape (runs,)
        ‖∇L_n‖² of the mean loss of the active clients.
    samples : float array, shape (runs,)
        n s, the samples of the active clients.
    constant : float
        2 μ c.  In linear regression with half the squared error, d features and noise of standard
        deviation σ the least squares solution of N samples exceeds the least loss by σ² d/(2 N) on
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
    """Say in which runs the active clients' problem is solved to its statistical accuracy.

    The paper's rule is ‖∇L_n(w)‖² ≤ 2 μ V_ns with V_ns = c/(n s): n active clients with s samples
    each (:func:`statistically_accurate`).  Where neither μ nor c is known, all that the rule says
    of n is that the threshold falls as 1/n.  Here it is `accuracy` times the squared norm at the
    very start, when the first stage has `first` clients, and falls as 1/n from there.

    Parameters
    ----------
    squared_norm : float array, shape (runs,)
        ‖∇L_n‖² of the mean loss of the active clients.
    reference : float array, shape (runs,)
        ‖∇L_{n_0}‖² at the first model.
    active : int array, shape (runs,)
        n.
    first : int
        n_0.

    Returns
    -------
    bool array, shape (runs,)
    """
    return squared_norm <= accuracy * reference * first / active


class Flanp(Scheme, name="flanp"):
    """The fastest clients first, all of them in every round; their number doubles between stages.

    References
    ----------
    Reisizadeh et al. 2022, Algorithm 1; its subroutine FedGATE is FedAvg here, as in
    harshvardhan2025latency, and each active client weighs 1/n.
    """

    first: Positive = Field(description="clients of the first stage, n_0")
    stop: Literal["gradient", "statistical", "rounds"] = Field(
        "gradient",
        description="what ends a stage: a relative norm, FLANP's own 2 μ V_ns, or their number",
    )
    accuracy: Variance = Field(
        0.1, description="squared gradient norm of the first stage, relative to its start"
    )
    constant: Variance | None = Field(
        None,
        description="2 μ c of the rule 2 μ V_ns = 2 μ c/(n s)",
        exclude_if=lambda constant: constant is None,  # keeps the hashes of other rules' runs
    )
    rounds: Positive = Field(20, description="of a stage, where they end it")

    unbiased = False
    counts = ("first",)
    memory = ("active", "since", "reference")

    _delays: Array
    _active: Ints
    _since: Ints  # rounds of the present stage that are over
    _reference: Array  # first squared gradient norm

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Delays, and gradients where they end a stage."""
        return frozenset({"delays"} if self.stop == "rounds" else {"delays", "gradients"})

    @model_validator(mode="after")
    def _known(self) -> "Flanp":
        if (self.stop == "statistical") != (self.constant is not None):
            raise ValueError("constant: give it where stop is statistical, and only there")
        return self

    def trained(self, clients: int, rounds: int) -> float:
        """Take the mean over rounds that end the stages; else the first stage, which lasts long."""
        if self.stop != "rounds":
            return float(self.first)
        stages = np.arange(rounds) // self.rounds
        return float(np.minimum(self.first * 2.0 ** np.minimum(stages, 60), clients).mean())

    def prepare(self, setup: Setup) -> None:
        """Begin the first stage."""
        self._delays = np.asarray(setup.delays)
        self._active = np.full(setup.runs, self.first)
        self._since = np.zeros(setup.runs, np.int64)
        self._reference = np.full(setup.runs, np.nan)

    def select(self, view: View, rng: Draws) -> Slots:
        """Take the active clients, after admitting more where a stage has ended."""
        over = self._over(view)
        self._active = np.where(over, np.minimum(2 * self._active, len(view.p)), self._active)
        self._since = np.where(over, 0, self._since) + 1
        return Slots.stack([fastest(self._delays, int(n)) for n in self._active])

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """1/n for each active client."""
        return 1 / self._active[slots.run]

    def measured(self) -> Mapping[str, Array]:
        """Give the number of active clients, shape (runs,)."""
        return {"active": self._active.astype(np.float64)}

    def _over(self, view: View) -> Bools:
        if self.stop == "rounds":
            return self._since >= self.rounds
        # Everyone active took part in the last round: these gradients are one round old.
        norms = np.array(
            [
                np.square(gradients[fastest(self._delays, int(n))].mean(0, dtype=np.float64)).sum()
                for gradients, n in zip(view.observed["gradients"], self._active, strict=True)
            ]
        )
        if self.constant is not None:
            samples = np.array(
                [view.n_samples[fastest(self._delays, int(n))].sum() for n in self._active]
            )
            over = statistically_accurate(norms, samples, self.constant)
            return np.asarray(over & (self._since > 0))
        self._reference = np.where(np.isnan(self._reference), norms, self._reference)
        over = finished(norms, self._reference, self._active, self.first, self.accuracy)
        return np.asarray(over & (self._since > 0))
