"""A network in training, not the toy: stopped by a signal, it continues and nothing shows."""

import os
import signal
from pathlib import Path

import pytest
from filelock import SoftFileLease

PAPER = "fraboni2021clustered"


def trains(copy):
    """Leave one job of one experiment."""
    mnist = copy.paper(PAPER)["experiments"]["mnist"]
    mnist |= {"samplers": {"md": {"name": "md", "m": 10}}, "rounds": 400, "seeds": 2}
    mnist["quick"] = {"work": mnist["quick"]["work"]}
    copy.keep(PAPER, mnist=mnist)
    limits = {"max_runtime": 60, "max_mem_mb": 4000}  # of the test cluster
    copy.configure(papers=[PAPER], checkpoint_seconds=1, cluster=limits)


@pytest.mark.long
def test_training_that_is_told_to_stop_continues_in_the_same_job_bit_for_bit(slurm, project):
    copy = project("training")
    trains(copy)
    started = copy.started()
    results = copy.root / "results"
    started.until(lambda: list(results.glob("checkpoints/*.npz")), "some rounds are done")
    owner = SoftFileLease(next(results.glob("store/*/*.lock"))).pid
    assert owner is not None
    variables = Path(f"/proc/{owner}/environ").read_bytes().decode().split("\0")
    job = dict(variable.split("=", 1) for variable in variables if variable)["SLURM_JOB_ID"]
    os.kill(owner, signal.SIGUSR1)
    assert started.end() == 0, started.output[-6000:]
    assert started.failures() == 0
    assert "Restarts=1" in slurm.call("scontrol", "show", "job", job)
    assert not list(results.glob("checkpoints/*.npz"))
    local = project("training-local")
    trains(local)
    local.snakemake(slurm=False)
    assert copy.made_files() == local.made_files()
