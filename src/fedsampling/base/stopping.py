"""Stopping a job at a point from which it can resume, after a signal or before its time limit.

A simulation with checkpoints calls :class:`Stop` between rounds; if the result is true, it writes a
checkpoint and raises :class:`Stopped`.  A process with several jobs also checks between jobs.  The
job is then requeued: under SLURM with the same job number, under other schedulers through the exit
status ``EXIT_UNFINISHED``.

A process asks the scheduler for its time limit when it starts, so it does not depend on signals
that pass through the scheduler's shells.
"""

import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from fedsampling.base.errors import InputError

EXIT_UNFINISHED = 75  # exit status EX_TEMPFAIL: not finished, run again
END_VARIABLE = "FEDSAMPLING_SECONDS_LEFT"  # for schedulers other than SLURM
MAX_GRACE_SHARE = 0.25  # of the time left at the start
REQUEUE_SECONDS = 120.0  # seconds in which a scheduler ends a requeued job


class Stopped(Exception):  # noqa: N818 (an outcome, not an error)
    """The job stopped with its progress saved; the same command resumes it."""


class Stop:
    """Callable that returns whether a job should stop: by `seconds`, or by a signal."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._requested = False
        self.is_polled = False  # whether the running job checks, and so stops by itself

    def __call__(self) -> bool:
        """Return whether to stop; after the first call, signals no longer end the process."""
        self.is_polled = True
        return self._is_due()

    def begin(self) -> None:
        """Start the next job; it has not checked for a stop yet."""
        self.is_polled = False  # first: from here on a signal ends the process
        if self._is_due():
            raise Stopped("stopped before it began")

    def request(self) -> None:
        """Request the job to stop."""
        self._requested = True

    def _is_due(self) -> bool:
        return self._requested or (self._end is not None and time.monotonic() >= self._end)


@contextmanager
def stopping_on_signals(grace: float) -> Iterator[Stop]:
    """Yield a :class:`Stop` that follows this process's time limit and signals.

    SIGUSR1 requests the job to stop.  So do SIGTERM and Ctrl-C if the simulation checks its
    :class:`Stop`; otherwise they end the process, but run its ``finally`` clauses.  A simulation
    that never checks may use all of its time; no other job starts after it.

    `grace`: seconds before the time limit at which a job should stop.
    """
    remaining = seconds_left()
    stop = Stop(None if remaining is None else remaining - min(grace, MAX_GRACE_SHARE * remaining))

    def on_signal(number: int, _: FrameType | None) -> None:
        stop.request()
        if number in (signal.SIGINT, signal.SIGTERM) and not stop.is_polled:
            raise SystemExit(128 + number)

    names = signal.Signals.__members__  # Windows has no SIGUSR1
    signals = [names[name] for name in ("SIGINT", "SIGTERM", "SIGUSR1") if name in names]
    before = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def seconds_left() -> float | None:
    """Return the seconds until the scheduler ends this process; None without a time limit."""
    if text := os.environ.get(END_VARIABLE):
        left = parse_left(text)
        with suppress(ValueError):
            left = float(text)
        if left is None or not math.isfinite(left):
            raise InputError(
                f"{END_VARIABLE}: {text!r} is invalid; must be seconds, such as 3600, or 1:00:00"
            )
        return left
    if job := os.environ.get("SLURM_JOB_ID"):
        return parse_left(slurm_output("squeue", "--noheader", "--jobs", job, "--format=%L") or "")
    return None


def parse_left(text: str) -> float | None:
    """Parse SLURM's ``[[days-]hours:]minutes:seconds``; None for any other text."""
    match = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", text.strip())
    if not match:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def requeue() -> int:
    """Requeue this job.

    Returns the exit status.  Under SLURM the call waits until SLURM ends the process: if the
    process exited first, the job would count as failed.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job and slurm_output("scontrol", "requeue", job) is not None:
        time.sleep(REQUEUE_SECONDS)
    return EXIT_UNFINISHED


def slurm_output(*command: str) -> str | None:
    """Return the output of a SLURM command; None if it fails or is not installed."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout
