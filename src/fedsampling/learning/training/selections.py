"""Who was selected in each round, with which weight, and whether it reported.

A run's table has these as rows of four metrics, :data:`METRICS`, with the round in ``at``.  A round
has as many rows of each as slots were selected, in the same order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.samplers.protocol.slots import Slots

if TYPE_CHECKING:  # the Snakefile imports this module, but not users' tables
    from fedsampling.clients.failures import Outcome

COLUMNS = ("client", "weight", "reported", "seconds")
PREFIX = "selected_"
METRICS = tuple(f"{PREFIX}{name}" for name in COLUMNS)
PARTS = ("round", "run", *COLUMNS)


class RunSelections(NamedTuple):
    """The slots of a run: the round of each, shape (slots,), and the other columns."""

    at: Ints
    values: Array  # shape (columns, slots)


@dataclass
class Selections:
    """The slots of all rounds so far, by column."""

    rounds: list[NDArray[np.float64]] = field(default_factory=list)  # each of shape (parts, slots)

    def add(
        self,
        rng: Draws,
        slots: Slots,
        omega: Array,
        delays: Delays | None,
        selected: Slots | None = None,
        outcome: "Outcome | None" = None,
    ) -> None:
        """Add a round, whose `slots` have weights `omega`.

        In runs with failures, these are the slots that reported, and `selected` are all.
        """
        chosen = slots if selected is None else selected
        reported = np.ones(len(chosen), np.bool_) if outcome is None else outcome.reported
        seconds = np.full(len(chosen), np.nan)
        if delays is not None:
            seconds = delays.round_seconds(rng.seeds[chosen.run], rng.round, chosen.client)
        weight = np.zeros(len(chosen))
        weight[reported] = omega
        at = np.full(len(chosen), rng.round + 1)
        self.rounds.append(np.stack([at, chosen.run, chosen.client, weight, reported, seconds]))

    def of_run(self, run: int, end: int) -> RunSelections:
        """Return the slots of a run, up to its last round."""
        table = self._joined()
        table = table[:, (table[1] == run) & (table[0] <= end)]
        return RunSelections(table[0].astype(np.int64), table[2:])

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all rounds, as an array for a checkpoint."""
        return {"rounds": self._joined()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`state`."""
        self.rounds = [state["rounds"]]

    def _joined(self) -> NDArray[np.float64]:
        return np.concatenate([np.empty((len(PARTS), 0)), *self.rounds], axis=1)
