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

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.data.user_arrays import numbers
from fedsampling.samplers.checks.validation import Checked
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, Slots, View

# Information that a sampler may need.  Other frameworks' clients do not send gradients or features
# unless they are selected.
REPORTED = frozenset({"delays", "labels", "losses", "update_norms", "updates", "work_losses"})


class Cohort:
    """The cohorts of one training, round by round: :meth:`select`, then :meth:`weigh`.

    For each client, `n_samples` has the number of samples, to which importances are proportional,
    `labels` the most frequent label, and `delays` the expected seconds; samplers that need labels
    or delays require them.  `dimension` is the number of the model's parameters.
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
        sizes = numbers(n_samples, "n_samples")
        is_count = (sizes >= 0) & (sizes < 2**53) & (sizes % 1 == 0)
        if sizes.ndim != 1 or not is_count.all() or not sizes.any():
            raise InputError("n_samples: must be a number of samples for each client")
        sizes = sizes.astype(np.int64)
        self._n_samples, self._p, self._seeds = sizes, sizes / sizes.sum(), np.array([seed])
        self._delays = None if delays is None else np.asarray(delays, float)
        self._sampler = prepared(
            scheme,
            Setup(
                sizes,
                self._p,
                dimension=dimension,
                delays=self._delays,
                labels=None if labels is None else np.asarray(labels, np.int64),
            ),
        )
        self._checked = Checked(self._sampler, 1, lambda rows: np.isfinite(rows).all(1))

    def select(
        self, round: int, offered: Sequence[int] | None = None, losses: ArrayLike | None = None
    ) -> list[int]:
        """Select a round's clients, one entry per slot; a client may occur several times.

        Rounds are counted from 0.  `offered` are the available clients, by default all. `losses`,
        shape (n,): training losses at the global model, for samplers that need them.
        """
        n = len(self._p)
        available = np.arange(n) if offered is None else np.sort(np.asarray(offered, np.int64))
        if len(available) < n and not self._sampler.intermittent:
            raise InputError(
                f"scheme: {self._sampler.named} requires all {n} clients to be available in every "
                f"round, but {len(available)} are; wait for the others, or use another sampler"
            )
        observed: dict[str, Any] = {}
        if "losses" in self._sampler.needs:
            observed["losses"] = self._required("losses", losses, n)[None]
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

    def weigh(self, updates: NDArray[np.float32], work_losses: ArrayLike | None = None) -> Array:
        """Return the weight ω of each slot of the last selection; the step is Σ ω_i (θ_i − θ).

        `updates`, shape (slots, d): θ_i − θ, in the order of the selection; zero for clients that
        did not answer. `work_losses`, shape (slots,): root mean squares of the mini-batch losses,
        for samplers that need them.
        """
        observed: Mapping[str, Any] = self._view.observed
        needs, k = self._sampler.needs, len(self._slots)
        if np.ndim(updates) != 2 or len(updates) != k:
            raise InputError(f"updates: shape {np.shape(updates)}; must be a row for each of {k}")
        if "update_norms" in needs:
            norms = np.linalg.norm(updates.astype(np.float64), axis=1)
            observed = {**observed, "update_norms": norms}
        if "work_losses" in needs:
            observed = {**observed, "work_losses": self._required("work_losses", work_losses, k)}
        if "updates" in needs:
            observed = {**observed, "updates": updates}
        view = replace(self._view, observed=observed)
        omega = self._checked.weigh(self._slots, view, self._rng, updates=updates)
        self._sampler.learn()
        return omega

    def _required(self, name: str, value: ArrayLike | None, size: int) -> Array:
        """Return required information as an array; raise InputError if it is missing or wrong."""
        if value is None:
            raise InputError(f"{name}: {self._sampler.named} needs them; pass one value per client")
        array = numbers(value, name)
        if array.shape != (size,):
            raise InputError(f"{name}: shape {array.shape}; must be ({size},)")
        return array.astype(np.float64)
