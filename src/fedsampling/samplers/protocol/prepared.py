"""A sampler at work in one job: its frozen settings and its present state."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import is_dataclass
from typing import Any

from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import CodeError, InputError
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import DataScheme, Scheme
from fedsampling.samplers.protocol.guest import CallGuard, is_user, lent
from fedsampling.samplers.protocol.slots import (
    Batch,
    Setup,
    Slots,
    View,
    allowing_for_failures,
)

# Methods in which a user's sampler is called; those of its adapter, if it handles one run.
METHODS = frozenset(
    {
        "addition",
        "asked",
        "begin",
        "exchange_bits",
        "initial_state",
        "learn",
        "measured",
        "select",
        "weigh",
    }
)
METHODS_OF_RUNS = frozenset({"begin", "initial_state", "weigh"})


class Prepared:
    """A sampler in the rounds of one job; it passes the state to each call and keeps the next one.

    The sampler of a user gets and returns copies; those of its state are read-only, except in
    ``begin`` and ``learn``, which return the next state.

    Parameters
    ----------
    scheme : Scheme
    setup : Setup

    Raises
    ------
    InputError
        If there are fewer clients than requested, or information in ``needs`` is missing.
    """

    def __init__(self, scheme: Scheme, setup: Setup) -> None:
        _check_setup(scheme, setup)
        self.scheme = scheme
        self._stacked = scheme.stacked()
        self.named = scheme.named
        self.needs = frozenset(scheme.needs)
        self.intermittent, self.shrinks = scheme.intermittent, scheme.shrinks
        self._guard = CallGuard(type(scheme), scheme.named)
        self._guarded: frozenset[str] = frozenset()  # methods with a user's code
        if is_user(type(scheme)):
            self._guarded = METHODS if scheme.is_stacked else METHODS_OF_RUNS
        self.state = self._call("initial_state", None, setup)
        if self.state is not None and not is_dataclass(self.state):
            raise CodeError(
                f"sampler {self.named}: initial_state returned {_described(self.state)}; must "
                "be a dataclass or None"
            )
        self.unbiased = self._stacked.is_unbiased(setup)

    def select(self, view: View, rng: Draws) -> Slots:
        """Begin a round, and select its clients."""
        self._advance("begin", view.round, view, rng)
        self._view = view
        return self._call("select", view.round, self.state, view, rng)  # type: ignore[no-any-return]

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return the weights of the slots after local training."""
        self._view, self._slots = view, slots
        omega: Array = self._call("weigh", view.round, self.state, slots, view, rng)
        self._omega = omega
        return omega

    def allow_for_failures(self, omega: Array) -> Array:
        """Correct the weights of the round for the selected clients that did not report."""
        if self._view.reports is not None:
            rule = self.scheme.failure_weights
            omega = allowing_for_failures(omega, self._slots, self._view.reports, rule)
            self._omega = omega
        return omega

    def addition(self) -> NDArray[Any] | None:
        """Return a vector to add to the weighted updates of each run, or None."""
        return self._of_round("addition", self._slots, self._omega)  # type: ignore[no-any-return]

    def asked(self) -> Bools | None:
        """Return the clients that had to compute something for the selection, or None."""
        return self._of_round("asked", self._view)  # type: ignore[no-any-return]

    def exchange_bits(self) -> Array | None:
        """Return the bits of the round's exchange, shape (runs,), or None."""
        return self._of_round("exchange_bits", self._slots, self._view)  # type: ignore[no-any-return]

    def measured(self) -> Mapping[str, Array]:
        """Return the quantities of the round to record, each of shape (runs,)."""
        arguments = self._slots, self._omega, self._view
        return self._of_round("measured", *arguments)  # type: ignore[no-any-return]

    def learn(self) -> None:
        """End the round: remember what the sampler learned from it."""
        self._advance("learn", self._view.round, self._slots, self._view)

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return the state as arrays for a checkpoint."""
        return self._stacked.saved(self.state)

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Set the state to the result of :meth:`saved`, bit for bit."""
        self.state = self._stacked.restored(self.state, saved)

    def blaming(self, round: int) -> AbstractContextManager[None]:
        """Report an error in the code of a user's sampler in one line."""
        return self._guard.blaming(round)

    def _advance(self, method: str, round: int, *arguments: Any) -> None:
        """Replace the state by the one that a method returns."""
        state = self._call(method, round, self.state, *arguments)
        if type(state) is not type(self.state):
            raise CodeError(
                f"sampler {self.named}, round {round}: {method} returned "
                f"{_described(state)}; must return the state, {_described(self.state)}"
            )
        self.state = state

    def _of_round(self, method: str, *arguments: Any) -> Any:
        return self._call(method, self._view.round, self.state, *arguments)

    def _call(self, method: str, round: int | None, *arguments: Any) -> Any:
        function = getattr(self._stacked, method)
        is_default = getattr(function, "__func__", None) is getattr(Scheme, method)
        if is_default or method not in self._guarded:
            return function(*arguments)
        with self._guard.calling(round):
            if not self.scheme.is_stacked:  # whose adapter copies for each run
                return function(*arguments)
            if method in ("begin", "learn"):
                state, *others = arguments
                result = function(lent(state, writeable=True), *lent(others))
            else:
                result = function(*lent(arguments))
        return lent(result, writeable=True)


class PreparedDataScheme(Prepared):
    """A sampler of clients and their data at work, for convex models."""

    scheme: DataScheme

    def saw_samples(self, slots: Slots, norms: Array) -> None:
        """Pass on the gradient norms of all samples of each slot at the round's first model."""
        self.state = self.scheme.saw_samples(self.state, slots, norms)

    def batch(self, slots: Slots, d: Array) -> Batch:
        """Return each slot's mini-batch, from one uniform variate `d` per slot."""
        return self.scheme.batch(self.state, slots, d)

    def saw_batch(self, slots: Slots, batch: Batch, norms: Array) -> None:
        """Pass on the gradient norms of each batch at the round's first model."""
        self.state = self.scheme.saw_batch(self.state, slots, batch, norms)

    def saw_round(self, slots: Slots, observed: Mapping[str, Any]) -> None:
        """Pass on the clients' reports at the end of the round."""
        self.state = self.scheme.saw_round(self.state, slots, observed)


def _described(state: Any) -> str:
    """Describe a state in an error line."""
    return "None" if state is None else f"a {type(state).__name__}"


def prepared(scheme: Scheme, setup: Setup) -> Prepared:
    """Return a sampler that is ready for the rounds of a job."""
    kind = PreparedDataScheme if isinstance(scheme, DataScheme) else Prepared
    return kind(scheme, setup)


def _check_setup(scheme: Scheme, setup: Setup) -> None:
    """Raise InputError if there are too few clients or information is missing."""
    try:
        scheme.check_population(len(setup.p))
    except ValueError as error:
        raise InputError(str(error)) from None
    for name, fix in (
        ("delays", "set delays, such as synthetic"),
        ("labels", "give them"),
        ("label_counts", "give them"),
    ):
        if name in scheme.needs and getattr(setup, name) is None:
            raise InputError(
                f"sampler.name: {scheme.named} needs the clients' {name}, which are missing; "
                f"{fix}, or use another sampler"
            )
