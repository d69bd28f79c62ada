"""Jobs of a batch run one after another until they are stopped."""

import os
import signal
import time

from fedsampling.base.stopping import END_VARIABLE, EXIT_UNFINISHED


def nothing(stop):
    """Finish at once, without asking whether to stop."""


def asking(stop):
    """Ask whether to stop, and finish at once."""
    assert not stop()


def deaf(stop):
    time.sleep(2)


def signalled_at_the_end(stop):
    assert not stop()
    os.kill(os.getpid(), signal.SIGTERM)


def test_no_job_begins_after_a_signal(batch, capfd):
    finished = ["0-signalled_at_the_end"]
    assert batch(signalled_at_the_end, nothing) == (EXIT_UNFINISHED, finished)
    line = "1-nothing: stopped before it began; run the same command to resume"
    assert line in capfd.readouterr().err
    assert batch(signalled_at_the_end) == (0, finished)


def test_no_job_begins_after_the_time_limit(batch, monkeypatch):
    monkeypatch.setenv(END_VARIABLE, "1.5")
    assert batch(asking, deaf, nothing) == (EXIT_UNFINISHED, ["0-asking", "1-deaf"])
