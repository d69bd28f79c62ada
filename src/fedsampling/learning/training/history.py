"""The measurements and costs of a job's runs, and the tables that they become."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.learning.training.charges import COMPARED_COSTS

if TYPE_CHECKING:
    import pandas as pd

Rows = list[tuple[int, str, Array]]  # (round, metric, values of shape (runs,))
# Costs of each round, their means over all rounds, or the sums of bits and seconds since the
# previous measurement.
Costs = Literal["each", "mean", "since measurement"]

# Facts about clients, which are known even if the model diverges.
FACTS = frozenset({"client_samples", "client_importance", "client_tests", "client_offered"})
ONCE = -1  # round of values that belong to no round


@dataclass
class History:
    """Rows of the runs' tables."""

    measured: Rows  # measurements of the global models; values have shape (runs,)
    charged: Rows  # costs of the rounds; the first round is 1
    # shape (runs,): round in which a run's model was no longer finite; -1 if it is
    diverged_at: Ints

    @classmethod
    def empty(cls, runs: int) -> "History":
        """Return the history of runs that have not begun."""
        return cls([], [], np.full(runs, -1))

    @property
    def diverged(self) -> Bools:
        """Which runs have diverged, shape (runs,)."""
        return self.diverged_at >= 0

    def measure(self, round: int, values: Mapping[str, Array]) -> None:
        """Add the measurements before a round; those of diverged runs are NaN."""
        for name, value in values.items():
            self.measured.append((round, name, np.where(self.diverged, np.nan, value)))

    def charge(self, round: int, costs: Mapping[str, Array]) -> None:
        """Add the costs of a round, counted from 1."""
        self.charged.extend((round, name, cost) for name, cost in costs.items())

    def mark_diverged(self, round: int, lost: Bools) -> None:
        """Note which runs lost their model in a round, counted from 1."""
        self.diverged_at[~self.diverged & lost] = round

    def tables_so_far(self, round: int) -> list["pd.DataFrame"]:
        """Return each run's table before a round, with the costs of each round."""
        rows = [*self.measured, *self.charged]
        return [_table(rows, run, round) for run in range(len(self.diverged_at))]

    def tables(
        self, ends: Sequence[int], costs: Costs, by_client: Mapping[str, Array]
    ) -> list["pd.DataFrame"]:
        """Return each run's table.

        `ends`: round in which each run ended; later rows are dropped. `by_client`, shape (runs, n):
        values of single clients; ``at`` is the client.  Diverged runs keep only :data:`FACTS`.
        """
        charged = self.charged
        if costs == "mean":
            charged = _means(self.charged, max(ends))
        elif costs == "since measurement":
            charged = _sums(self.charged, sorted({at for at, _, _ in self.measured}))
        rows = [*self.measured, *charged, (ONCE, "diverged_at", self.diverged_at.astype(float))]
        client_rows = [
            (client, name, value if name in FACTS else np.where(self.diverged, np.nan, value))
            for name, values in by_client.items()
            for client, value in enumerate(values.T)
        ]
        return [_table(rows, run, end, client_rows) for run, end in enumerate(ends)]


def _means(charged: Rows, rounds: int) -> Rows:
    """Average the costs over the rounds."""
    totals: dict[str, Array] = {}
    for _, name, cost in charged:
        totals[name] = totals.get(name, 0.0) + cost / rounds
    return [(ONCE, f"{name}_per_round", total) for name, total in totals.items()]


def _sums(charged: Rows, measured: Sequence[int]) -> Rows:
    """Sum bits and seconds over the rounds since the previous measurement."""
    sums: dict[tuple[int, str], Array] = {}
    for at, name, cost in charged:
        end = bisect_left(measured, at)
        if name in COMPARED_COSTS and end < len(measured):
            key = measured[end], name
            sums[key] = sums.get(key, 0.0) + cost
    return [(at, name, total) for (at, name), total in sums.items()]


def _table(rows: Rows, run: int, end: int, client_rows: Rows | None = None) -> "pd.DataFrame":
    """Build a run's table from its rows up to its end, and the rows of its clients."""
    import pandas as pd

    rows = [*(row for row in rows if row[0] <= end), *(client_rows or [])]
    return pd.DataFrame(
        {
            "at": np.array([at for at, _, _ in rows], np.int64),
            "metric": pd.Categorical([name for _, name, _ in rows]),
            "value": np.array([values[run] for _, _, values in rows], np.float64),
        }
    )
