"""Delays and availability that a user recorded: tables in files, tables or arrays in Python."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError, naming
from fedsampling.base.records import PositiveFloat
from fedsampling.clients.availability import Availability
from fedsampling.clients.delays import DelayModel, Delays
from fedsampling.data.user_files import ClientsTable


class RecordedDelays(DelayModel, ClientsTable, name="recorded"):
    """Your own delays, a table with the columns client, seconds and, if they differ, round."""

    def for_clients(
        self,
        seed: int,
        network: Any,
        names: NDArray[Any],
        n_samples: Ints,
        model_bytes: float,
        rounds: int,
    ) -> Delays:
        """Return the delays by the clients' names."""
        with naming("delays"):
            seconds = self._seconds(names)
            if not (np.isfinite(seconds) & (seconds >= 0)).all():
                raise InputError("seconds must be finite and not negative; correct them")
            if seconds.ndim == 1:
                return Delays(seconds)
            if len(seconds) < rounds:
                raise InputError(f"{len(seconds)} rounds, but {rounds} are trained; add the others")
            return DelaysByRound(seconds[:rounds].mean(0), by_round=seconds[:rounds])

    def _seconds(self, names: NDArray[Any]) -> Array:
        """Return seconds, shape (n,) or (rounds, n)."""
        table = self.read(names, ("seconds",), ("round",))
        if isinstance(table, np.ndarray):
            if table.ndim > 2:
                raise InputError(f"shape {table.shape}; must be (clients,) or (rounds, clients)")
            return table.astype(np.float64)
        n = len(names)
        rounds = table.get("round", np.zeros(len(table["client"]), np.int64))
        if rounds.dtype.kind != "i" or rounds.min() < 0 or table["seconds"].dtype.kind not in "if":
            raise InputError("round must be integers from 0 up, and seconds numbers; convert them")
        # With more rounds, some lack rows; counting up to a timestamp would fill the memory.
        n_rounds = min(rounds.max(), len(rounds) // n) + 1
        cell = (rounds * n + table["client"])[rounds < n_rounds]
        counts = np.bincount(cell, minlength=n_rounds * n)
        if wrong := np.flatnonzero(counts != 1).tolist():
            round, client = divmod(wrong[0], n)
            where = f"client {names.tolist()[client]!r}" + f" in round {round}" * ("round" in table)
            raise InputError(f"{counts[wrong[0]]} rows for {where}; must be one")
        seconds = np.zeros(len(counts))
        seconds[cell] = table["seconds"]
        return seconds.reshape(-1, n) if "round" in table else seconds


@dataclass(frozen=True, eq=False)
class DelaysByRound(Delays):
    """Delays recorded in each round; samplers see ``base``, their means over the rounds."""

    by_round: Array = field(default_factory=lambda: np.empty((0, 0)))  # shape (rounds, n)

    def round_seconds(self, seed: ArrayLike, round: ArrayLike, clients: ArrayLike) -> Array:
        """Return the seconds of clients in a round, the same for all seeds."""
        _, rounds, index = np.broadcast_arrays(seed, round, clients)
        seconds: Array = self.by_round[rounds, index]
        return seconds

    def within(self, seconds: float) -> None:
        """Return None: the server does not know the delays of later rounds."""
        return None


class RecordedRounds(ClientsTable):
    """Your own trace, a table with the columns client, from and to (excluded), in rounds."""

    round_seconds: PositiveFloat | None = Field(
        None, description="from and to are seconds, and a round begins every so many; null: rounds"
    )
    period: PositiveFloat | None = Field(
        None, description="the trace repeats after this time, in the unit of from and to; null: not"
    )

    def by_round(self, names: NDArray[Any], rounds: int) -> Bools:
        """Return the recorded rounds of the clients, shape (rounds, clients)."""
        table = self.read(names, ("from", "to"))
        if isinstance(table, np.ndarray):
            return self._of_array(table, rounds)
        return self._of_intervals(table, rounds, len(names))

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
        if self.period and (starts.min() < 0 or ends.max() > self.period):
            raise InputError(
                f"from and to must be from 0 to the period, {self.period}; split intervals that "
                "cross its end"
            )
        time = np.arange(rounds) * (self.round_seconds or 1.0)
        time = time % self.period if self.period else time
        trace = np.zeros((rounds, clients), np.bool_)
        for client, start, end in zip(table["client"], starts, ends, strict=True):
            trace[(start <= time) & (time < end), client] = True
        return trace


class RecordedAvailability(Availability, RecordedRounds, name="recorded"):
    """Your own trace, a table with the columns client, from and to (excluded), in rounds."""

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
            trace = self.by_round(np.arange(clients) if names is None else names, rounds)
            if (empty := np.flatnonzero(~trace.any(1))).size:
                raise InputError(
                    f"no client is available in {empty.size} of {rounds} rounds, first in round "
                    f"{empty[0]}; add intervals, or set period"
                )
            return trace
