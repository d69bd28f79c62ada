"""Several processes with one store: each run is computed once."""

import json
import signal
import subprocess
import sys
import time

import pytest
from tests.shared import PAPERS

from fedsampling.runs import store

JOB = "fraboni2022general/weights/n10-equal/{}/block-0"
PATIENCE_SECONDS = 600  # until a test fails; a process may start in two seconds or in two minutes
# A simulation that logs its start, waits for the other processes, and takes a few seconds.
RUN = """
import os, sys, time
from pathlib import Path
import numpy as np
from fedsampling import cli
from fedsampling.runs import leases
from fedsampling.experiments.simulations.simulation import Simulated, tidy
from fedsampling.experiments.simulations.weights import Weights

def slow(self, data, seeds, where, progress):
    with Path("computed").open("a") as log:
        log.write(f"{self.sampler.name} {os.getpid()}\\n")
    while len(Path("started").read_text().splitlines()) < int(sys.argv[5]):
        time.sleep(0.05)
    time.sleep(float(sys.argv[2]))
    return Simulated([tidy({"toy": (np.arange(3), np.arange(3.0))}) for _ in seeds])

Weights.simulate = slow
leases.POLL_SECONDS = 0.05
with Path("started").open("a") as log:
    log.write("one\\n")
folders = ["--config", "config.json", "--results", sys.argv[3], "--papers", sys.argv[4]]
cli.main(["run", sys.argv[1], *folders])
"""


@pytest.fixture
def folder(tmp_path):
    settings = {"scale": "quick", "data": "embedded", "store": str(tmp_path / "store")}
    settings["experiments"] = ["fraboni2022general/weights"]
    (tmp_path / "config.json").write_text(json.dumps(settings))
    return tmp_path


def start(folder, sampler, seconds, results="r", other_processes=0):
    arguments = (JOB.format(sampler), seconds, results, PAPERS, 1 + other_processes)
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    quiet = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, text=True, **quiet)


def computed(folder):
    path = folder / "computed"
    return path.read_text().splitlines() if path.exists() else []


def wait_for_first(folder):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not computed(folder):
        assert time.monotonic() < deadline, "no process has begun to compute"
        time.sleep(0.05)


def test_the_same_job_in_three_processes_is_computed_once(folder):
    """Two users' folders of results, two processes in one of them, and one store."""
    started = [start(folder, "md", 4, results, other_processes=2) for results in ("a", "b", "a")]
    lines = [process.communicate(timeout=PATIENCE_SECONDS)[1] for process in started]
    assert [process.returncode for process in started] == [0] * 3, lines
    assert len(computed(folder)) == 1
    assert any("which computes the same runs" in text for text in lines)
    manifests = [path.read_bytes() for path in folder.rglob("block-0.json")]
    assert len(manifests) == 2
    assert len(set(manifests)) == 1
    (path,) = (folder / "store").rglob("*.parquet")
    assert store.load(path).metadata["hash"] == path.stem.partition("-")[0]


def test_a_waiting_process_takes_over_the_job_of_a_killed_one(folder):
    first = start(folder, "md", 60)
    wait_for_first(folder)
    second = start(folder, "md", 0)
    time.sleep(1)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 0
    assert [line.split()[1] for line in computed(folder)] == [str(first.pid), str(second.pid)]
    assert not list((folder / "store").rglob("*.lock"))
