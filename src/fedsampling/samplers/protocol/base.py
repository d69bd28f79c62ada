"""The base class of samplers: a sampler's class is its algorithm, its settings and its name.

A sampler defines a distribution over aggregation weights ω.  In each round the server passes it a
:class:`~fedsampling.samplers.protocol.slots.View`.  The sampler returns the clients that train,
:class:`~fedsampling.samplers.protocol.slots.Slots`, and after local training one weight for each
slot::

    class MD(Scheme, name="md"):
        m: Positive

        def select(self, view, rng):
            return Slots.stack(invert(view.p, rng.uniforms("clients", self.m)))

        def weigh(self, slots, view, rng):
            return np.full(len(slots), 1 / self.m)

Samplers are classes in this folder and in the files that users name
(:mod:`fedsampling.samplers.protocol.in_settings`).  A sampler's file can import everything that it
needs from this module.
"""

import re
from collections.abc import Mapping, Set
from inspect import get_annotations
from types import FunctionType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools
from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.base.records import check
from fedsampling.base.streams import Draws
from fedsampling.samplers.protocol.guest import CallGuard, is_user, lent, pack, unpack
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


class Scheme(Named, package="fedsampling.samplers"):
    """Base class of samplers.  Its fields are the settings; its methods run the rounds.

    A sampler must define :meth:`select` and :meth:`weigh`; everything else has a default.  The
    class arguments ``name``, ``title`` and ``short`` are its key and its names on pages and in
    figures.

    Settings never change.  Each job works on a copy, which :meth:`prepared` returns; its other
    attributes may store anything.  Attributes without a leading underscore are remembered from
    round to round and must be arrays, numbers, text, lists or dicts.  Attributes with a leading
    underscore are temporary unless ``memory`` names them.

    The parameters below are class attributes, or properties if they depend on settings.

    Parameters
    ----------
    needs : frozenset of str
        Information that the sampler observes, from :data:`NETWORK_NEEDS` or :data:`CONVEX_NEEDS`.
        The server computes exactly this information and charges its cost.
    unbiased : bool
        Whether E[ω_i] = p_i on every population that the sampler accepts, where ω_i is summed over
        the slots of client i and multiplied by their ``scale``.
    intermittent : bool
        Whether the sampler selects only from ``view.offered``, and all of these clients if there
        are fewer than requested.  Runs with an ``availability`` require it.
    counts : tuple of str
        Names of the settings that are numbers of clients; none of them may exceed the number of
        clients in the population.
    memory : tuple of str
        Names, without the underscore, of the arrays ``self._name`` that are also remembered from
        round to round.
    shrinks : bool
        Whether Σ ω_i may be far below one, for instance because clients that are not
        selected count as updates of zero.  Otherwise training warns of such sums.
    pair_matrices : int
        Number of n × n matrices of doubles that a selection holds at once for each run, the one in
        ``heterogeneity`` included.  Jobs on a cluster request this memory.
    grid : dict
        Settings that tuning in the benchmark varies, and their values for five clients per round:
        ``(low, high, spread)`` with the spread ``"linear"``, ``"log"`` or ``"integer"``, or a tuple
        of choices.
    """

    needs: ClassVar[Set[str]] = frozenset()
    unbiased: ClassVar[bool] = True
    intermittent: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ("m",)
    memory: ClassVar[tuple[str, ...]] = ()
    shrinks: ClassVar[bool] = False
    pair_matrices: ClassVar[int] = 0
    grid: ClassVar[Mapping[str, Any]] = {}

    def prepare(self, setup: Setup) -> None:
        """Compute values that a job needs only once; by default nothing."""

    def select(self, view: View, rng: Draws) -> Slots:
        """Select the clients of a round, before local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method select")

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return each slot's aggregation weight ω, shape (slots,), after local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method weigh")

    # For samplers that use the clients' updates or models.

    def saw_updates(self, slots: Slots, updates: NDArray[np.float32]) -> None:
        """Receive θ_i − θ of each slot, shape (slots, d), if ``needs`` contains "updates"."""
        raise NotImplementedError(f"{type(self).__name__} has no method saw_updates")

    def addition(self) -> NDArray[np.float32] | None:
        """Return a vector to add to Σ ω_i (θ_i − θ) of each run, shape (runs, d).

        For samplers that remember updates: the part of the server's step that belongs to clients
        that did not train.  It is requested after :meth:`weigh`.  None, the default, adds nothing.
        """
        return None

    # Costs and metrics, beyond those of `needs`.

    def exchange_bits(self) -> Array | None:
        """Bits that the clients of each run sent in the last round's exchange, shape (runs,).

        None, the default: clients send nothing but models and the information in ``needs``, which
        are charged separately.
        """
        return None

    def asked(self) -> Bools | None:
        """Clients that had to compute something for the last selection, shape (runs, n).

        Their time is charged.  None means all clients if ``needs`` requires any computation.
        """
        return None

    def measured(self) -> Mapping[str, Array]:
        """Quantities of the last round to record, by name, each of shape (runs,)."""
        return {}

    # The library calls these; samplers seldom override them.

    def prepared(self, setup: Setup) -> Self:
        """Return a copy that is ready for the rounds of one job.

        Raises
        ------
        InputError
            If there are fewer clients than requested, or information in ``needs`` is missing.
        """
        (ready,) = prepared_copies(self, setup, 1)
        return ready

    def _check_setup(self, setup: Setup) -> None:
        """Raise InputError if there are too few clients or information is missing."""
        try:
            self.check_population(len(setup.p))
        except ValueError as error:
            raise InputError(str(error)) from None
        for name, fix in (
            ("delays", "set delays, such as synthetic"),
            ("labels", "give them"),
            ("label_counts", "give them"),
        ):
            if name in self.needs and getattr(setup, name) is None:
                raise InputError(
                    f"sampler.name: {self.named} needs the clients' {name}, which are missing; "
                    f"{fix}, or use another sampler"
                )

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

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that is remembered, as arrays for a checkpoint.

        Raises
        ------
        InputError
            If an attribute is neither an array nor plain data.
        """
        if missing := [name for name in self.memory if not hasattr(self, f"_{name}")]:
            raise InputError(
                f"sampler {self.named}: memory names {missing[0]!r}, but self._{missing[0]} does "
                "not exist; set it in prepare"
            )
        named = {name: getattr(self, f"_{name}") for name in self.memory}
        plain = {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and name not in type(self).model_fields
        }
        return named | pack(plain, self.named)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Set the attributes that :meth:`state` returned, bit for bit."""
        for name in self.memory:
            setattr(self, f"_{name}", state[name].copy())
        for name, value in unpack(state).items():
            setattr(self, name, value)

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
            if key in HOOKS and "ClassVar" not in str(kind):
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
        for key in ("counts", "memory"):
            if isinstance(attributes.get(key), str):  # ("name"), which lacks the comma of a tuple
                setattr(cls, key, (attributes[key],))

    def __setattr__(self, name: str, value: Any) -> None:
        """Allow any attribute that neither changes a setting nor hides a method."""
        cls = type(self)
        if name in cls.model_fields:
            raise AttributeError(
                f"self.{name} is a setting and cannot change; "
                f"use another attribute, such as self.{name}_now"
            )
        if name in HOOKS or isinstance(getattr(cls, name, None), property | FunctionType):
            raise AttributeError(
                f"self.{name} would hide the class's {name}; use another attribute"
            )
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete an attribute unless it is a setting."""
        if name in type(self).model_fields:
            raise AttributeError(f"self.{name} is a setting and cannot change")
        object.__delattr__(self, name)


SchemeT = TypeVar("SchemeT", bound=Scheme)

# Members of every sampler, which no setting or attribute may hide.
HOOKS = frozenset(name for name in dir(Scheme) if not name.startswith("_"))


def prepared_copies(scheme: SchemeT, setup: Setup, copies: int) -> list[SchemeT]:
    """Return copies of a sampler that are ready for the rounds of one job."""
    scheme._check_setup(setup)
    if not is_user(type(scheme)):
        ready = [scheme.model_copy() for _ in range(copies)]
        for sampler in ready:
            sampler.prepare(setup)
        return ready
    ready = [scheme.model_copy(deep=True) for _ in range(copies)]  # with lists of the user's class
    with CallGuard(type(scheme), scheme.named).calling():
        for sampler in ready:
            sampler.prepare(lent(setup))
    return ready


class DataScheme(Scheme):
    """A sampler that also samples the clients' data, for convex models only."""

    def saw_samples(self, slots: Slots, norms: Array) -> None:
        """Receive the gradient norms of all samples of each slot at the round's first model."""
        raise NotImplementedError

    def batch(self, slots: Slots, d: Array) -> Batch:
        """Return each slot's mini-batch, from one uniform variate `d` per slot."""
        raise NotImplementedError

    def saw_batch(self, slots: Slots, batch: Batch, norms: Array) -> None:
        """Receive the gradient norms of each batch at the round's first model."""
        raise NotImplementedError

    def saw_round(self, slots: Slots, observed: Mapping[str, Any]) -> None:
        """Receive the clients' reports at the end of the round."""
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
