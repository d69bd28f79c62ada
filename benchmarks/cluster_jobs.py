"""Measure what a cluster job costs beside its own work, on a real SLURM of this machine.

``python benchmarks/cluster_jobs.py [--seconds 10]``, as root, with the packages that
`make test-slurm` installs: starts the test cluster, submits jobs of a fixed length one after the
other, and reads their times from SLURM (`scontrol show job`), from Snakemake's benchmark file and
from its log.  docs/cluster.md has the results.
"""

import argparse
import os
import re
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.slurm import cluster
from tests.slurm.project import Project, User
from tests.slurm.toy import ROUND

SAMPLERS = ("full", "md", "uniform")


def times(project: Project, slurm: cluster.Cluster, output: str, sampler: str) -> dict[str, float]:
    """Return the seconds of a job's parts."""
    (number,) = project.jobs(sampler)
    description = slurm.call("scontrol", "show", "job", number)
    submitted, started, ended = (
        datetime.fromisoformat(re.findall(rf"{name}Time=(\S+)", description)[0]).timestamp()
        for name in ("Submit", "Start", "End")
    )
    (path,) = (project.root / "results" / "benchmarks").glob(f"simulate/*/*/*/{sampler}/*.tsv")
    verb = float(path.read_text().splitlines()[1].split()[0])
    computing = ROUND * sum(name == sampler for name, *_ in project.computed())
    return {
        "submission until start, free node": started - submitted,
        "starts of Snakemake before and after the verb": ended - started - verb,
        "the verb beside its work: imports, store": verb - computing,
        "own work": computing,
        "until Snakemake notices": noticed(output, number) - ended,
    }


def noticed(output: str, number: str) -> float:
    """Return the time at which Snakemake logged the end of the job that ran inside SLURM's job."""
    (inner,) = re.findall(rf"Job (\d+) has been submitted with SLURM jobid {number}\b", output)
    stamp, _ = re.findall(rf"\[(.*)\]\n(Finished jobid: {inner}\b)", output)[0]
    return datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y").timestamp()


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of work of each job")
    arguments = parser.parse_args()
    if reason := cluster.obstacle():
        sys.exit(reason)
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/var/tmp"))
    folder.chmod(0o755)  # munged refuses other modes
    try:
        with cluster.running(folder / "cluster") as slurm:
            user = User(None, sys.executable, sysconfig.get_path("purelib"))
            project = Project(folder / "project", slurm.environment, user)
            rounds = round(arguments.seconds / ROUND)
            project.play({sampler: {"rounds": rounds} for sampler in SAMPLERS})
            clock = time.perf_counter()
            output = project.snakemake("--until", "simulate", jobs=1)
            print(f"load {os.getloadavg()[0]:.1f}; {time.perf_counter() - clock:.0f} s in all")
            measurements = [times(project, slurm, output, sampler) for sampler in SAMPLERS]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name in measurements[0]:
        seconds = [measurement[name] for measurement in measurements]
        print(f"{name}: {statistics.median(seconds):.1f} s ({min(seconds):.1f}–{max(seconds):.1f})")


if __name__ == "__main__":
    main()
