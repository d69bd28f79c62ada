"""Work in child processes: each ends with its memory, and its failure stops nothing else."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from fedsampling.base.errors import InputError

WAIT_SECONDS = 1.0
SCHEDULER_VARIABLE = "SLURM_JOB_ID"  # by which a stopped job requests to be queued again


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task: a value, a reason why it failed, or neither if it was stopped."""

    value: Any = None
    reason: str = ""
    is_stopped: bool = False


def run_each(
    tasks: Sequence[str],
    work: Callable[[str], Any],
    cores: int,
    tell: Callable[[str, TaskOutcome], None],
    end: float | None = None,
) -> dict[str, TaskOutcome]:
    """Run each task in a process of its own, `cores` of them at a time.

    Parameters
    ----------
    tasks : sequence of str
    work : callable
        Gets a task in a child process; its result is sent back.
    cores : int
    tell : callable
        Called with each task that ended, and its outcome.
    end : float, optional
        Time of ``time.monotonic`` at which running tasks are stopped and no other one begins.

    Returns
    -------
    dict of TaskOutcome
        By task, without those that did not begin.
    """
    context = multiprocessing.get_context("fork")
    waiting, outcomes = list(tasks), dict[str, TaskOutcome]()
    running: dict[Any, tuple[str, Any, Connection]] = {}
    try:
        while running or (waiting and not _is_over(end)):
            while waiting and len(running) < cores and not _is_over(end):
                task = waiting.pop(0)
                receiver, sender = context.Pipe(duplex=False)
                arguments = sender, work, task, end is not None
                process = context.Process(target=_child, args=arguments)
                process.start()
                sender.close()
                running[process.sentinel] = task, process, receiver
            if _is_over(end):
                _stop(running)
            for sentinel in wait([*running], WAIT_SECONDS):
                task, process, receiver = running.pop(sentinel)
                outcomes[task] = _outcome(process, receiver)
                tell(task, outcomes[task])
    except BaseException:
        _stop(running)
        for _, process, _ in running.values():
            process.join()
        raise
    return outcomes


def _is_over(end: float | None) -> bool:
    return end is not None and time.monotonic() >= end


def _stop(running: Mapping[Any, tuple[str, Any, Connection]]) -> None:
    """Ask the processes to save their progress and end."""
    for _, process, _ in running.values():
        process.terminate()


def _outcome(process: Any, receiver: Connection) -> TaskOutcome:
    process.join()
    with suppress(EOFError):
        if receiver.poll():
            outcome: TaskOutcome = receiver.recv()
            return outcome
    if process.exitcode and process.exitcode < 0 and process.exitcode != -9:
        return TaskOutcome(is_stopped=True)
    return TaskOutcome(reason=f"its process ended with status {process.exitcode}")


def _child(sender: Connection, work: Callable[[str], Any], task: str, is_limited: bool) -> None:
    if is_limited:  # stopped by the caller, not by the scheduler
        os.environ.pop(SCHEDULER_VARIABLE, None)
    try:
        outcome = TaskOutcome(work(task))
    except InputError as error:
        outcome = TaskOutcome(reason=str(error.lines[0]))
    except (SystemExit, KeyboardInterrupt):
        outcome = TaskOutcome(is_stopped=True)
    except Exception as error:
        traceback.print_exc()
        outcome = TaskOutcome(reason=f"{type(error).__name__}: {error}")
    sender.send(outcome)
