"""Optimal client sampling (OCS) by the norms of this round's updates; its approximation (AOCS).

All available clients train and send the norm of their weighted update.  Each then reports with the
probability that :func:`probabilities` computes from these norms.  For the same seed, full, uniform
and optimal participation use the same available clients and the same uniform variates, so that they
can be compared in pairs.

References
----------
Chen, Horváth, Richtárik: Optimal Client Sampling for Federated Learning. TMLR 2022
(arXiv 2010.13723), Algorithms 1 to 3 and section 4.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive, PositiveFloat
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.draws import distinct
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.theory.improvement import improvement_factor, sampling_variance, variance_ratio

TOLERANCE = 1e-12  # tolerance for C in Algorithm 2, which is 1 exactly if nothing was capped
EXCHANGE_BITS = 64  # bits that a client sends in one exchange of AOCS: t_i, two floats
LARGEST, TINY = np.finfo(np.float64).max, np.finfo(np.float64).tiny
LARGEST_NORM = float(np.finfo(np.float32).max)


def probabilities(norms: Array, m: int) -> Array:
    """Minimise the variance of the aggregate over independent samplings with m expected clients.

    Parameters
    ----------
    norms : float array, shape (n,)
        ‖Ũ_i‖ = w_i ‖U_i‖ of each client; non-negative and finite.
    m : int
        Expected number of reports, 1 ≤ m ≤ n.

    Returns
    -------
    q : float array, shape (n,)
        The minimiser of Σ_i ‖Ũ_i‖² (1 − q_i)/q_i subject to 0 ≤ q_i ≤ 1 and Σ q_i ≤ m.  With at
        least m positive norms, Σ q_i = m.  With fewer, these clients have q_i = 1 and the variance
        is zero.  Clients with norm zero have q_i = 0 exactly: they have nothing to report.

    Raises
    ------
    InputError
        If a norm is negative or not finite, or m is not in 1..n.

    Notes
    -----
    The paper calls ‖Ũ_(j)‖ the j-th *largest* norm, but its formula and Algorithm 1 hold for the
    j-th smallest, which is used here.

    References
    ----------
    Eq. (6).
    """
    norms = _checked(norms, m)
    n = norms.size
    if not norms.any():
        return np.zeros(n)
    order = np.argsort(norms, kind="stable")
    u = norms[order]
    total = np.cumsum(u)
    # 0 < m + l − n ≤ total_l / u_(l), multiplied by u_(l): zero norms need no special case.
    share = m + np.arange(1, n + 1) - n
    largest = int(np.flatnonzero((share > 0) & (share * u <= total))[-1])
    q = np.ones(n)
    if total[largest] > 0:
        q[: largest + 1] = share[largest] * (u[: largest + 1] / total[largest])
    # A positive norm keeps a positive probability, or its update could never be reported.
    q = np.where(norms[order] > 0, np.clip(q, TINY, 1.0), 0.0)
    return q[np.argsort(order)]


def approximate_probabilities(norms: Array, m: int, j_max: int) -> Array:
    """Approximate :func:`probabilities` with sums over clients only.

    Parameters
    ----------
    norms : float array, shape (n,)
        ‖Ũ_i‖ = w_i ‖U_i‖ of each client; non-negative and finite.
    m : int
        Expected number of reports, 1 ≤ m ≤ n.
    j_max : int
        Maximum number of exchanges after the first; with enough of them the result is exact.

    Returns
    -------
    q : float array, shape (n,)
        Sums to at most m.

    Raises
    ------
    InputError
        If a norm is negative or not finite, m is not in 1..n or `j_max` is negative.

    References
    ----------
    Algorithm 2 (AOCS).
    """
    return approximate(norms, m, j_max).q


class Approximation(NamedTuple):
    """Result of AOCS, and the number of exchanges (t_i up, C down) that it used."""

    q: Array
    exchanges: int


def approximate(norms: Array, m: int, j_max: int) -> Approximation:
    """Run Algorithm 2; see :func:`approximate_probabilities`.

    Notes
    -----
    Where the printed algorithm divides by zero, it ends here: u = 0 (no update, q = 0), and P = 0
    (no client with a positive norm has q < 1, as for m = n and for at most m positive norms).  As
    printed, the test C ≤ 1 follows the use of C, so the last exchange only finds that nothing was
    capped.
    """
    norms = _checked(norms, m)
    if j_max < 0:
        raise InputError(f"j_max: {j_max} is out of range; must be 0 or more")
    n = norms.size
    if not norms.any():
        return Approximation(np.zeros(n), 0)
    # m u_i / u; a positive norm keeps a positive probability, as in `probabilities`.
    p = np.clip(m * (norms / norms.sum()), np.where(norms > 0, TINY, 0), 1)
    for j in range(1, j_max + 1):
        below = p < 1
        I, P = int(below.sum()), float(p[below].sum())  # noqa: E741
        if P == 0:
            return Approximation(p, j)
        C = (m - n + I) / P
        p[below] = np.minimum(C * p[below], 1)
        if C <= 1 + TOLERANCE:
            return Approximation(p, j)
    return Approximation(p, j_max)


class Available(Scheme, name="available", title="Optimal client sampling (OCS)", short="OCS"):
    """A random set of clients trains; of these some report their updates, m expected.

    The available clients are drawn uniformly without replacement, and report independently.
    Weights are normalised over the *available* clients, as in the authors' code:
    w_i = p_i / Σ_available p_j, and ω_i = w_i / q_i for clients that report.  The aggregate is
    unbiased given the available clients.  It is unbiased over their choice only if all clients are
    available or all p_i are equal, since the denominator depends on the choice.
    """

    available: Positive = Field(description="n in the paper: number of clients that train")
    m: Positive = Field(description="expected number of reports; ignored for report: full")
    report: Literal["full", "uniform", "optimal", "approximate"] = Field(
        description="all; each with probability m/n; OCS, equation (6); AOCS, Algorithm 2"
    )
    j_max: Annotated[int, Field(ge=0)] = Field(
        default=4, description="maximum number of AOCS exchanges"
    )
    scale: PositiveFloat = Field(
        default=1.0, description="factor on the local step size η_l of this sampler"
    )
    beside: Annotated[int, Field(ge=0, le=32)] | None = Field(
        default=None,
        description="also record the statistics that OCS, and AOCS with up to this number of "
        "exchanges, would have for the observed norms; null: nothing",
    )

    unbiased = None
    failure_weights = "average"  # a client that fails is not available
    counts = ("available",)
    grid = {"available": (7, 15, "integer")}

    @field_validator("m")
    @classmethod
    def _at_most_available(cls, m: int, info: ValidationInfo) -> int:
        available = info.data.get("available", m)
        if m > available:
            raise ValueError(
                f"{m} exceeds the {available} available clients; use at most {available}"
            )
        return m

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """Norms of the updates, if reports depend on them."""
        return frozenset({"update_norms"} if self.report in ("optimal", "approximate") else ())

    def is_unbiased(self, setup: Setup) -> bool:
        """Whether the denominator of the weights is constant and the step is not scaled."""
        equal = self.available == len(setup.p) or bool(np.ptp(setup.p) < 1e-12)
        return equal and self.scale == 1

    def select(self, state: None, view: View, rng: Draws) -> Slots:
        """Select all available clients: they train, and may then report."""
        slots = Slots.stack(distinct(len(view.p), rng.uniforms("available", self.available)))
        return replace(slots, scale=self.scale * slots.scale)

    def weigh(self, state: None, slots: Slots, view: View, rng: Draws) -> Array:
        """Return ω_i = w_i / q_i with probability q_i, otherwise 0."""
        w, norms = self._weighted(slots, view)
        q = self._probabilities(w, norms)
        u = self._rows(rng.client_uniforms("reports", slots.run, slots.client, 1)[:, 0], view)
        omega: Array = np.divide(w, q, out=np.zeros(w.shape), where=u < q)
        return omega.ravel() if view.reports is None else omega.ravel()[view.reports.reported]

    def exchange_bits(self, state: None, slots: Slots, view: View) -> Array:
        """Bits that clients sent in the exchanges of Algorithm 2, shape (runs,)."""
        if self.report != "approximate":
            return np.zeros(view.runs)
        _, norms = self._weighted(slots, view)
        results = [approximate(run_norms, self.m, self.j_max) for run_norms in norms]
        exchanges = np.array([result.exchanges for result in results], np.float64)
        return EXCHANGE_BITS * np.bincount(slots.run, minlength=view.runs) * exchanges

    def measured(self, state: None, slots: Slots, omega: Array, view: View) -> Mapping[str, Array]:
        """Return statistics of the round's norms, each of shape (runs,).

        ``alpha`` and ``gamma`` are those of equation (12) and Theorem 2 for the probabilities used,
        ``expected_reports`` is Σ q_i, and ``deviation`` is Σ (ω_i − w_i) ‖U_i‖ divided by its
        standard deviation, with mean 0 and variance 1 if the aggregate is unbiased.  The setting
        ``beside`` adds ``alpha_exact`` for equation (6), and ``alpha_j`` and
        ``expected_reports_j`` for Algorithm 2 with at most j exchanges.  Empty if norms are not
        observed.
        """
        if "update_norms" not in self.needs:
            return {}
        n, m = self.available, self.m
        w, norms = self._weighted(slots, view)
        q = self._probabilities(w, norms)
        alpha = variance_ratio(norms, q, m)
        gamma = np.asarray(improvement_factor(alpha, n, m))
        spread = np.sqrt(sampling_variance(norms, q))
        # (ω_i − w_i) ‖U_i‖ is u_i (1/q_i − 1) if client i reports, and −u_i if it does not.
        odds = np.divide(1 - q, q, out=np.zeros(q.shape), where=q > 0)
        error = (norms * np.where(self._rows(omega, view) > 0, odds, -1.0)).sum(1)
        measured = {
            "alpha": alpha,
            "gamma": gamma,
            "expected_reports": q.sum(1),
            "deviation": np.divide(error, spread, out=np.zeros(len(q)), where=spread > 0),
        }
        if self.beside is not None:
            exact = np.stack([probabilities(run_norms, m) for run_norms in norms])
            measured["alpha_exact"] = variance_ratio(norms, exact, m)
            for j in range(self.beside + 1):
                q_j = np.stack([approximate(run_norms, m, j).q for run_norms in norms])
                measured[f"alpha_{j}"] = variance_ratio(norms, q_j, m)
                measured[f"expected_reports_{j}"] = q_j.sum(1)
        return measured

    def _weighted(self, slots: Slots, view: View) -> tuple[Array, Array]:
        """Return w_i, and u_i = w_i ‖U_i‖ or ones if norms are not observed; (runs, available)."""
        p = self._rows(view.p[slots.client], view)
        total = p.sum(1, keepdims=True)
        w = p / np.where(total > 0, total, 1)  # zero if all clients of a run fail
        if "update_norms" not in self.needs:
            return w, np.ones(w.shape)
        # A diverging run's updates count as huge: they are reported, and end this run only.
        norms = self._rows(view.observed["update_norms"], view)  # ‖U_i‖
        return w, w * np.where(np.isfinite(norms), norms, LARGEST_NORM)

    def _rows(self, values: Array, view: View) -> Array:
        """Return values of the slots as (runs, available); zero for clients that failed."""
        if view.reports is not None:
            rows = np.zeros(len(view.reports.reported))
            rows[view.reports.reported] = values
            values = rows
        return values.reshape(view.runs, self.available)

    def _probabilities(self, w: Array, norms: Array) -> Array:
        """Return q_i, shape (runs, available)."""
        n, m = self.available, self.m
        match self.report:
            case "full":
                return np.ones(w.shape)
            case "uniform":
                return np.full(w.shape, m / n)
            case "optimal":
                return np.stack([probabilities(run_norms, m) for run_norms in norms])
            case "approximate":
                return np.stack([approximate(run_norms, m, self.j_max).q for run_norms in norms])


def _checked(norms: Array, m: int) -> Array:
    norms = np.asarray(norms, dtype=np.float64)
    if norms.ndim != 1 or not np.isfinite(norms).all() or (norms < 0).any():
        raise InputError("norms: update norms must be one list of finite non-negative numbers")
    if not 1 <= m <= norms.size:
        raise InputError(f"m: {m} of {norms.size} clients cannot report; use 1 to {norms.size}")
    if norms.max() > LARGEST / norms.size:  # sums would overflow; only ratios of norms matter
        norms = np.where(norms > 0, np.maximum(norms / norms.size**2, TINY), 0)
    return norms
