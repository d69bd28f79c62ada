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

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from inspect import get_annotations
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import CodeError, InputError, blaming
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.base import Scheme, requests_of_needs
from fedsampling.samplers.protocol.guest import lent, pack, unpack
from fedsampling.samplers.protocol.slots import Setup, Slots, View
from fedsampling.samplers.users.described import as_array, described_value
from fedsampling.samplers.users.run_view import SLOT_NEEDS, RunView, is_finite, run_view

CLIENTS_HINT = "must be indices of clients, shape (k,), or a pair of these and their weights"
Selection = tuple[Ints, Array | None]  # clients, and their weights if `select` returned them


class Sampler(Scheme):
    """Base class of samplers that handle one run.

    Settings, ``needs``, ``unbiased``, ``intermittent``, ``counts`` and ``shrinks`` are those of
    :class:`~fedsampling.samplers.protocol.base.Scheme`.

    Settings never change.  Each run works on a copy, whose other attributes may store anything.
    Attributes without a leading underscore are remembered from round to round and must be arrays,
    numbers, text, lists or dicts.  Attributes with a leading underscore are temporary.
    """

    is_stacked = False

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        """Reject methods that exist only in the stacked form, and settings that hide members."""
        super().__init_subclass__(name=name, **options)
        for method in ("addition", "initial_state", "begin", "learn"):
            if getattr(cls, method) is not getattr(Scheme, method):
                raise InputError(
                    f"class {cls.__name__}: {method} needs the stacked form; derive the class from "
                    "fedsampling.Scheme"
                )
        for key, kind in get_annotations(cls).items():
            if hasattr(Sampler, key) and "ClassVar" not in str(kind):
                raise InputError(
                    f"class {cls.__name__}: {key} cannot be a setting, as every sampler has it; "
                    "rename the setting"
                )

    def stacked(self) -> Any:
        """Return the sampler that handles all runs of a job, with a copy of this one for each."""
        return StackedRuns(self)

    def prepare(self, setup: Setup) -> None:
        """Set attributes before the first round; `setup` has one run.  By default, nothing."""

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
        """Return the clients' weights after local training; by default 1/k, the average.

        `clients` are those selected that did not fail; see ``failure_weights``.
        """
        return np.full(len(clients), 1 / max(len(clients), 1))

    def saw_updates(self, clients: Ints, updates: NDArray[np.float32]) -> None:
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

    def __setattr__(self, name: str, value: Any) -> None:
        """Allow any attribute that neither changes a setting nor hides a method."""
        cls = type(self)
        if name in cls.model_fields:
            raise AttributeError(
                f"self.{name} is a setting and cannot change; "
                f"use another attribute, such as self.{name}_now"
            )
        if hasattr(Sampler, name) or isinstance(getattr(cls, name, None), property | FunctionType):
            raise AttributeError(
                f"self.{name} would hide the class's {name}; use another attribute"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete an attribute unless it is a setting."""
        if name in type(self).model_fields:
            raise AttributeError(f"self.{name} is a setting and cannot change")
        object.__delattr__(self, name)


@dataclass
class Runs:
    """The state of all runs: a copy of the sampler for each, and the present round's selections."""

    samplers: list[Sampler]
    view: View | None = None
    selections: list[Selection] = field(default_factory=list)


class StackedRuns:
    """A sampler for one run in the form of :class:`Scheme`, which handles all runs of a job."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def is_unbiased(self, setup: Setup) -> bool:
        """Whether E[ω_i] = p_i, as the sampler declares."""
        return self._sampler.is_unbiased(setup)

    def initial_state(self, setup: Setup) -> Runs:
        """Prepare a copy for each run."""
        setup_of_run = replace(setup, runs=1)
        # With the lists of the user's class.
        samplers = [self._sampler.model_copy(deep=True) for _ in range(setup.runs)]
        for sampler in samplers:
            sampler.prepare(lent(setup_of_run))
        return Runs(samplers)

    def begin(self, state: Runs, view: View, rng: Draws) -> Runs:
        """Let each run select its clients."""
        state.view, state.selections = view, []
        for run, generator in enumerate(rng.generators("clients")):
            of_run = run_view(run, view, view.observed)
            state.selections.append(self._selection(state, run, of_run, generator))
        return state

    def select(self, state: Runs, view: View, rng: Draws) -> Slots:
        """Join the clients of all runs."""
        return Slots.stack([clients for clients, _ in state.selections])

    def weigh(self, state: Runs, slots: Slots, view: View, rng: Draws) -> Array:
        """Return the weights that `select` returned, or call `weigh` of runs without weights."""
        weights, parts = [], _run_slices(slots, len(state.samplers))
        if "updates" in view.observed:
            for sampler, part in zip(state.samplers, parts, strict=True):
                with self._blame_sampler(view):
                    updates = view.observed["updates"][part]
                    sampler.saw_updates(lent(slots.client[part]), lent(updates))
        reported = self._reported(view)
        for run, (part, generator) in enumerate(zip(parts, rng.generators("weights"), strict=True)):
            clients, returned = state.selections[run]
            if returned is None and reported and type(self._sampler).weigh is Sampler.weigh:
                returned = np.full(len(clients), 1 / max(len(clients), 1))
            if reported:
                clients = clients[reported[run]]
                returned = None if returned is None else returned[reported[run]]
            if returned is None:
                rows = {name: view.observed[name][part] for name in SLOT_NEEDS & {*view.observed}}
                of_run = run_view(run, view, {**view.observed, **rows})
                returned = self._weights(state, run, clients, of_run, generator)
            weights.append(returned)
        return np.concatenate(weights)

    def _reported(self, view: View) -> list[Bools]:
        """Return which of each run's selections reported; empty in runs without failures."""
        if view.reports is None:
            return []
        parts = _run_slices(view.reports.selected, view.runs)
        return [view.reports.reported[part] for part in parts]

    def learn(self, state: Runs, slots: Slots, view: View) -> Runs:
        """Keep the samplers, which remember in their attributes."""
        return state

    def addition(self, state: Runs, slots: Slots, omega: Array) -> None:
        """Add nothing; this needs the stacked form."""

    def exchange_bits(self, state: Runs, slots: Slots, view: View) -> Array | None:
        """Return the bits of each run's exchange, shape (runs,); zero in runs without one.

        None depends on the class alone, so that a run has the same costs in every job.
        """
        if type(self._sampler).exchange_bits is Sampler.exchange_bits:
            return None
        returned = [sampler.exchange_bits() for sampler in state.samplers]
        bits = [0 if count is None else count for count in returned]
        for count in bits:
            if not (_is_number(count) and 0 <= count < np.inf):
                fault = f"exchange_bits returned {count!r:.60}; must be a number of bits"
                raise self._fault(view, fault)
        return np.array(bits, np.float64)

    def measured(self, state: Runs, slots: Slots, omega: Array, view: View) -> Mapping[str, Array]:
        """Return the quantities that the runs record, each of shape (runs,)."""
        rows = [sampler.measured() for sampler in state.samplers]
        for row in rows:
            if not (isinstance(row, Mapping) and all(map(_is_number, row.values()))):
                fault = f"measured returned {row!r:.60}; must be a dict of numbers"
                raise self._fault(view, fault)
            if odd := sorted(map(str, row.keys() ^ rows[0].keys())):
                fault = f"measured returned {odd[0]!r} in some runs only; return it in every run"
                raise self._fault(view, f"{fault}, NaN where there is none")
        return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}

    def asked(self, state: Runs, view: View) -> Bools | None:
        """Return the clients that had to compute something, shape (runs, n).

        None depends on the class alone, as for :meth:`exchange_bits`.
        """
        if type(self._sampler).asked is Sampler.asked:
            return None
        n = len(view.p)
        mask = np.zeros((len(state.samplers), n), np.bool_)
        for run, sampler in enumerate(state.samplers):
            clients = sampler.asked()
            if clients is None:
                mask[run] = requests_of_needs(sampler.needs, view.round, view.offered, n)
            else:
                mask[run, self._valid_clients(view, clients, "asked")] = True
        return mask

    def saved(self, state: Runs) -> dict[str, NDArray[Any]]:
        """Return everything that the runs remember, as arrays."""
        owner = f"sampler {self._sampler.named}: self"
        return {
            f"{run}:{name}": value
            for run, sampler in enumerate(state.samplers)
            for name, value in pack(_memory(sampler), owner).items()
        }

    def restored(self, state: Runs, saved: Mapping[str, NDArray[Any]]) -> Runs:
        """Set the attributes that :meth:`saved` returned, bit for bit."""
        for run, sampler in enumerate(state.samplers):
            start = f"{run}:"
            of_run = {k.removeprefix(start): v for k, v in saved.items() if k.startswith(start)}
            for name, value in unpack(of_run).items():
                setattr(sampler, name, value)
        return state

    def _selection(
        self, state: Runs, run: int, view: RunView, rng: np.random.Generator
    ) -> Selection:
        """Return a run's clients, and their weights if `select` returned them."""
        try:
            with self._blame_sampler(view):
                result = state.samplers[run].select(view, rng)
        except CodeError:
            if is_finite(view):
                raise
            return view.offered, None  # this run diverges, so its clients no longer matter
        weights = None
        if isinstance(result, tuple) and len(result) == 2 and np.ndim(result[0]):
            result, weights = result
        clients = self._valid_clients(view, result, "select")
        if weights is not None:
            weights = self._valid_weights(view, weights, clients, "select")
        return clients, weights

    def _valid_clients(self, view: View | RunView, result: Any, method: str) -> Ints:
        n = len(view.p)
        clients = as_array(result)
        if clients.ndim != 1 or (clients.size and clients.dtype.kind not in "iu"):
            raise self._fault(view, f"{method} returned {described_value(result)}; {CLIENTS_HINT}")
        clients = clients.astype(np.int64)  # a copy: the sampler may change its array
        if len(invalid := clients[(clients < 0) | (clients >= n)]):
            raise self._fault(view, f"{method} returned client {invalid[0]}; must be in 0…{n - 1}")
        return clients

    def _weights(
        self, state: Runs, run: int, clients: Ints, view: RunView, rng: np.random.Generator
    ) -> Array:
        """Return the weights of a run's clients that `weigh` computes."""
        try:
            with self._blame_sampler(view):
                weights = state.samplers[run].weigh(lent(clients), view, rng)
        except CodeError:
            if is_finite(view):
                raise
            return np.full(len(clients), np.nan)  # this run diverges
        return self._valid_weights(view, weights, clients, "weigh")

    def _valid_weights(self, view: RunView, weights: Any, clients: Ints, method: str) -> Array:
        array = as_array(weights)
        if array.shape != clients.shape or (array.size and array.dtype.kind not in "iuf"):
            raise self._fault(
                view,
                f"{method} returned {described_value(weights)} as weights; must be one number for "
                f"each of the {len(clients)} clients",
            )
        return array.astype(np.float64)

    def _blame_sampler(self, view: View | RunView) -> AbstractContextManager[None]:
        start = f"sampler {self._sampler.named}, round {view.round}"
        return blaming(type(self._sampler).__module__, start)

    def _fault(self, view: View | RunView, text: str) -> InputError:
        return InputError(f"sampler {self._sampler.named}, round {view.round}: {text}")


def _memory(sampler: Sampler) -> dict[str, Any]:
    """Return the attributes that are remembered from round to round."""
    fields = type(sampler).model_fields
    return {
        name: value
        for name, value in vars(sampler).items()
        if not name.startswith("_") and name not in fields
    }


def _is_number(value: Any) -> bool:
    array = as_array(value)
    return array.ndim == 0 and array.dtype.kind in "biuf"


def _run_slices(slots: Slots, runs: int) -> list[slice]:
    """Return the slice of each run's slots."""
    ends = np.searchsorted(slots.run, np.arange(runs + 1))
    return [slice(begin, end) for begin, end in pairwise(ends)]
