"""The data that server and sampler exchange: :class:`Setup`, :class:`View`, :class:`Slots`.

A job stacks independent runs (seeds).  A *slot* is the local training of one client in one run.
The slots of all runs form one flat list, so a sampler may select a different number of clients in
each run.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints

Duplicates = Annotated[
    Literal["independently", "once"],
    Field(description="a client drawn twice trains twice, or once with twice the weight"),
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
    info : mapping of str to array, shape (n,)
        Properties of the clients, such as their energy: the columns of ``client_info``.
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
    info: Mapping[str, NDArray[Any]] = field(default_factory=dict)


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
    reports : Reports, optional
        After the selection, in runs with ``failures``: which of the selected slots reported.
    """

    n_samples: Ints
    p: Array
    round: int
    runs: int
    observed: Mapping[str, Any] = field(default_factory=dict)
    offered: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    reports: "Reports | None" = None

    def __post_init__(self) -> None:
        if not len(self.offered):
            object.__setattr__(self, "offered", np.arange(len(self.p)))

    def restricted_to(self, offered: Ints) -> "View":
        """Return the view of the available clients, whose importances then sum to one."""
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
        counts = np.ones(len(client), np.int64) if times is None else np.concatenate(times)
        return cls(run, client, np.ones(len(client)), counts)

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

    def at(self, chosen: Bools) -> "Slots":
        """Return the slots that are marked in `chosen`, shape (slots,)."""
        run, client = self.run[chosen], self.client[chosen]
        return Slots(run, client, self.scale[chosen], self.times[chosen])

    def __len__(self) -> int:
        return len(self.client)


@dataclass(frozen=True)
class Reports:
    """Which of a round's selected slots reported, in runs with ``failures``.

    ``weigh`` and ``learn`` get only the slots that reported, in the same order.

    Parameters
    ----------
    selected : Slots
    reported : bool array, shape (selected slots,)
    chance : float array, shape (n,), optional
        Each client's probability of reporting if it is selected; None if it is unknown.
    """

    selected: Slots
    reported: Bools
    chance: Array | None = None


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


def normalised_importances(slots: Slots, view: View) -> Array:
    """Return p_i divided by the sum over the slots of its run, so that a run's weights sum to 1."""
    p = view.p[slots.client]
    total = np.bincount(slots.run, p, view.runs)[slots.run]
    return np.divide(p, total, out=np.zeros(len(slots)), where=total > 0)


def averages(slots: Slots, view: View) -> Array:
    """Return one divided by the number of slots in the run, shape (slots,)."""
    weights: Array = 1 / np.bincount(slots.run, minlength=view.runs)[slots.run]
    return weights


def allowing_for_failures(omega: Array, slots: Slots, reports: Reports, rule: str) -> Array:
    """Correct the weights of the slots that reported for those that did not, shape (slots,).

    ``divide`` divides by the client's probability of reporting, which keeps E[ω_i] as it would be
    without failures (Horvitz, Thompson 1952); if that is unknown, by the share of the run's slots
    that reported.  ``average`` divides as well, but keeps the sum of each run's weights (Hájek
    1971).  ``own`` changes nothing.
    """
    if rule == "own" or not len(slots):
        return omega
    runs = int(reports.selected.run.max()) + 1
    if reports.chance is not None:
        corrected = omega / reports.chance[slots.client]
    elif rule == "average":
        return omega
    else:
        selected = np.bincount(reports.selected.run, minlength=runs)
        reported = np.bincount(slots.run, minlength=runs)
        corrected = omega * (selected / np.maximum(reported, 1))[slots.run]
    if rule == "divide":
        return corrected
    before, after = (np.bincount(slots.run, part, runs) for part in (omega, corrected))
    scale = np.divide(before, after, out=np.ones(runs), where=after != 0)
    return corrected * scale[slots.run]
