"""Your own trace of availability: the intervals in which each client is available."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Bools, Ints
from fedsampling.base.errors import InputError, naming
from fedsampling.base.records import Variance
from fedsampling.clients.availability.availability import Availability
from fedsampling.data.user_files import ClientsTable


class Recorded(Availability, ClientsTable, name="recorded"):
    """Your own trace, a table with the columns client, from and to (excluded), in rounds."""

    round_seconds: Variance | None = Field(
        None, description="from and to are seconds, and a round begins every so many; null: rounds"
    )
    period: Variance | None = Field(
        None, description="the trace repeats after this time, in the unit of from and to; null: not"
    )

    def trace(
        self,
        seed: int,
        rounds: int,
        clients: int,
        labels: Ints | None = None,
        names: NDArray[Any] | None = None,
    ) -> Bools:
        """Return the recorded rounds, in each of which a client must be available."""
        with naming("availability"):
            table = self.read(np.arange(clients) if names is None else names, ("from", "to"))
            trace = self._of_array(table, rounds) if isinstance(table, np.ndarray) else None
            if trace is None:
                trace = self._of_intervals(table, rounds, clients)
            if (empty := np.flatnonzero(~trace.any(1))).size:
                raise InputError(
                    f"no client is available in {empty.size} of {rounds} rounds, first in round "
                    f"{empty[0]}; add intervals, or set period"
                )
            return trace

    def _of_array(self, values: NDArray[Any], rounds: int) -> Bools:
        if values.ndim != 2 or len(values) < rounds or not np.isin(values, (0, 1)).all():
            raise InputError(
                f"shape {values.shape}; must be true or false for {rounds} rounds and each client"
            )
        return values[:rounds].astype(np.bool_)

    def _of_intervals(self, table: Any, rounds: int, clients: int) -> Bools:
        starts, ends = table["from"], table["to"]
        if starts.dtype.kind not in "if" or ends.dtype.kind not in "if" or (starts >= ends).any():
            raise InputError("from and to must be numbers, and from less than to; correct them")
        time = np.arange(rounds) * (self.round_seconds or 1.0)
        time = time % self.period if self.period else time
        trace = np.zeros((rounds, clients), np.bool_)
        for client, start, end in zip(table["client"], starts, ends, strict=True):
            trace[(start <= time) & (time < end), client] = True
        return trace
