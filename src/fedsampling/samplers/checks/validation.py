"""Calls of a sampler, and validation of its slots and weights, in every round.

The training loop, ``check-sampler`` and the adapters call every sampler through :class:`Checked`.
Validation takes some ten microseconds; only an invalid result is analysed more.
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.prepared import Prepared
from fedsampling.samplers.protocol.slots import Slots, View
from fedsampling.samplers.users.described import as_array, described_value

WEIGHT_SUM_RANGE = (0.1, 10.0)  # of the mean of Σω; weights that average updates sum to one
WEIGHT_SUM_HINT = (
    f"expected {WEIGHT_SUM_RANGE[0]:g} to {WEIGHT_SUM_RANGE[1]:g}, as weights that average updates "
    "sum to about 1; rescale them, or set shrinks = True if small sums are meant"
)
MIN_ROUNDS = 5  # in fewer, an unbiased sampler may select nobody by chance
_NUMBERS = "iuf"  # NumPy's kinds of integers and floating-point numbers


class Checked:
    """A prepared sampler whose results are validated, round after round.

    `finite` returns which models, or updates, are finite; runs that are about to diverge may get
    infinite or NaN weights and steps, which is the model's fault. `warns`: whether to warn if sums
    of weights are far from one. Runs that have diverged, not `live`, may return any numbers.
    """

    def __init__(
        self,
        sampler: Prepared,
        runs: int,
        finite: Callable[[Any], Bools] | None = None,
        warns: bool = True,
    ) -> None:
        self.sampler = sampler
        self.live: Bools = np.ones(runs, np.bool_)
        self._finite = finite
        self._runs = runs
        self._sums = np.zeros(runs)
        self._rounds = 0
        self._warns = warns

    def blaming(self, round: int) -> AbstractContextManager[None]:
        """Report an error in the sampler's code in one line."""
        return self.sampler.blaming(round)

    def select(self, view: View, rng: Draws, theta: Any = None) -> Slots:
        """Return the slots of a round if they are valid; `theta`: the global models."""
        slots = self.sampler.select(view, rng)
        if fault := _slots_fault(slots, view):
            raise self._error(view, "select", fault)
        if not np.isfinite(slots.scale).all():
            blamed = self._blamed(view, theta)
            self._not_finite(slots.scale, "select", "slots.scale", slots, view, blamed)
        return slots

    def weigh(
        self, slots: Slots, view: View, rng: Draws, theta: Any = None, updates: Any = None
    ) -> Array:
        """Return the weights of a round, shape (slots,), if they are valid."""
        omega = self.sampler.weigh(slots, view, rng)
        weights = as_array(omega)
        if weights.shape != slots.client.shape or weights.dtype.kind not in _NUMBERS:
            fault = f"returned {described_value(omega)}; must be one number per slot ({len(slots)})"
            raise self._error(view, "weigh", fault)
        weights = weights.astype(np.float64, copy=False)
        if not np.isfinite(weights).all():
            blamed = self._blamed(view, theta, slots, updates)
            self._not_finite(weights, "weigh", "ω", slots, view, blamed)
        weights = self.sampler.allow_for_failures(weights)
        self._sums += np.bincount(slots.run, weights, self._runs)
        self._rounds += 1
        return weights

    def per_run(self, name: str, value: Any, view: View) -> Any:
        """Return a copy of numbers that the sampler measured, shape (runs,), if valid."""
        numbers = np.array(value)
        if numbers.shape != (self._runs,) or numbers.dtype.kind not in f"b{_NUMBERS}":
            fault = f"{name} is {described_value(value)}; must be one number per run ({self._runs})"
            raise self._error(view, "", fault)
        return numbers

    def check_last_sums(self) -> None:
        """Warn after the last round if the mean of Σω is far from 1."""
        sums = self._sums[self.live]
        if not self._warns or not self._rounds or not len(sums):
            return
        mean = float(sums.mean()) / self._rounds
        is_low_valid = self.sampler.shrinks or self._rounds < MIN_ROUNDS
        low = 0.0 if is_low_valid else WEIGHT_SUM_RANGE[0] * (1 - 1e-9)
        if mean < low or mean > WEIGHT_SUM_RANGE[1]:
            warnings.warn(
                f"sampler {self.sampler.named}: over {self._rounds} rounds the mean of Σω is "
                f"{mean:.4g}; {WEIGHT_SUM_HINT}",
                stacklevel=2,
            )

    def _blamed(
        self, view: View, theta: Any, slots: Slots | None = None, updates: Any = None
    ) -> Bools:
        """Return the runs that must have finite results: all observations are and stay finite.

        Squares are tested, since norms and losses that the sampler remembers overflow before the
        model does.
        """
        if self._finite is None:
            return self.live
        with np.errstate(over="ignore", invalid="ignore"):
            lost = np.zeros(self._runs, np.bool_) if theta is None else ~self._finite(theta**2)
            for name, value in view.observed.items():
                if name == "updates":  # tested below
                    continue
                values = np.asarray(value, np.float64)
                if values.shape[:2] == (view.runs, len(view.p)):
                    values = values[:, view.offered].reshape(view.runs, -1)
                    lost |= ~np.isfinite(values**2).all(axis=1)
                elif slots is not None and values.shape == slots.run.shape:
                    lost[slots.run[~np.isfinite(values**2)]] = True
            if slots is not None and len(slots):
                lost[slots.run[~self._finite(updates**2)]] = True
        return self.live & ~lost

    def _error(self, view: View, method: str, fault: str) -> InputError:
        text = f"{method} {fault}" if method else fault
        return InputError(f"sampler {self.sampler.named}, round {view.round}: {text}")

    def _not_finite(
        self, values: Array, method: str, name: str, slots: Slots, view: View, blamed: Bools
    ) -> None:
        """Raise InputError if a value is infinite or NaN in one of some runs."""
        at = np.flatnonzero(~np.isfinite(values) & blamed[slots.run])
        if len(at):
            run, client = slots.run[at[0]], slots.client[at[0]]
            raise self._error(
                view,
                method,
                f"returned {name} = {values[at[0]]} for client {client} of run {run}, "
                f"and {len(at) - 1} more that are infinite or NaN; must be finite",
            )


def _slots_fault(slots: Any, view: View) -> str:
    """Explain what is wrong with slots; empty if at most a scale is not finite."""
    if not isinstance(slots, Slots):
        return f"returned {described_value(slots)}; must be Slots, such as Slots.stack(clients)"
    if slots.client.ndim != 1:
        return (
            f"returned slots.client of shape {slots.client.shape}; must be one axis, a client per "
            "slot"
        )
    return (
        _client_fault(slots, view)
        or _run_fault(slots, view)
        or _times_fault(slots)
        or _scale_fault(slots)
        or _availability_fault(slots, view)
    )


def _client_fault(slots: Slots, view: View) -> str:
    """Explain which client is none; empty if all are valid."""
    n = len(view.p)
    allowed = f"integers in 0…{n - 1}"
    return _type_fault(slots, "client", "iu", allowed) or _value_fault(
        slots, "client", (slots.client < 0) | (slots.client >= n), allowed
    )


def _run_fault(slots: Slots, view: View) -> str:
    """Explain which run is none, or out of order; empty if all are valid."""
    run, allowed = slots.run, f"ascending integers in 0…{view.runs - 1}"
    if fault := _type_fault(slots, "run", "iu", allowed):
        return fault
    descends = np.zeros(len(run), np.bool_)
    descends[1:] = run[1:] < run[:-1]
    return _value_fault(slots, "run", (run < 0) | (run >= view.runs) | descends, allowed)


def _times_fault(slots: Slots) -> str:
    """Explain which number of local trainings is not positive; empty if all are valid."""
    allowed = "integers above 0"
    return _type_fault(slots, "times", "iu", allowed) or _value_fault(
        slots, "times", slots.times <= 0, allowed
    )


def _scale_fault(slots: Slots) -> str:
    """Explain which scale is not positive; NaN and infinity are reported with their cause."""
    allowed = "numbers above 0"
    return _type_fault(slots, "scale", _NUMBERS, allowed) or _value_fault(
        slots, "scale", slots.scale <= 0, allowed
    )


def _availability_fault(slots: Slots, view: View) -> str:
    """Explain which client is not available; empty if all are."""
    n = len(view.p)
    if len(view.offered) == n:
        return ""
    unavailable = np.ones(n, np.bool_)
    unavailable[view.offered] = False
    if not len(chosen := slots.client[unavailable[slots.client]]):
        return ""
    return (
        f"returned client {chosen[0]}, which is not available; must be in view.offered, "
        f"{len(view.offered)} of {n} clients"
    )


def _type_fault(slots: Slots, name: str, kinds: str, allowed: str) -> str:
    """Explain why an array of slots has another type or length; empty if it has not."""
    values = getattr(slots, name)
    if values.dtype.kind in kinds and values.shape == slots.client.shape:
        return ""
    return f"returned slots.{name}, {described_value(values)}; must be {allowed}, one per slot"


def _value_fault(slots: Slots, name: str, is_invalid: Bools, allowed: str) -> str:
    """Name the first invalid value of an array of slots; empty if there is none."""
    if not is_invalid.any():
        return ""
    slot = int(is_invalid.argmax())
    return f"returned slots.{name}[{slot}] = {getattr(slots, name)[slot]}; must be {allowed}"
