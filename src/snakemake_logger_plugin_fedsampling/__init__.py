"""One line of progress in place of Snakemake's log: ``snakemake --logger fedsampling``.

Snakemake finds this by the package's name.  A terminal has one line that is written anew; where
there is none, a line now and then.  Errors are shown as Snakemake words them, and its whole log is
in the file that the last line names.
"""

import shutil
import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from logging import ERROR, LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

EACH = 60.0  # seconds between two lines where there is no terminal, and more as time goes by
STOPPED = "on user request"  # in what Snakemake says when it is interrupted
LOGS = Path(".snakemake/log")  # where Snakemake keeps a log of each call, named by its date


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """There are none."""


class LogHandler(LogHandlerBase):
    """Turns Snakemake's events into a line."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.progress = Progress()
        self.terminal = sys.stderr.isatty()
        self.stopped = False
        self.failed = 0
        self.shown = time.monotonic()
        self.ended = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def emit(self, record: LogRecord) -> None:
        """Note what has happened; show what went wrong."""
        event, text = getattr(record, "event", None), str(record.msg)
        if event == LogEvent.RUN_INFO:
            self.progress.asked(vars(record)["stats"])
        elif event == LogEvent.JOB_INFO:
            told = vars(record)
            self.progress.started(told["jobid"], told["rule_name"], told["rule_msg"])
        elif event == LogEvent.JOB_FINISHED:
            self.progress.finished(vars(record)["job_id"])
        elif STOPPED in text:
            self.stopped = True
            self._write("Stopping: what runs keeps its progress first")
        elif (record.levelno >= ERROR or event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR)) and (
            not self.stopped
        ):
            self.failed += event == LogEvent.JOB_ERROR
            self._write(self.format(record))

    def close(self) -> None:
        """Say how it ended, and where the log is."""
        if not self.ended.is_set() and self.progress.total:
            done = self.progress.sentence()
            if self.failed:
                done += f"; {self.failed} failed, and what rests on them waits"
            if self.stopped:
                done = f"Stopped at {done}: what is finished is kept; the same command continues"
            log = max(LOGS.glob("*.log"), default=None)
            self._write(f"{done}. Log: {log}" if log else done)
        self.ended.set()
        super().close()

    def _tick(self) -> None:
        while not self.ended.wait(1.0):
            if not self.progress.total or self.stopped:
                continue
            if self.terminal:
                width = shutil.get_terminal_size().columns - 1
                line = f"{self.progress.sentence()}, {self.progress.running()}"
                sys.stderr.write(f"\r\033[K{line[:width]}")
                sys.stderr.flush()
            elif (now := time.monotonic()) - self.shown >= max(
                EACH, (now - self.progress.begin) / 4
            ):
                self._write(f"{self.progress.sentence()}, {self.progress.running()}")

    def _write(self, text: str) -> None:
        self.shown = time.monotonic()
        sys.stderr.write(f"\r\033[K{text}\n" if self.terminal else f"{text}\n")
        sys.stderr.flush()


class Progress:
    """How far a workflow is, and how long it may still take.

    A job that is left is expected to take as long as those of its rule have taken, or else as long
    as all have: by the first word of the rule's name, ``simulate`` or ``draw``.
    """

    def __init__(self) -> None:
        self.begin = time.monotonic()
        self.total = self.done = 0
        self.left: Counter[str] = Counter()
        self.at: dict[Any, tuple[str, str, float]] = {}  # job: rule, message, when it started
        self.took: dict[str, list[float]] = defaultdict(list)
        self.most = 1  # jobs that ran at the same time

    def asked(self, stats: dict[str, int]) -> None:
        """Take in how many jobs of each rule there are."""
        counts = {rule: n for rule, n in stats.items() if rule != "total"}
        self.total = sum(counts.values())
        for rule, n in counts.items():
            self.left[rule.partition("_")[0]] += n

    def started(self, job: Any, rule: str, message: str | None) -> None:
        """Note that a job begins."""
        self.at[job] = rule.partition("_")[0], message or rule, time.monotonic()
        self.most = max(self.most, len(self.at))

    def finished(self, job: Any) -> None:
        """Note that a job has ended well."""
        self.done += 1
        if job in self.at:
            rule, _, since = self.at.pop(job)
            self.left[rule] -= 1
            self.took[rule].append(time.monotonic() - since)

    def sentence(self) -> str:
        """Say how many steps are done, and how long that took."""
        return f"{self.done} of {self.total} steps in {_clock(time.monotonic() - self.begin)}"

    def running(self) -> str:
        """Say how much time is left, and what runs."""
        left = self.seconds_left()
        togo = "time to go not known yet" if left is None else f"about {_clock(left)} to go"
        return "; ".join([togo, *(message for _, message, _ in list(self.at.values())[:1])])

    def seconds_left(self) -> float | None:
        """Return the seconds that are left; None before anything has finished."""
        every = [seconds for took in self.took.values() for seconds in took]
        if not every:
            return None
        mean = sum(every) / len(every)
        expected = {rule: sum(took) / len(took) for rule, took in self.took.items()}
        work = sum(n * expected.get(rule, mean) for rule, n in self.left.items())
        now = time.monotonic()
        for rule, _, since in list(self.at.values()):
            work -= min(now - since, expected.get(rule, mean))
        return max(work, 0.0) / self.most


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
