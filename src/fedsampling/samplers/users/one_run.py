"""Samplers written for one run; the library stacks the runs.

A job trains several seeds at once, and a :class:`~fedsampling.samplers.protocol.base.Scheme`
handles them together.  A :class:`Sampler` handles one run: its ``view`` has no axis of runs, its
memory consists of plain attributes, and it returns clients, or clients and weights::

    class ByLoss(Sampler, name="by_loss"):
        m: Positive
        needs = {"losses"}
        unbiased = False

        def select(self, view, rng):
            return rng.choice(view.n, self.m, replace=False, p=view.losses / view.losses.sum())

Each run has its own copy of the sampler.  Both forms give the same runs if they use the same random
numbers: ``rng`` is this run's generator in ``rng.generators("clients")`` of the stacked form.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import CodeError, InputError, blaming
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import NETWORK_NEEDS, Scheme, prepared_copies
from fedsampling.samplers.protocol.guest import CallGuard, lent
from fedsampling.samplers.protocol.slots import Setup, Slots, View

Selection = tuple[Ints, Array | None]  # clients, and their weights if select returned them
SLOT_NEEDS = frozenset({"bias_updates", "update_norms", "work_losses"})  # one row per slot
SHARED_NEEDS = frozenset({"delays"})  # the same for every run


@dataclass(frozen=True)
class RunView:
    """The server's information for a sampler of one run in one round.

    The quantities that ``needs`` names are attributes: ``view.losses`` (n,), ``view.gradients``
    (n, d), ``view.heterogeneity`` (n, n), ``view.delays`` (n,).  In ``weigh`` there are also
    ``view.update_norms`` and ``view.work_losses``, one number per selected client.

    Parameters
    ----------
    n_samples : int array, shape (n,)
    p : float array, shape (n,)
        Importance of each client; zero for unavailable clients; sums to one.
    round : int
    observed : mapping
        The same quantities by name.
    offered : int array, shape (offered,)
        Clients that are available in this round, ascending.
    """

    n_samples: Ints
    p: Array
    round: int
    observed: Mapping[str, Any] = field(default_factory=dict)
    offered: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.p)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.observed:
            return self.observed[name]
        fix = "add it to `needs`" if name in NETWORK_NEEDS else "see `RunView` for its attributes"
        raise AttributeError(f"view has no {name!r}; {fix}")


class Sampler(Scheme):
    """Base class of samplers that handle one run.

    Settings, ``needs``, ``unbiased``, ``intermittent``, ``counts``, ``shrinks`` and ``prepare`` are
    those of :class:`~fedsampling.samplers.protocol.base.Scheme`; ``prepare`` gets a setup with one
    run.
    """

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        """Reject methods that exist only in the stacked form."""
        super().__init_subclass__(name=name, **options)
        if cls.addition is not Scheme.addition:
            raise InputError(
                f"class {cls.__name__}: addition needs the stacked form; derive the class from "
                "fedsampling.Scheme"
            )

    def prepared(self, setup: Setup) -> Any:
        """Return one copy for each run of a job, stacked so that they behave as one sampler."""
        return StackedRuns(self, prepared_copies(self, replace(setup, runs=1), setup.runs))

    def select(self, view: RunView, rng: np.random.Generator) -> Any:  # type: ignore[override]
        """Select the clients of a round.

        Returns
        -------
        int array, shape (k,), or pair of it with a float array of the same shape
            Clients, possibly repeated, and optionally their aggregation weights ω.  If weights are
            missing, :meth:`weigh` is called after local training.
        """
        raise InputError(f"sampler {self.named}: method missing; add select(self, view, rng)")

    def weigh(  # type: ignore[override]
        self, clients: Ints, view: RunView, rng: np.random.Generator
    ) -> Array:
        """Return the clients' weights after local training; by default 1/k, the average."""
        return np.full(len(clients), 1 / max(len(clients), 1))

    def saw_updates(self, clients: Ints, updates: NDArray[np.float32]) -> None:  # type: ignore[override]
        """Receive θ_i − θ of the selected clients, shape (k, d), if ``needs`` has "updates"."""
        raise InputError(
            f"sampler {self.named}: method missing; add saw_updates(self, clients, updates), or "
            "remove 'updates' from `needs`"
        )

    def exchange_bits(self) -> float | None:  # type: ignore[override]
        """Bits that the clients sent in the last round's exchange; None without an exchange."""
        return None

    def measured(self) -> Mapping[str, float]:  # type: ignore[override]
        """Quantities of the last round to record, by name."""
        return {}

    def asked(self) -> Ints | None:  # type: ignore[override]
        """Clients that had to compute something for the last selection; None: as in ``needs``."""
        return None


def guard_of(sampler: Any) -> CallGuard:
    """Return the object that surrounds the calls of a prepared sampler."""
    original = sampler._sampler if isinstance(sampler, StackedRuns) else sampler
    return CallGuard(type(original), str(original.named))


class StackedRuns:
    """Copies of a sampler, one for each run of a job, with the interface of one stacked sampler.

    Attributes that are the same for all runs (``named``, ``needs``, ``unbiased``, …) are read from
    the original sampler.
    """

    def __init__(self, sampler: Sampler, runs: Sequence[Sampler]) -> None:
        self._sampler = sampler
        self._runs = runs

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._runs[0], name)

    def select(self, view: View, rng: Draws) -> Slots:
        """Let each run select its clients."""
        self._view = view
        self._selections = [
            self._selection(run, self._run_view(run, view.observed), generator)
            for run, generator in enumerate(rng.generators("clients"))
        ]
        return Slots.stack([clients for clients, _ in self._selections])

    def saw_updates(self, slots: Slots, updates: NDArray[np.float32]) -> None:
        """Pass each run its updates."""
        for run, part in enumerate(self._run_slices(slots)):
            with self._blame_sampler():
                self._runs[run].saw_updates(lent(slots.client[part]), lent(updates[part]))

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return the weights that `select` returned, or call `weigh` of runs without weights."""
        weights = []
        parts = self._run_slices(slots)
        for run, (part, generator) in enumerate(zip(parts, rng.generators("weights"), strict=True)):
            clients, returned = self._selections[run]
            if returned is None:
                rows = {name: view.observed[name][part] for name in SLOT_NEEDS & {*view.observed}}
                run_view = self._run_view(run, {**view.observed, **rows})
                returned = self._weights(run, clients, run_view, generator)
            weights.append(returned)
        return np.concatenate(weights)

    def exchange_bits(self) -> Array | None:
        """Return the bits of each run's exchange, shape (runs,)."""
        returned = [sampler.exchange_bits() for sampler in self._runs]
        bits = [count for count in returned if count is not None]
        if len(bits) < len(returned):
            return None
        if wrong := [count for count in bits if not 0 <= count < np.inf]:
            raise self._fault(f"exchange_bits returned {wrong[0]}; must be a number of bits")
        return np.array(bits, np.float64)

    def measured(self) -> Mapping[str, Array]:
        """Return the quantities that the runs record, each of shape (runs,)."""
        rows = [sampler.measured() for sampler in self._runs]
        return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}

    def asked(self) -> Bools | None:
        """Return the clients that had to compute something, shape (runs, n)."""
        requested = [sampler.asked() for sampler in self._runs]
        if any(clients is None for clients in requested):
            return None
        mask = np.zeros((len(requested), len(self._view.p)), np.bool_)
        for run, clients in enumerate(requested):
            mask[run, self._valid_clients(clients, mask.shape[1], "asked")] = True
        return mask

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the runs remember, as arrays."""
        return {
            f"{run}:{name}": value
            for run, sampler in enumerate(self._runs)
            for name, value in sampler.state().items()
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`state`."""
        for run, sampler in enumerate(self._runs):
            start = f"{run}:"
            sampler.restore(
                {
                    name.removeprefix(start): value
                    for name, value in state.items()
                    if name.startswith(start)
                }
            )

    def _selection(self, run: int, view: RunView, rng: np.random.Generator) -> Selection:
        """Return a run's clients, and their weights if `select` returned them."""
        try:
            with self._blame_sampler():
                result = self._runs[run].select(view, rng)
        except CodeError:
            if _is_finite(view):
                raise
            return view.offered, None  # this run diverges, so its clients no longer matter
        weights = None
        if isinstance(result, tuple) and len(result) == 2 and np.ndim(result[0]):
            result, weights = result
        clients = self._valid_clients(result, view.n, "select")
        return clients, None if weights is None else self._valid_weights(weights, clients, "select")

    def _valid_clients(self, result: Any, n: int, method: str) -> Ints:
        clients = as_array(result)
        if clients.ndim != 1 or (clients.size and clients.dtype.kind not in "iu"):
            raise self._fault(f"{method} returned {described_value(result)}; {_CLIENTS_HINT}")
        clients = clients.astype(np.int64)  # a copy: the sampler may change its array
        if len(invalid := clients[(clients < 0) | (clients >= n)]):
            raise self._fault(f"{method} returned client {invalid[0]}; must be in 0…{n - 1}")
        return clients

    def _weights(self, run: int, clients: Ints, view: RunView, rng: np.random.Generator) -> Array:
        """Return the weights of a run's clients that `weigh` computes."""
        try:
            with self._blame_sampler():
                weights = self._runs[run].weigh(lent(clients), view, rng)
        except CodeError:
            if _is_finite(view):
                raise
            return np.full(len(clients), np.nan)  # this run diverges
        return self._valid_weights(weights, clients, "weigh")

    def _valid_weights(self, weights: Any, clients: Ints, method: str) -> Array:
        array = as_array(weights)
        if array.shape != clients.shape or (array.size and array.dtype.kind not in "iuf"):
            raise self._fault(
                f"{method} returned {described_value(weights)} as weights; must be one number for "
                f"each of the {len(clients)} clients"
            )
        return array.astype(np.float64)

    def _run_view(self, run: int, observed: Mapping[str, Any]) -> RunView:
        """Extract a run's part of the observations."""
        shared = SLOT_NEEDS | SHARED_NEEDS  # already reduced to this run, or equal in all runs
        run_values = {
            name: values if name in shared else values[run] for name, values in observed.items()
        }
        view = self._view
        return lent(RunView(view.n_samples, view.p, view.round, run_values, view.offered))

    def _run_slices(self, slots: Slots) -> list[slice]:
        """Return the slice of each run's slots."""
        ends = np.searchsorted(slots.run, np.arange(len(self._runs) + 1))
        return [slice(begin, end) for begin, end in pairwise(ends)]

    def _blame_sampler(self) -> AbstractContextManager[None]:
        start = f"sampler {self._sampler.named}, round {self._view.round}"
        return blaming(type(self._sampler).__module__, start)

    def _fault(self, text: str) -> InputError:
        return InputError(f"sampler {self._sampler.named}, round {self._view.round}: {text}")


_CLIENTS_HINT = "must be indices of clients, shape (k,), or a pair of these and their weights"


def _is_finite(view: RunView) -> bool:
    """Whether all observations of available clients are finite."""
    for values in view.observed.values():
        available = values[view.offered] if len(values) == view.n else values
        if not np.isfinite(available).all():
            return False
    return True


def as_array(value: Any) -> NDArray[Any]:
    """Convert a value to an array; an array of dimension zero if this is impossible."""
    try:
        return np.asarray(None if np.ma.is_masked(value) else value)
    except (TypeError, ValueError):  # ragged
        return np.asarray(None)


def described_value(value: Any) -> str:
    """Describe a wrong value by its type, dtype and shape."""
    if value is None:
        return "None"
    array = as_array(value)
    return f"a {type(value).__name__} of {array.dtype} and shape {array.shape}"
