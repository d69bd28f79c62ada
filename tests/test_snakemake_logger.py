"""The line that stands in for Snakemake's log: how far it is, what went wrong, how it ended."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_fedsampling as plugin
from snakemake_logger_plugin_fedsampling import LogHandler, LogHandlerSettings, Steps


def record(text="", level=logging.INFO, **fields):
    result = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    vars(result).update(fields)
    return result


def printed_lines(capsys, *records):
    handler = LogHandler(SimpleNamespace(), LogHandlerSettings())
    stats = {"draw_a": 1, "all": 1, "total": 2}
    handler.emit(record(event=LogEvent.RUN_INFO, stats=stats))
    for logged in records:
        handler.emit(logged)
    handler.close()
    return capsys.readouterr().err.splitlines()


STARTED = record(event=LogEvent.JOB_INFO, jobid=7, rule_name="draw_a", rule_msg="Drawing a")


@pytest.fixture(autouse=True)
def log(tmp_path, monkeypatch):
    for name in ("2026-01-01.snakemake.log", "2026-01-02.snakemake.log"):
        (tmp_path / name).touch()
    monkeypatch.setattr(plugin, "LOGS", tmp_path)
    return tmp_path / name


def test_remaining_steps_are_expected_to_take_as_long_as_the_finished_ones(monkeypatch):
    now = SimpleNamespace(at=100.0)
    monkeypatch.setattr(plugin.time, "monotonic", lambda: now.at)
    progress = Steps()
    progress.planned({"simulate": 3, "draw_a": 1, "total": 4})
    for job in (1, 2, 3):
        progress.started(job, "simulate", f"Running {job}")
    now.at += 14
    for job in (1, 2):
        progress.finished(job)
    assert progress.sentence() == "2 of 4 steps in 14 s"
    assert progress.running() == "about 14 s left; Running 3"
    now.at += 5
    assert progress.running() == "about 9 s left; Running 3"
    now.at += 50
    assert progress.running() == "about 7 s left; Running 3"


def test_one_step_of_many_gives_no_estimate():
    progress = Steps()
    progress.planned({"draw_a": 12, "total": 12})
    for job in range(3):
        progress.finished(job)
    assert progress.running() == "time left unknown"


def test_the_last_line_names_the_log(capsys, log):
    finished = [record(event=LogEvent.JOB_FINISHED, job_id=job) for job in (7, 0)]
    (line,) = printed_lines(capsys, STARTED, *finished, record("Nothing of note"))
    assert line == f"2 of 2 steps in 0 s. Log: {log}"


def test_the_log_of_a_later_call_is_not_named(capsys, log):
    handler = LogHandler(SimpleNamespace(), LogHandlerSettings())
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"draw_a": 2, "total": 2}))
    (log.parent / "2026-01-03.snakemake.log").touch()
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=7))
    handler.close()
    assert capsys.readouterr().err == f"1 of 2 steps in 0 s. Log: {log}\n"


def test_after_an_interruption_the_last_line_says_how_to_resume(capsys, log):
    stopping = record("Terminating processes on user request, this might take some time.")
    failed = record("Error in rule draw_a", logging.ERROR, event=LogEvent.JOB_ERROR)
    lines = printed_lines(capsys, STARTED, stopping, failed)
    assert lines == [
        "Stopping: running jobs save their progress first",
        f"Interrupted after 0 of 2 steps in 0 s; run the same command to resume. Log: {log}",
    ]
