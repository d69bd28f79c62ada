"""Stopping near a time limit or at a signal, and requeueing."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.shared import ROOT, line_of

from fedsampling.base import stopping
from fedsampling.base.stopping import (
    END_VARIABLE,
    EXIT_UNFINISHED,
    parse_left,
    requeue,
    seconds_left,
    stopping_on_signals,
)
from fedsampling.workflow.project import CALL_LOCK, JOBS_LOCK


@pytest.fixture(autouse=True)
def outside_slurm(monkeypatch):
    for name in ("SLURM_JOB_ID", END_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Write a client of SLURM that prints its arguments to a file, and its answer."""

    def write(name, answer, status=0):
        log = tmp_path / f"{name}.log"
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$@" > {log}\necho "{answer}"\nexit {status}\n')
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("SLURM_JOB_ID", "42")
        return log

    return write


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:03:04", 93784),
        ("2:00:00", 7200),
        ("59:30", 3570),
        ("0:05\n", 5),
        *((text, None) for text in ("UNLIMITED", "NOT_SET", "INVALID", "")),
    ],
)
def test_the_format_of_squeue_is_parsed(text, seconds):
    assert parse_left(text) == seconds


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1:00:00", 3600)])
def test_a_scheduler_may_say_the_time_left_in_both_forms(monkeypatch, text, seconds):
    monkeypatch.setenv(END_VARIABLE, text)
    assert seconds_left() == seconds


@pytest.mark.parametrize("text", ["soon", "nan", "inf", "1:00:00:00:00"])
def test_an_invalid_time_left_is_one_line(monkeypatch, text):
    monkeypatch.setenv(END_VARIABLE, text)
    assert line_of(seconds_left).startswith(f"{END_VARIABLE}: '{text}' is invalid; must be seconds")


def test_the_time_left_comes_from_slurm_unless_it_fails(client):
    log = client("squeue", "9:59")
    assert seconds_left() == 599
    assert log.read_text().split() == ["--noheader", "--jobs", "42", "--format=%L"]
    client("squeue", "5:00", status=1)
    assert seconds_left() is None


@pytest.mark.parametrize(
    ("grace", "seconds", "stops"),
    [(20, 79.9, False), (20, 80.1, True), (600, 74, False)],  # a long grace leaves time to work
)
def test_a_job_stops_its_grace_before_the_limit(monkeypatch, grace, seconds, stops):
    monkeypatch.setenv(END_VARIABLE, "100")
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with stopping_on_signals(grace) as stop:
        now[0] += seconds
        assert stop() is stops


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_stops_a_simulation_that_checks_for_it(number):
    before = signal.getsignal(number)
    with stopping_on_signals(0) as stop:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_simulation_without_checkpoints_ends_and_cleans_up(number):
    cleaned = []

    def work():
        try:
            os.kill(os.getpid(), number)
            time.sleep(10)
        finally:
            cleaned.append(True)

    with pytest.raises(SystemExit) as ended, stopping_on_signals(0):
        work()
    assert ended.value.code == 128 + number
    assert cleaned


def test_a_simulation_without_checkpoints_continues_after_sigusr1():
    with stopping_on_signals(0) as stop:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop()  # known, should it ask later


@pytest.mark.parametrize("refused", [False, True])
def test_slurm_requeues_the_job_and_ends_it_or_refuses_at_once(client, monkeypatch, refused):
    log = client("scontrol", "", status=int(refused))
    monkeypatch.setattr(stopping, "REQUEUE_SECONDS", 3)
    before = time.monotonic()
    assert requeue() == EXIT_UNFINISHED
    assert log.read_text().split() == ["requeue", "42"]
    assert (time.monotonic() - before > 3) != refused


RUN = """
import sys, time
import numpy as np
from fedsampling.cli import main
from fedsampling.experiments.simulations.simulation import Simulated, tidy
from fedsampling.experiments.simulations.weights import Weights
from fedsampling.base.stopping import Stopped

def simulate(self, data, seeds, where, progress):
    done = int(where.checkpoint.path.read_text()) if where.checkpoint.path.exists() else 0
    for t in range(done, 60):
        if where.checkpoint.stop():
            where.checkpoint.path.parent.mkdir(parents=True, exist_ok=True)
            where.checkpoint.path.write_text(str(t))
            raise Stopped(f"stopped before round {t}")
        print("round", t, flush=True)
        time.sleep(0.05)
    rounds = np.arange(60)
    return Simulated([tidy({"toy": (rounds, rounds / seed)}) for seed in (1 + s for s in seeds)])

Weights.simulate = simulate
job = "fraboni2022general/weights/n10-equal/md/block-0"
main(["run", job, "--results", sys.argv[1], "--config", sys.argv[2]])
"""


def test_a_stopped_run_is_reported_and_the_same_call_resumes_it(tmp_path):
    results, config = tmp_path / "results", tmp_path / "config.json"
    settings = {"scale": "quick", "data": "embedded"}
    config.write_text(json.dumps(settings | {"experiments": ["fraboni2022general/weights"]}))

    def run(**variables):
        command = [sys.executable, "-c", RUN, results, config]
        where = {"env": os.environ | variables, "cwd": ROOT}
        process = subprocess.run(command, **where, capture_output=True, text=True, timeout=300)
        return process, [int(n) for n in re.findall(r"^round (\d+)$", process.stdout, re.M)]

    process, first = run(**{END_VARIABLE: "1.5"})
    assert process.returncode == EXIT_UNFINISHED
    stopped = f"stopped before round {len(first)}; run the same command to resume"
    assert stopped in process.stderr
    assert 0 < len(first) < 60
    locks = {path.name for path in results.rglob("*.lock")}
    assert locks <= {CALL_LOCK, JOBS_LOCK}  # no lease of the run
    process, second = run()
    assert process.returncode == 0
    assert first + second == list(range(60))
    assert len(list(results.rglob("*.parquet"))) == 1
    assert not list(results.rglob("*.npz"))
