"""Your own delays: the seconds of each client, in each round or in all of them."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.errors import InputError, naming
from fedsampling.clients.delays.delays import DelayModel, Delays
from fedsampling.data.user_files import ClientsTable

if TYPE_CHECKING:
    from fedsampling.clients.mesh import Mesh


@dataclass(frozen=True, eq=False)
class DelaysByRound(Delays):
    """Seconds that differ by round; samplers see their means, ``base``."""

    by_round: Array = field(default_factory=lambda: np.empty((0, 0)))  # shape (rounds, n)

    def round_seconds(self, seed: ArrayLike, round: ArrayLike, clients: ArrayLike) -> Array:
        """Return the seconds of clients in a round, the same for all seeds."""
        _, rounds, index = np.broadcast_arrays(seed, round, clients)
        seconds: Array = self.by_round[rounds, index]
        return seconds


class Recorded(DelayModel, ClientsTable, name="recorded"):
    """Your own delays, a table with the columns client, seconds and, if they differ, round."""

    def for_clients(
        self,
        seed: int,
        network: "Mesh | None",
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
        cell = rounds * n + table["client"]
        counts = np.bincount(cell, minlength=(rounds.max() + 1) * n)
        if wrong := np.flatnonzero(counts != 1).tolist():
            round, client = divmod(wrong[0], n)
            where = f"client {names.tolist()[client]!r}" + f" in round {round}" * ("round" in table)
            raise InputError(f"{counts[wrong[0]]} rows for {where}; must be one")
        seconds = np.zeros(len(counts))
        seconds[cell] = table["seconds"]
        return seconds.reshape(-1, n) if "round" in table else seconds
