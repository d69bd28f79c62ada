"""The processes of `fedsampling compare`: one fails or is stopped, and no other."""

import os
import time

from fedsampling.base.errors import InputError
from fedsampling.workflow.comparing.processes import TaskOutcome, run_each


def test_a_failed_process_stops_no_other():
    def work(name):
        if name == "bad":
            raise InputError("the data cannot be downloaded")
        if name == "killed":
            os._exit(3)
        return name.upper()

    told = []
    tell = lambda name, outcome: told.append(name)  # noqa: E731
    outcomes = run_each(["bad", "killed", "good"], work, 2, tell)
    assert outcomes["bad"].reason == "the data cannot be downloaded"
    assert outcomes["killed"].reason == "its process ended with status 3"
    assert outcomes["good"] == TaskOutcome("GOOD")
    assert sorted(told) == ["bad", "good", "killed"]


def test_at_the_end_of_the_time_running_work_is_stopped_and_none_begins():
    end = time.monotonic() + 0.5
    work = lambda name: time.sleep(60)  # noqa: E731
    outcomes = run_each(["first", "second"], work, 1, lambda *_: None, end)
    assert outcomes == {"first": TaskOutcome(is_stopped=True)}
