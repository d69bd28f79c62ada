"""The base class of samplers: a sampler's class is its algorithm, its settings and its name.

A sampler defines a distribution over aggregation weights ω.  In each round the server passes it a
:class:`View`.  The sampler returns :class:`Slots`, the clients that train, and after local training
one weight for each slot::

    class MD(Scheme, name="md"):
        m: Positive

        def select(self, view, rng):
            return Slots.stack(invert(view.p, rng.uniforms("clients", self.m)))

        def weigh(self, slots, view, rng):
            return np.full(len(slots), 1 / self.m)

Samplers are classes in this folder and in the files that users name
(:mod:`fedsampling.samplers.own_files`).  A job stacks independent runs (seeds).  A *slot* is the
local training of one client in one run.  The slots of all runs form one flat list, so a sampler may
select a different number of clients in each run.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from inspect import get_annotations
from types import FunctionType
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from fedsampling.base.blame import blaming
from fedsampling.base.errors import InputError, nearest
from fedsampling.base.families import Named
from fedsampling.base.records import Positive, check
from fedsampling.base.streams import Draws
from fedsampling.samplers import remembered

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # a sampler's name is also a folder's

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

Duplicates = Annotated[
    Literal["independently", "once"],
    Field(description="a client drawn twice trains twice, or once with twice the weight"),
]

Candidates = Annotated[
    Positive | None,
    Field(
        description="size of the random set of clients that a round selects from, for large "
        "populations; null: all clients",
        exclude_if=lambda size: size is None,  # keeps the hashes of earlier runs
    ),
]


@dataclass(frozen=True)
class Setup:
    """Everything a sampler may use to prepare a job, before the first round.

    Parameters
    ----------
    n_samples : int array, shape (n,)
    p : float array, shape (n,)
        Importance of each client.
    runs : int
        Runs stacked in this job.
    E, B : int array, shape (n,)
        Local epochs and mini-batch size of each client, for convex models; otherwise [1].
    optimum : mapping
        At the minimiser: ``w`` (M,), ``gradient`` (n, M), ``mean_norm`` (n,) and ``sample_norms``
        (n, N_max).  No practical server knows it; the optimal probabilities need it.
    labels : int array, shape (n,), optional
        Most frequent label of each client.  No practical server knows it; target sampling needs it.
    label_counts : int array, shape (n, classes), optional
        Training samples of each label on each client.
    dimension : int
        Number of the model's parameters.
    delays : float array, shape (n,), optional
        Expected duration of each client's round, in seconds.
    """

    n_samples: Ints
    p: Array
    runs: int = 1
    E: Ints = field(default_factory=lambda: np.ones(1, np.int64))
    B: Ints = field(default_factory=lambda: np.ones(1, np.int64))
    optimum: Mapping[str, Array] = field(default_factory=dict)
    labels: Ints | None = None
    dimension: int = 0
    delays: Array | None = None
    label_counts: Ints | None = None


@dataclass(frozen=True)
class View:
    """The server's information for a sampler in one round.

    Parameters
    ----------
    n_samples : int array, shape (n,)
        Samples of each client.
    p : float array, shape (n,)
        Importance of each client in the global objective; sums to one.  If only some clients are
        available, p is zero for the others and sums to one over the available clients.
    round : int
        Counted from 0.
    runs : int
        Runs stacked in this job.
    observed : mapping
        The quantities that ``needs`` names: ``losses`` and ``batch_losses`` (runs, n), on all of a
        client's samples or on one mini-batch; ``gradients`` (runs, n, d), ``heterogeneity`` (runs,
        n, n), ``delays`` (n,).  For ``weigh`` also ``update_norms`` and ``work_losses``, both
        (slots,), the latter the root mean square of the slot's mini-batch losses; and
        ``bias_updates`` (slots, classes), the part of the slot's update that belongs to the bias of
        the output layer.
    offered : int array, shape (offered,)
        Clients that are available in this round, ascending, the same in all runs; at least one.
        All clients unless the run has an ``availability``.
    """

    n_samples: Ints
    p: Array
    round: int
    runs: int
    observed: Mapping[str, Any] = field(default_factory=dict)
    offered: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.offered):
            object.__setattr__(self, "offered", np.arange(len(self.p)))

    def only(self, offered: Ints) -> "View":
        """Restrict the view to the available clients, and scale their importances to sum to one."""
        if len(offered) == len(self.p):
            return self
        p = np.zeros(len(self.p))
        p[offered] = self.p[offered] / self.p[offered].sum()
        return replace(self, p=p, offered=offered)


@dataclass(frozen=True)
class Slots:
    """The clients that train, one slot per draw.

    Parameters
    ----------
    run, client : int array, shape (slots,)
        Index of the run that the slot belongs to, ascending, and index of its client.
    scale : float array, shape (slots,)
        Factor on the client's local step size; one for most samplers.
    times : int array, shape (slots,)
        Number of draws that share this slot; one unless a client's repeated draws are merged.
    """

    run: Ints
    client: Ints
    scale: Array
    times: Ints = field(default_factory=lambda: np.ones(1, np.int64))

    def __post_init__(self) -> None:
        for name in ("run", "client", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        with suppress(ValueError):  # a wrong shape is reported when the round is validated
            object.__setattr__(self, "times", np.broadcast_to(self.times, self.client.shape))

    @classmethod
    def stack(cls, clients: Sequence[Ints] | Ints, times: Sequence[Ints] | None = None) -> "Slots":
        """Join the clients drawn in each run, and optionally how often each was drawn."""
        try:
            sizes = [len(drawn) for drawn in clients]
            client = np.concatenate(list(clients))
        except (TypeError, ValueError):  # the clients of a single run, or no array
            raise TypeError(
                "Slots.stack takes one array of clients for each run, such as shape (runs, m)"
            ) from None
        run = np.repeat(np.arange(len(clients)), sizes)
        often = np.ones(len(client), np.int64) if times is None else np.concatenate(times)
        return cls(run, client, np.ones(len(client)), often)

    @classmethod
    def of(cls, member: Bools) -> "Slots":
        """Make one slot for each True entry of `member`, shape (runs, n)."""
        run, client = np.nonzero(member)
        return cls(run, client, np.ones(len(client)))

    @classmethod
    def drawn(cls, clients: Ints, duplicates: str) -> "Slots":
        """Make slots from draws with replacement, shape (runs, m).

        ``independently`` gives each draw a slot.  ``once`` gives each distinct client a slot, with
        the number of its draws in ``times``.
        """
        if duplicates == "independently":
            return cls.stack(clients)
        unique, times = zip(*(np.unique(row, return_counts=True) for row in clients), strict=True)
        return cls.stack(unique, times)

    def __len__(self) -> int:
        return len(self.client)


@dataclass(frozen=True)
class Batch:
    """A mini-batch for each slot, padded to the largest.

    Parameters
    ----------
    index : int array, shape (slots, B)
        Position of each sample among its client's samples.
    weight : float array, shape (slots, B)
        Factor on the sample's gradient; zero for padding.
    """

    index: Ints
    weight: Array


class Scheme(Named, package="fedsampling.samplers"):
    """Base class of samplers.  Its fields are the settings; its methods run the rounds.

    A sampler must define :meth:`select` and :meth:`weigh`; everything else has a default.  Settings
    never change.  :meth:`prepared` returns a copy for each job, and other attributes of this copy
    may store anything.  Attributes without a leading underscore are remembered from round to round
    and must be arrays, numbers, text, lists or dicts.  Attributes with a leading underscore are
    temporary unless ``memory`` names them.

    Parameters
    ----------
    needs : frozenset of str
        Information that the sampler observes, from :data:`NETWORK_NEEDS` or :data:`CONVEX_NEEDS`:
        a class attribute, or a property if it depends on settings.  The server computes exactly
        this information and charges its cost.
    unbiased : bool
        Whether E[ω_i] = p_i on every population that the sampler accepts, where ω_i is summed over
        the slots of client i and multiplied by their ``scale``.  Class attribute or property.
    intermittent : bool
        Class attribute: whether the sampler selects only from ``view.offered``, and all of these
        clients if there are fewer than requested.  Runs with an ``availability`` require it.
    counts : tuple of str
        Class attribute: names of the settings that are numbers of clients; none of them may exceed
        the number of clients in the population.
    memory : tuple of str
        Class attribute: names, without the underscore, of the arrays ``self._name`` that are also
        remembered from round to round.
    shrinks : bool
        Class attribute: whether Σ ω_i may be far below one, for instance because clients that are
        not selected count as updates of zero.  Otherwise training warns of such sums.
    grows : bool
        Class attribute: whether Σ ω_i may be far above one.
    memory_order, time_order : str
        Class attributes: how many numbers the sampler stores during a selection, and how many
        operations a selection takes for each run, such as ``"4 n^2"``; see
        :mod:`fedsampling.samplers.order`.  Runs that cannot fit are rejected before they start.
    reads_blocks : bool
        Class attribute: whether the sampler reads only blocks ``B[np.ix_(some, some)]`` of
        ``heterogeneity``, so that only these pairs are computed.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    unbiased: ClassVar[bool] = True
    intermittent: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ("m",)
    memory: ClassVar[tuple[str, ...]] = ()
    memory_order: ClassVar[str] = "n"
    time_order: ClassVar[str] = "n"
    reads_blocks: ClassVar[bool] = False
    shrinks: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    def __init_subclass__(cls, name: str = "", **options: Any) -> None:
        """Reject names that cannot be folders, and settings that hide members of this class."""
        super().__init_subclass__(name=name, **options)
        if name and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InputError(
                f"class {cls.__name__}: the name {name!r} becomes a folder; use letters, digits, "
                "'-', '_' and '.', and begin with a letter or digit"
            )
        for key, kind in get_annotations(cls).items():
            if key in HOOKS and "ClassVar" not in str(kind):
                raise InputError(
                    f"class {cls.__name__}: {key} cannot be a setting, as every sampler has it; "
                    f"write '{key} = …' without a type, or rename the setting"
                )

        needs, attributes = cls.__dict__.get("needs"), cls.__dict__
        if isinstance(needs, set | list | tuple):
            cls.needs = frozenset(needs)
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

    def fit(self, clients: int) -> None:
        """Raise ValueError if a setting requests more clients than the population has."""
        for key in self.counts:
            if (number := getattr(self, key, None) or 0) > clients:
                raise ValueError(
                    f"sampler.{key}: {number} exceeds the {clients} clients; give at most {clients}"
                )

    def trained(self, clients: int, rounds: int) -> float:
        """Estimate the number of clients that train in a round, for estimates of a plan's costs."""
        numbers = (getattr(self, key, None) for key in self.counts)
        return float(next((number for number in numbers if number), clients))

    def prepared(self, setup: Setup) -> Self:
        """Return a copy that is ready for the rounds of one job.

        Raises
        ------
        InputError
            If there are fewer clients than requested, or information in ``needs`` is missing.
        """
        try:
            self.fit(len(setup.p))
        except ValueError as error:
            raise InputError(str(error)) from None
        for name, known, fix in (
            ("delays", setup.delays, "set delays, such as synthetic"),
            ("labels", setup.labels, "give them"),
            ("label_counts", setup.label_counts, "give them"),
        ):
            if name in self.needs and known is None:
                raise InputError(
                    f"sampler.name: {self.named} needs the clients' {name}, which are missing; "
                    f"{fix}, or use another sampler"
                )
        ready = self.model_copy()
        with blaming(type(self).__module__, f"sampler {self.named}"):
            ready.prepare(setup)
        return ready

    def prepare(self, setup: Setup) -> None:
        """Compute values that a job needs only once; by default nothing."""

    def select(self, view: View, rng: Draws) -> Slots:
        """Select the clients of a round, before local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method select")

    def weigh(self, slots: Slots, view: View, rng: Draws) -> Array:
        """Return each slot's aggregation weight ω, shape (slots,), after local training."""
        raise NotImplementedError(f"{type(self).__name__} has no method weigh")

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
        return named | remembered.pack(plain, self.named)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Set the attributes that :meth:`state` returned, bit for bit."""
        for name in self.memory:
            setattr(self, f"_{name}", state[name].copy())
        for name, value in remembered.unpack(state).items():
            setattr(self, name, value)

    def saw_updates(self, slots: Slots, updates: NDArray[np.float32]) -> None:
        """Receive θ_i − θ of each slot, shape (slots, d), if ``needs`` contains "updates"."""
        raise NotImplementedError(f"{type(self).__name__} has no method saw_updates")

    def addition(self) -> NDArray[np.float32] | None:
        """Return a vector to add to Σ ω_i (θ_i − θ) of each run, shape (runs, d).

        For samplers that remember updates: the part of the server's step that belongs to clients
        that did not train.  It is requested after :meth:`weigh`.  None, the default, adds nothing.
        """
        return None

    def exchange_bits(self) -> Array | None:
        """Bits that the clients of each run sent in the last round's exchange, shape (runs,).

        None, the default: clients send nothing but models and the information in ``needs``, which
        are charged separately.
        """
        return None

    def local_models(
        self, slots: Slots, view: View, theta: NDArray[np.floating]
    ) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
        """Return models to train, shape (slots, d), and the model to step from, shape (runs, d).

        For samplers whose clients keep models of their own.  None, the default: slots train their
        run's global model in `theta`, shape (runs, d), and the server's step starts from it, too.
        It is requested after :meth:`select`.
        """
        return None

    def measured(self) -> Mapping[str, Array]:
        """Quantities of the last round to record, by name, each of shape (runs,)."""
        return {}

    def asked(self) -> Bools | None:
        """Clients that had to compute something for the last selection, shape (runs, n).

        Their time is charged.  None means all clients if ``needs`` requires any computation.
        """
        return None


# Members of every sampler, which no setting or attribute may hide.
HOOKS = frozenset(name for name in dir(Scheme) if not name.startswith("_"))


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


def invert(probability: Array, u: Array) -> Ints:
    """Turn uniform variates into clients by inverting the distribution function.

    Parameters
    ----------
    probability : float array, shape (n,)
        Sums to one up to rounding.
    u : float array of any shape
        Uniform on [0, 1).

    Returns
    -------
    int array, shape of `u`
        Clients with positive probability.
    """
    cumulative = np.cumsum(probability)
    # Division by the last value makes it exactly one, so that every u < 1 is below it.
    return np.searchsorted(cumulative / cumulative[-1], u, side="right").astype(np.int64)


def distinct(n: int, u: Array) -> Ints:
    """Choose m of n units from m uniform variates; all ordered choices are equally likely.

    Parameters
    ----------
    u : float array, shape (runs, m)
        In [0, 1).

    Returns
    -------
    int array, shape (runs, m)

    References
    ----------
    The first m swaps of the shuffle of Fisher and Yates: Knuth, TAOCP 2, algorithm 3.4.2 P.
    """
    runs = np.arange(len(u))
    units = np.tile(np.arange(n), (len(u), 1))
    for j, u_j in enumerate(u.T):
        other = j + (u_j * (n - j)).astype(np.int64)
        units[runs, other], units[:, j] = units[:, j], units[runs, other]
    return units[:, : u.shape[1]].copy()


def candidate_set(n: int, size: int | None, rng: np.random.Generator) -> Ints:
    """Draw `size` of n units without replacement, all sets equally likely; all units if None.

    Returns
    -------
    int array, shape (min(size, n),)
        Ascending.
    """
    if size is None or size >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, size, replace=False, shuffle=False))


def among_present(slots: Slots, view: View) -> Array:
    """Return p_i divided by the sum over the slots of its run, so that a run's weights sum to 1."""
    p = view.p[slots.client]
    total = np.bincount(slots.run, p, view.runs)[slots.run]
    return np.divide(p, total, out=np.zeros(len(slots)), where=total > 0)


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


def _observable(by: frozenset[str], models: str) -> AfterValidator:
    """Accept the samplers whose ``needs`` are all in `by`."""

    def suits(chosen: Scheme) -> Scheme:
        if missing := sorted(chosen.needs - by):
            raise ValueError(
                f"{chosen.named} needs {', '.join(missing)}, which {models} do not provide; "
                "use another sampler"
            )
        return chosen

    return AfterValidator(suits)


def among(*names: str) -> AfterValidator:
    """Accept the samplers with these names."""

    def suits(chosen: Scheme) -> Scheme:
        if chosen.named not in names:
            raise ValueError(f"{chosen.named} is not supported here; use {' or '.join(names)}")
        return chosen

    return AfterValidator(suits)


NetworkScheme = Annotated[Scheme, _observable(NETWORK_NEEDS, "networks")]
ConvexScheme = Annotated[Scheme, _observable(CONVEX_NEEDS, "convex models")]


def every_sampler(records: Mapping[str, Any], away: bool = False) -> dict[str, dict[str, Any]]:
    """Expand the label ``"*"`` into all samplers that no other label names.

    Parameters
    ----------
    records : mapping
        Samplers by label.  The record of ``"*"`` holds settings for all samplers that have them.
        A label whose record is null leaves the sampler of that name out.
    away : bool
        Whether clients can be unavailable, which leaves out samplers that need all clients.

    Returns
    -------
    dict
        Records of samplers that can train networks, without ``"*"``.

    Raises
    ------
    InputError
        If ``"*"`` holds a setting that none of these samplers has.
    """
    labelled = {label: record for label, record in records.items() if label != "*"}
    named = {label: record for label, record in labelled.items() if record is not None}
    taken = {(record or {}).get("name", label) for label, record in labelled.items()}
    common = records["*"]
    others = {
        name: member
        for name, member in Scheme.members().items()
        if name not in taken and not issubclass(member, DataScheme)
    }
    known = {key for member in others.values() for key in member.model_fields}
    if unknown := [key for key in common if key not in known]:
        raise InputError(
            *(f"*.{key}: no sampler has this setting; {nearest(key, known)}" for key in unknown)
        )
    return named | {
        name: {"name": name} | {key: common[key] for key in common if key in member.model_fields}
        for name, member in others.items()
        if member.intermittent or not away
    }
