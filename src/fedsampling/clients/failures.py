"""Clients that fail after selection, and how long the server waits for the others.

A selected client fails with a probability, in the rounds of a trace, or because its update arrives
after the deadline or after the first reports that the server takes.  What determines this in a job
is a :class:`Reporting`; :func:`draw` decides who reports in a round.

A failure is drawn from a stream of its own, keyed by seed, round and client: in a round the same
clients fail under every sampler, and failures change no other draw.  The server notices a failed
client when its update is due.  Clients that it no longer waits for stop, and send nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.errors import InputError, naming
from fedsampling.base.records import Positive, PositiveFloat, Strict
from fedsampling.base.streams import Draws
from fedsampling.clients.delays import Delays
from fedsampling.clients.recorded import RecordedRounds

Probability = Annotated[float, Field(ge=0, lt=1)]


class Failures(Strict):
    """Which of the selected clients report; a number alone is their probability of failure."""

    probability: tuple[Probability, ...] = Field(
        (), description="that a selected client fails in a round: one, or one for each client"
    )
    reports: RecordedRounds | None = Field(
        None, description="your own trace of the rounds in which a client, if selected, reports"
    )
    deadline: PositiveFloat | None = Field(
        None, description="seconds that the server waits in a round; null: for all"
    )
    first: Positive | None = Field(
        None, description="reports that end a round: select more clients, take the first; null: all"
    )

    @model_validator(mode="before")
    @classmethod
    def _of_number(cls, record: Any) -> Any:
        if isinstance(record, list | tuple) or _is_number(record):
            record = {"probability": record}
        if isinstance(record, Mapping) and _is_number(record.get("probability")):
            record = {**record, "probability": [record["probability"]]}
        return record

    @model_validator(mode="after")
    def _have_an_effect(self) -> "Failures":
        if not (any(self.probability) or self.reports or self.deadline or self.first):
            raise ValueError(
                "no effect; set probability above 0, reports, deadline or first, or remove failures"
            )
        return self

    def reporting(
        self, names: NDArray[Any], rounds: int, delays: Delays | None = None
    ) -> "Reporting":
        """Prepare the rounds of a job, for clients with these names, shape (n,), and delays."""
        with naming("failures"):
            if len(self.probability) not in (0, 1, len(names)):
                raise InputError(
                    f"probability: {len(self.probability)} values for {len(names)} clients; "
                    "give one, or one for each client"
                )
            if self.first is not None and self.first >= len(names):
                raise InputError(f"first: no effect on {len(names)} clients; remove it")
            with naming("reports"):
                trace = None if self.reports is None else self.reports.by_round(names, rounds)
        fails = np.broadcast_to(np.array(self.probability or (0.0,)), len(names))
        return Reporting(fails, trace, self.deadline or np.inf, self.first, delays)


@dataclass(frozen=True, eq=False)
class Reporting:
    """What determines who reports in the rounds of a job."""

    fails: Array  # shape (n,): probability that a selected client fails
    trace: Bools | None = None  # shape (rounds, n): whether a selected client reports
    deadline: float = np.inf  # in seconds
    first: int | None = None  # reports that end a round
    delays: Delays | None = None

    @property
    def chance(self) -> Array | None:
        """Each client's probability of reporting if selected, shape (n,); None if unknown."""
        if self.trace is not None or self.first is not None:
            return None
        if self.delays is None or np.isinf(self.deadline):
            return 1 - self.fails
        in_time = self.delays.within(self.deadline)
        return None if in_time is None else (1 - self.fails) * in_time


@dataclass(frozen=True, eq=False)
class Outcome:
    """Who reported in a round, and what the others cost."""

    reported: Bools  # shape (slots,)
    seconds: Array  # shape (slots,): until each update is due; zero without delays
    end: Array  # shape (runs,): seconds until the server stops waiting
    wasted_seconds: Array  # shape (runs,): sum over the slots that did not report


def draw(reporting: Reporting, run: Ints, client: Ints, rng: Draws) -> Outcome:
    """Decide which selected clients report in a round; `run` and `client` are those of the slots.

    Of a client that was selected twice, both slots fail or none.
    """
    sends = rng.client_uniforms("failures", run, client, 1)[:, 0] >= reporting.fails[client]
    if reporting.trace is not None:
        sends &= reporting.trace[rng.round, client]
    seconds = np.zeros(len(run))
    if reporting.delays is not None:
        seconds = reporting.delays.round_seconds(rng.seeds[run], rng.round, client)
    return awaited(run, sends, seconds, len(rng.seeds), reporting.deadline, reporting.first)


def awaited(
    run: Ints, sends: Bools, seconds: Array, runs: int, deadline: float, first: int | None
) -> Outcome:
    """Decide which updates arrive before the server stops waiting.

    Parameters
    ----------
    run : int array, shape (slots,)
        Run of each slot, ascending.
    sends : bool array, shape (slots,)
        Whether the slot's client does not fail.
    seconds : float array, shape (slots,)
        When its update is due; of equal ones, the slot that was selected first is first.
    runs : int
    deadline : float
        Seconds; updates that are due at the deadline arrive.
    first : int, optional
        The server stops when so many updates have arrived.
    """
    reported = sends & (seconds <= deadline)
    end = np.zeros(runs)
    np.maximum.at(end, run, np.minimum(seconds, deadline))
    if first is not None:
        order = np.lexsort((seconds, ~reported, run))  # within a run, the reports in their order
        count = np.bincount(run, minlength=runs)
        place = np.empty(len(run), np.int64)
        place[order] = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
        last = reported & (place == first - 1)
        end[run[last]] = seconds[last]
        reported &= place < first
    wasted = np.zeros(runs)
    np.add.at(wasted, run, np.where(reported, 0.0, np.minimum(seconds, end[run])))
    return Outcome(reported, seconds, end, wasted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
