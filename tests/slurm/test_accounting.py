"""A cluster that keeps accounts: the executor may ask sacct there as well."""

import shutil
import tempfile
from pathlib import Path

import cluster
import pytest


@pytest.fixture(scope="module")
def accounts():
    if reason := cluster.obstacle(accounting=True):
        pytest.skip(f"no SLURM with accounts: {reason}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
    with cluster.running(folder, nodes=1, accounting=True, port=16900) as started:
        yield started
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.parametrize("command", ["sacct", "squeue"])
def test_jobs_are_followed(accounts, project, command):
    copy = project(f"accounts-{command}", accounts)
    copy.play({"full": {}, "md": {"rounds": 20}})
    started = copy.started("--slurm-status-command", command)
    # Not with sacct: it says "CANCELLED by" somebody, which the plugin waits out for ever.
    if command == "squeue":
        started.until(lambda: "md" in str(copy.computed()), "the job that is cancelled")
        copy.call("scancel", copy.jobs("md")[0])
    assert started.end() == 0, started.output[-6000:]
    assert started.failures() == (command == "squeue")
    owner = copy.user or "root"
    assert owner in accounts.call("sacct", "-n", "-X", "-o", "User%20,State")
