"""The command of docs/cluster.md that compares a user's sampler on a cluster, as one job."""

import re
import shlex
import subprocess

import pytest
from tests.checkout import ROOT

from .project import PATIENCE, until

SAMPLER = """import fedsampling as fs


class Mine(fs.Sampler, name="on_cluster"):
    m: int
    unbiased = False

    def select(self, view, rng):
        return rng.choice(view.n, self.m, replace=False)
"""
QUICK = "--scale quick --on digit --against uniform"  # in place of the whole benchmark
LIMITS = {"--time": "1:00:00", "--mem": "4G"}  # of the test's partition and nodes


@pytest.fixture
def submitted():
    """The words of the documented command, with a smaller comparison."""
    page = (ROOT / "docs" / "cluster.md").read_text()
    (line,) = re.findall(r"^    (sbatch .*fedsampling compare.*)$", page, re.MULTILINE)
    for option, limit in LIMITS.items():
        line = re.sub(rf"{option} \S+", f"{option} {limit}", line)
    return shlex.split(line.replace("my_sampler.py", f"my_sampler.py {QUICK}"))


def test_a_comparison_is_one_job_and_the_same_line_resumes_it(project, slurm, submitted):
    on_cluster = project("compare")
    (on_cluster.root / "my_sampler.py").write_text(SAMPLER)
    on_cluster.configure()

    def compare():
        result = subprocess.run(
            submitted,
            cwd=on_cluster.root,
            env=on_cluster.environment,
            capture_output=True,
            text=True,
            check=True,
            **on_cluster.identity,
        )
        job = result.stdout.split()[-1]
        output = on_cluster.root / f"slurm-{job}.out"
        unfinished = ("PENDING", "RUNNING", "COMPLETING")
        until(lambda: state(slurm, job) not in unfinished, f"job {job}", 3 * PATIENCE)
        assert state(slurm, job) == "COMPLETED", output.read_text()
        return output.read_text()

    first, stored = compare(), on_cluster.stored()
    assert "jobs, 2 runs of on_cluster, on digit" in first
    assert "\non_cluster, with speed-ups over MD" in first
    assert compare() == first
    assert on_cluster.stored() == stored != {}


def state(slurm, job):
    return re.search(r"JobState=(\w+)", slurm.call("scontrol", "show", "job", job))[1]
