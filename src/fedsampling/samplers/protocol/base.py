"""The base class of samplers: a sampler's class is its algorithm, its settings and its name.

A sampler defines a distribution over aggregation weights ω.  In each round the server passes it a
:class:`~fedsampling.samplers.protocol.slots.View`.  The sampler returns the clients that train,
:class:`~fedsampling.samplers.protocol.slots.Slots`, and after local training one weight for each
slot::

    class MD(Scheme, name="md"):
        m: Positive

        def select(self, state, view, rng):
            return Slots.stack(invert(view.p, rng.uniforms("clients", self.m)))

        def weigh(self, state, slots, view, rng):
            return np.full(len(slots), 1 / self.m)

Settings are frozen.  What a sampler remembers is its *state*, a small dataclass of arrays: it goes
into each call, :meth:`Scheme.begin` and :meth:`Scheme.learn` return the next one, and it is the
checkpoint.  :class:`~fedsampling.samplers.protocol.prepared.Prepared` keeps it during a job.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import fields, replace
from inspect import get_annotations
from types import FunctionType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError, nearest
from fedsampling.base.families import Named
from fedsampling.base.records import check
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.guest import pack, unpack
from fedsampling.samplers.protocol.slots import Batch, Setup, Slots, View

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # a sampler's name is also a folder's
TITLE = re.compile(r"[\w .,:;()'+/–-]{0,80}")  # pages, LaTeX and figures show it as it is

# Names that ``needs`` may contain, by the kind of training that can observe them.
NETWORK_NEEDS = frozenset(
    {
        "batch_losses",
        "bias_updates",
        "delays",
        "gradients",
        "heterogeneity",
        "label_counts",
        "labels",
        "losses",
        "update_norms",
        "updates",
        "work_losses",
    }
)
CONVEX_NEEDS = frozenset(
    {"batch_gradients", "client_gradients", "mean_norms", "optimum", "sample_norms"}
)
EVERY_ROUND = frozenset({"losses", "batch_losses"})  # requested before every selection
FIRST_ROUND = frozenset({"heterogeneity", "gradients"})  # requested from all clients before round 0
FailureWeights = Literal["divide", "average", "own"]
FAILURE_WEIGHTS = get_args(FailureWeights)


class Scheme(Named, package="fedsampling.samplers"):
    """Base class of samplers.  Its fields are the settings; its methods run the rounds.

    A sampler must define :meth:`select` and :meth:`weigh`; everything else has a default.  The
    class arguments ``name``, ``title`` and ``short`` are its key and its names on pages and in
    figures.  A round is ``begin``, ``select``, local training, ``weigh``, ``learn``.

    The parameters below are class attributes; ``needs`` may be a property of the settings.

    Parameters
    ----------
    needs : frozenset of str
        Information that the sampler observes, from :data:`NETWORK_NEEDS` or :data:`CONVEX_NEEDS`.
        The server computes exactly this information and charges its cost.
    unbiased : bool or None
        Whether E[ω_i] = p_i on every population that the sampler accepts, where ω_i is summed over
        the slots of client i and multiplied by their ``scale``.  None: :meth:`is_unbiased` decides.
    intermittent : bool
        Whether the sampler selects only from ``view.offered``, and all of these clients if there
        are fewer than requested.  Runs with an ``availability`` require it.
    counts : tuple of str
        Names of the settings that are numbers of clients; none of them may exceed the number of
        clients in the population.
    shrinks : bool
        Whether Σ ω_i may be far below one, for instance because clients that are not
        selected count as updates of zero.  Otherwise training warns of such sums.
    failure_weights : {"divide", "average", "own"}
        What corrects the weights if selected clients fail to report.  ``weigh`` gets only those
        that report.  ``divide``: their weights are divided by their probabilities of reporting, so
        that E[ω_i] stays.  ``average``: for weights that ``weigh`` normalises over its slots; their
        sum is kept.  ``own``: nothing; the sampler itself accounts for missing reports.
    pair_matrices : int
        Number of n × n matrices of doubles that a selection holds at once for each run, the one in
        ``heterogeneity`` included.  Jobs on a cluster request this memory.
    grid : dict
        Settings that tuning in the benchmark varies, and their values for five clients per round:
        ``(low, high, spread)`` with the spread ``"linear"``, ``"log"`` or ``"integer"``, or a tuple
        of choices.
    """

    needs: ClassVar[Set[str]] = frozenset()
    unbiased: ClassVar[bool | None] = True
    intermittent: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ("m",)
    shrinks: ClassVar[bool] = False
    failure_weights: ClassVar[FailureWeights] = "divide"
    pair_matrices: ClassVar[int] = 0
    grid: ClassVar[Mapping[str, Any]] = {}
    is_stacked: ClassVar[bool] = True  # whether its methods see all runs of a job at once

    def initial_state(self, setup: Setup) -> Any:
        """Return the state before the first round: a dataclass of arrays, or None, the default.

        Its fields may also be numbers, text, lists or dicts; a checkpoint saves all of them.
        """
        return None

    def begin(self, state: Any, view: View, rng: Draws) -> Any:
        """Return the state after the information that is observed before the selection.

        Like :meth:`learn`, it may change the arrays of its argument in place.  By default, the
        state stays.
        """
        return state

    def select(self, state: Any, view: View, rng: Draws) -> Slots:
        """Select the clients of a round, before local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method select")

    def weigh(self, state: Any, slots: Slots, view: View, rng: Draws) -> Array:
        """Return each slot's aggregation weight ω, shape (slots,), after local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method weigh")

    def learn(self, state: Any, slots: Slots, view: View) -> Any:
        """Return the state after a round; `view.observed` has the participants' reports.

        By default, the state stays.
        """
        return state

    def addition(self, state: Any, slots: Slots, omega: Array) -> NDArray[np.float32] | None:
        """Return a vector to add to Σ ω_i (θ_i − θ) of each run, shape (runs, d).

        For samplers that remember updates: the part of the server's step that belongs to clients
        that did not train.  It is requested after :meth:`weigh` and before :meth:`learn`.  None,
        the default, adds nothing.
        """
        return None

    # Costs and metrics, beyond those of `needs`.

    def exchange_bits(self, state: Any, slots: Slots, view: View) -> Array | None:
        """Bits that the clients of each run sent in the round's exchange, shape (runs,).

        None, the default: clients send nothing but models and the information in ``needs``, which
        are charged separately.
        """
        return None

    def asked(self, state: Any, view: View) -> Bools | None:
        """Clients that had to compute something for the selection, shape (runs, n).

        Their time is charged.  None means all clients if ``needs`` requires any computation.
        """
        return None

    def measured(self, state: Any, slots: Slots, omega: Array, view: View) -> Mapping[str, Array]:
        """Quantities of the round to record, by name, each of shape (runs,)."""
        return {}

    # Facts about a population.

    def is_unbiased(self, setup: Setup) -> bool:
        """Whether E[ω_i] = p_i on this population: by default, as the class declares."""
        return bool(self.unbiased)

    def check_population(self, clients: int) -> None:
        """Raise ValueError if a setting requests more clients than the population has."""
        for key in self.counts:
            if (count := getattr(self, key, None) or 0) > clients:
                raise ValueError(
                    f"sampler.{key}: {count} exceeds the {clients} clients; give at most {clients}"
                )

    def expected_clients(self, clients: int, rounds: int) -> float:
        """Estimate the number of clients that train in a round, for estimates of a plan's costs."""
        numbers = (getattr(self, key, None) for key in self.counts)
        return float(next((number for number in numbers if number), clients))

    # The library calls these; samplers seldom override them.

    def stacked(self) -> "Scheme":
        """Return the sampler that handles all runs of a job at once: this one."""
        return self

    def saved(self, state: Any) -> dict[str, NDArray[Any]]:
        """Return the fields of a state as arrays for a checkpoint.

        Raises
        ------
        InputError
            If a field is neither an array nor plain data.
        """
        if state is None:
            return {}
        values = {field.name: getattr(state, field.name) for field in fields(state)}
        return pack(values, f"sampler {self.named}: state")

    def restored(self, state: Any, saved: Mapping[str, NDArray[Any]]) -> Any:
        """Return a state with the fields that :meth:`saved` returned, bit for bit."""
        return state if state is None else replace(state, **unpack(saved))

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: settings are frozen, and there are no other attributes."""
        raise AttributeError(
            f"self.{name} cannot be set: a Scheme's attributes are its settings, which are frozen; "
            "keep memory in the state that initial_state, begin and learn return"
        )

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        """Reject names that cannot be folders, and settings that hide members of this class."""
        super().__init_subclass__(name=name, **options)
        if name and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InputError(
                f"class {cls.__name__}: the name {name!r} becomes a folder; use letters, digits, "
                "'-', '_' and '.', and begin with a letter or digit"
            )
        for key in ("titled", "short"):
            text = options.get(key, "")
            if not (isinstance(text, str) and TITLE.fullmatch(text)):
                raise InputError(
                    f"class {cls.__name__}: the title {text!r} is invalid; use at most 80 letters, "
                    "digits, spaces and -_.,:;()'+/"
                )
        for key, kind in get_annotations(cls).items():
            if hasattr(Scheme, key) and "ClassVar" not in str(kind):
                raise InputError(
                    f"class {cls.__name__}: {key} cannot be a setting, as every sampler has it; "
                    f"write '{key} = …' without a type, or rename the setting"
                )

        attributes = cls.__dict__
        if not isinstance(needs := attributes.get("needs", frozenset()), property):
            names = [needs] if isinstance(needs, str) else needs
            is_list = isinstance(names, set | frozenset | list | tuple)
            if not (is_list and all(isinstance(name, str) for name in names)):
                raise InputError(
                    f"class {cls.__name__}: needs = {needs!r} is invalid; must be a set of names"
                )
            if "needs" in attributes:
                cls.needs = frozenset(names)
        if not isinstance(cls.grid, Mapping):
            raise InputError(
                f"class {cls.__name__}: grid = {cls.grid!r} is invalid; must be a dict"
            )
        if cls.failure_weights not in FAILURE_WEIGHTS:
            raise InputError(
                f"class {cls.__name__}: failure_weights = {cls.failure_weights!r} is unknown; "
                f"{nearest(str(cls.failure_weights), FAILURE_WEIGHTS)}"
            )
        if isinstance(attributes.get("counts"), str):  # ("name"), which lacks the comma of a tuple
            cls.counts = (attributes["counts"],)
        if cls.is_stacked:
            _check_form(cls)


def requests_of_needs(needs: Set[str], round: int, offered: Ints, clients: int) -> Bools:
    """Return the clients that must compute something before a selection, shape (clients,).

    These are all available clients if ``needs`` has losses, and in the first round all clients if
    it has features or gradients.
    """
    requested = np.full(clients, round == 0 and bool(FIRST_ROUND & needs))
    requested[offered] |= bool(EVERY_ROUND & needs)
    return requested


def _check_form(cls: type[Scheme]) -> None:
    """Reject the form of earlier versions, in which memory was in attributes of the sampler."""
    old = [name for name in ("prepare", "saw_updates", "memory") if name in cls.__dict__]
    for name, arguments in (("select", 4), ("weigh", 5)):
        method = cls.__dict__.get(name)
        if isinstance(method, FunctionType) and method.__code__.co_argcount < arguments:
            old.append(name)
    if old:
        raise InputError(
            f"class {cls.__name__}: {old[0]} is of an earlier form; write select(self, state, "
            "view, rng), weigh(self, state, slots, view, rng), and for memory initial_state(self, "
            "setup) and learn(self, state, slots, view), or derive it from fedsampling.Sampler"
        )


class DataScheme(Scheme):
    """A sampler that also samples the clients' data, for convex models only."""

    def saw_samples(self, state: Any, slots: Slots, norms: Array) -> Any:
        """Return the state after the gradient norms of all samples at the round's first model."""
        raise NotImplementedError

    def batch(self, state: Any, slots: Slots, d: Array) -> Batch:
        """Return each slot's mini-batch, from one uniform variate `d` per slot."""
        raise NotImplementedError

    def saw_batch(self, state: Any, slots: Slots, batch: Batch, norms: Array) -> Any:
        """Return the state after the gradient norms of each batch at the round's first model."""
        raise NotImplementedError

    def saw_round(self, state: Any, slots: Slots, observed: Mapping[str, Any]) -> Any:
        """Return the state after the clients' reports at the end of the round."""
        raise NotImplementedError


def scheme(name: str, **settings: Any) -> Scheme:
    """Create a sampler from its name and settings.

    Parameters
    ----------
    name : str
        Such as ``"md"``; :func:`fedsampling.samplers` lists all.
    **settings
        Settings of this sampler.

    Raises
    ------
    InputError
        If the name is unknown or a setting is invalid.

    Examples
    --------
    >>> import fedsampling as fs
    >>> fs.scheme("md", m=4).m
    4
    """
    try:
        member = Scheme.member(name)
    except ValueError as error:
        raise InputError(f"scheme.name: {error}") from None
    return check(member, {"name": name, **settings}, "scheme.")
