"""One line of progress instead of Snakemake's log: ``snakemake --logger fedsampling``.

Snakemake discovers this plugin by the package's name.  In a terminal the line is rewritten;
elsewhere a new line is printed every minute or less often.  Errors are printed in Snakemake's own
words.  The last line names the file with the complete log.
"""

import shutil
import sys
import threading
import time
from dataclasses import dataclass
from logging import ERROR, LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

MIN_SECONDS_BETWEEN_LINES = 60.0  # outside a terminal; grows with the time elapsed
FEWEST_STEPS = 2  # finished, for an estimate of the time left
INTERRUPTED = "on user request"  # part of Snakemake's message when it is interrupted
LOGS = Path(".snakemake/log")  # Snakemake's logs, one file per call, named by date


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """The plugin has no settings."""


class LogHandler(LogHandlerBase):
    """Turns Snakemake's events into a line of progress."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.progress = Steps()
        self.log: Path | None = None
        self.terminal = sys.stderr.isatty()
        self.stopped = False
        self.failed = 0
        self.shown = time.monotonic()
        self.ended = threading.Event()
        threading.Thread(target=self._tick, daemon=True).start()

    def emit(self, record: LogRecord) -> None:
        """Count the event; print errors."""
        event, text = getattr(record, "event", None), str(record.msg)
        if event == LogEvent.RUN_INFO:
            self.progress.planned(vars(record)["stats"])
            self.log = max(LOGS.glob("*.log"), default=None)  # before other calls write theirs
        elif event == LogEvent.JOB_INFO:
            fields = vars(record)
            self.progress.started(fields["jobid"], fields["rule_name"], fields["rule_msg"])
        elif event == LogEvent.JOB_FINISHED:
            self.progress.finished(vars(record)["job_id"])
        elif INTERRUPTED in text:
            self.stopped = True
            self._write("Stopping: running jobs save their progress first")
        elif (record.levelno >= ERROR or event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR)) and (
            not self.stopped
        ):
            self.failed += event == LogEvent.JOB_ERROR
            self._write(self.format(record))

    def close(self) -> None:
        """Print the outcome and the name of the log file."""
        if not self.ended.is_set() and self.progress.total:
            done = self.progress.sentence()
            if self.failed:
                done += f"; {self.failed} failed, and steps that depend on them did not run"
            if self.stopped:
                done = f"Interrupted after {done}; run the same command to resume"
            self._write(f"{done}. Log: {self.log}" if self.log else done)
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
                MIN_SECONDS_BETWEEN_LINES, (now - self.progress.begin) / 4
            ):
                self._write(f"{self.progress.sentence()}, {self.progress.running()}")

    def _write(self, text: str) -> None:
        self.shown = time.monotonic()
        sys.stderr.write(f"\r\033[K{text}\n" if self.terminal else f"{text}\n")
        sys.stderr.flush()


class Steps:
    """Steps done and the estimated time left: every step is expected to take the same time.

    Some take much longer, so there is no estimate before a third of the steps, and the time that a
    step has taken so far counts down, not up.
    """

    def __init__(self) -> None:
        self.begin = self.last = time.monotonic()
        self.total = self.done = 0
        self.messages: dict[Any, str] = {}  # of the running jobs

    def planned(self, stats: dict[str, int]) -> None:
        """Store the number of jobs."""
        self.total = sum(n for rule, n in stats.items() if rule != "total")

    def started(self, job: Any, rule: str, message: str | None) -> None:
        """Record the start of a job."""
        self.messages[job] = message or rule

    def finished(self, job: Any) -> None:
        """Record the success of a job."""
        self.done += 1
        self.last = time.monotonic()
        self.messages.pop(job, None)

    def sentence(self) -> str:
        """Describe the number of steps done and the time elapsed."""
        return f"{self.done} of {self.total} steps in {_clock(time.monotonic() - self.begin)}"

    def running(self) -> str:
        """Describe the time left and the first running job."""
        left = "time left unknown"
        if self.done >= max(FEWEST_STEPS, self.total / 3):
            step = (self.last - self.begin) / self.done
            current = min(time.monotonic() - self.last, step)
            left = f"about {_clock(step * (self.total - self.done) - current)} left"
        return "; ".join([left, *list(self.messages.values())[:1]])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
