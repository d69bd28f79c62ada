"""A sampler's cohorts for training in another framework: selected clients and their weights.

A round has the steps and the random numbers of
:func:`fedsampling.learning.training.loop.play_round`, so equal seeds give the same clients and
weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.data.user_arrays import numbers
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Reports, Setup, Slots, View

# Information that a sampler may need.  Other frameworks' clients do not send gradients or features
# unless they are selected.
REPORTED = frozenset({"delays", "labels", "losses", "update_norms", "updates", "work_losses"})


class Cohort:
    """The cohorts of one training, round by round: :meth:`select`, then :meth:`weigh`.

    For each client, `n_samples` has the number of samples, to which importances are proportional,
    `labels` the most frequent label, and `delays` the expected seconds; samplers that need labels
    or delays require them.  `dimension` is the number of the model's parameters; `seed`, from 0 to
    2**32 − 1, determines the selection.
    """

    def __init__(
        self,
        scheme: Scheme,
        n_samples: Sequence[int] | Ints,
        dimension: int,
        seed: int = 0,
        *,
        labels: Sequence[int] | None = None,
        delays: Sequence[float] | None = None,
    ) -> None:
        if missing := sorted(scheme.needs - REPORTED):
            raise InputError(
                f"scheme: {scheme.named} needs {', '.join(missing)}, which other frameworks' "
                "clients do not report; use another sampler, or fedsampling.train"
            )
        if type(scheme).addition is not Scheme.addition:
            raise InputError(
                f"scheme: {scheme.named} adds remembered updates to the server's step, which other "
                "frameworks do not; use another sampler, or fedsampling.train"
            )
        if type(seed) is bool or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
            raise InputError(
                f"seed: {seed!r:.40} is invalid; must be an integer from 0 to 2**32 − 1"
            )
        sizes = numbers(n_samples, "n_samples")
        if sizes.ndim != 1 or not _are_counts(sizes) or not sizes.any():
            raise InputError("n_samples: must be a number of samples for each client")
        sizes = sizes.astype(np.int64)
        self._n_samples, self._p, self._seeds = sizes, sizes / sizes.sum(), np.array([seed])
        self._dimension = dimension
        common = None if labels is None else _of_clients("labels", labels, len(sizes))
        if common is not None and not _are_counts(common):
            raise InputError("labels: must be an integer from 0 for each client")
        seconds = None if delays is None else _of_clients("delays", delays, len(sizes))
        if seconds is not None and not ((seconds >= 0) & (seconds < np.inf)).all():
            raise InputError("delays: must be finite and not negative")
        self._delays = seconds
        self._sampler = prepared(
            scheme,
            Setup(
                sizes,
                self._p,
                dimension=dimension,
                delays=self._delays,
                labels=None if common is None else common.astype(np.int64),
            ),
        )
        self._checked = Checked(self._sampler, 1, lambda rows: np.isfinite(rows).all(1))

    def select(
        self, round: int, offered: Sequence[int] | None = None, losses: ArrayLike | None = None
    ) -> list[int]:
        """Select a round's clients, one entry per slot; a client may occur several times.

        Rounds are counted from 0.  `offered` are the numbers of the available clients, by default
        all. `losses`, shape (n,): training losses at the global model, for samplers that need them.
        """
        n = len(self._p)
        available = np.arange(n)
        if offered is not None:
            available = np.unique(clients := np.asarray(offered))
            is_index = clients.dtype.kind in "iu" and clients.shape == available.shape
            if not is_index or available[0] < 0 or available[-1] >= n:
                raise InputError(
                    f"offered: must be different integers in 0…{n - 1}, at least one: the numbers "
                    "of the available clients"
                )
        if len(available) < n and not self._sampler.intermittent:
            raise InputError(
                f"scheme: {self._sampler.named} requires all {n} clients to be available in every "
                f"round, but {len(available)} are; wait for the others, or use another sampler"
            )
        observed: dict[str, Any] = {}
        if "losses" in self._sampler.needs:
            if losses is None:
                raise InputError(f"losses: {self._sampler.named} needs them; pass one per client")
            observed["losses"] = _of_clients("losses", losses, n)[None]
        if "delays" in self._sampler.needs:
            observed["delays"] = self._delays
        self._rng = Draws(self._seeds, round)
        self._view = View(self._n_samples, self._p, round, 1, observed).restricted_to(available)
        self._slots: Slots = self._checked.select(self._view, self._rng)
        if (self._slots.scale != 1).any():
            raise InputError(
                f"scheme: {self._sampler.named} scales the clients' steps, which other frameworks "
                "do not support; use another sampler, or fedsampling.train"
            )
        return [int(client) for client in self._slots.client]

    def weigh(
        self,
        updates: NDArray[np.float32],
        work_losses: ArrayLike | None = None,
        reported: Sequence[bool] | None = None,
    ) -> Array:
        """Return the weight ω of each slot of the last selection; the step is Σ ω_i (θ_i − θ).

        `updates`, shape (slots, d): θ_i − θ, in the order of the selection. `work_losses`, shape
        (slots,): root mean squares of the mini-batch losses, for samplers that need them.
        `reported`, shape (slots,): whether the slot's client answered, if clients may fail.  As in
        :func:`fedsampling.train` with ``failures``, the sampler sees only those that did, and their
        weights are corrected for the others, whose weights are zero.
        """
        slots, view, k = self._slots, self._view, len(self._slots)
        if np.shape(updates) != (k, self._dimension):
            raise InputError(
                f"updates: shape {np.shape(updates)}; must be ({k}, {self._dimension}), a row of "
                "`dimension` parameters for each selected client"
            )
        if "work_losses" in self._sampler.needs:
            if work_losses is None:
                raise InputError(
                    f"work_losses: {self._sampler.named} needs them; pass one per slot"
                )
            work_losses = _of_clients("work_losses", work_losses, k)
        answered = np.ones(k, np.bool_)
        if reported is not None:
            answered = np.asarray(reported, np.bool_)
            view = replace(view, reports=Reports(slots, answered))
            slots, updates = slots.at(answered), updates[answered]
        observed = {**view.observed, **self._report(updates, work_losses, answered)}
        view = replace(view, observed=observed)
        omega = np.zeros(k)
        omega[answered] = self._checked.weigh(slots, view, self._rng, updates=updates)
        self._sampler.learn()
        return omega

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what the sampler remembers, as arrays for a checkpoint."""
        return self._sampler.saved()

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`saved`."""
        self._sampler.restore(saved)

    def _report(
        self, updates: NDArray[np.float32], work_losses: Any, answered: Bools
    ) -> dict[str, Any]:
        """Return the information about local training that the sampler needs."""
        needs, report = self._sampler.needs, dict[str, Any]()
        if "update_norms" in needs:
            report["update_norms"] = np.linalg.norm(updates.astype(np.float64), axis=1)
        if "work_losses" in needs:
            report["work_losses"] = work_losses[answered]
        if "updates" in needs:
            report["updates"] = updates
        return report


def _of_clients(name: str, values: ArrayLike, size: int) -> Array:
    """Return one number for each client, or slot, as an array."""
    array = numbers(values, name) if np.size(values) else np.empty(0)
    if array.shape != (size,):
        raise InputError(f"{name}: shape {array.shape}; must be ({size},)")
    return array.astype(np.float64)


def _are_counts(values: NDArray[Any]) -> bool:
    return bool(((values >= 0) & (values < 2**53) & (values % 1 == 0)).all())
