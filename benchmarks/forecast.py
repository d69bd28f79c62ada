"""Compare the forecast of `fedsampling plan` with the seconds that the published runs took.

    python benchmarks/forecast.py [PAPER/EXPERIMENT ...]

Official files are taken from ``FEDSAMPLING_MIRROR``.  Runs note wall time on a loaded machine with
the code of their time; the forecast is CPU time of this machine.  So the ratio is not 1, but it
should be about the same in experiments that ran on one machine with the same code.
"""

import os
import sys
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster.measuring import measure, timing_key
from fedsampling.runs.places import PUBLISHED, published_runs
from fedsampling.runs.store import load_together
from fedsampling.workflow.plan import plan

RESULTS = Path("results")


def main(names: list[str]) -> None:
    """Print a line for each experiment: runs, forecast and noted seconds, and their ratio."""
    project_plan = plan({"scale": "best", "mirror": os.environ.get("FEDSAMPLING_MIRROR")})
    for name in names or list(project_plan.experiments):
        jobs = [project_plan.jobs[job] for job in project_plan.jobs_of(*name.split("/"))]
        try:
            forecast = _forecast(jobs, project_plan.config)
        except InputError as error:
            print(f"{name}: {error.lines[0]}", flush=True)
            continue
        noted = sum(map(_noted, jobs))
        print(
            f"{name:45} {forecast:9.1f} s forecast {noted:9.1f} s noted {noted / forecast:6.2f}",
            flush=True,
        )


def _forecast(jobs: list[Job], config: Config) -> float:
    """Seconds of all runs, without the start of a process."""
    speeds = {}
    for job in jobs:
        if timing_key(job) not in speeds:
            speeds[timing_key(job)] = measure(job, RESULTS, config)
    return sum(
        speeds[timing_key(job)].fixed + speeds[timing_key(job)].step * job.steps for job in jobs
    )


def _noted(job: Job) -> float:
    files = published_runs(PUBLISHED)
    return sum(
        float(load_together(files[run.hash])[run.hash].metadata["seconds"]) for run in job.runs
    )


if __name__ == "__main__":
    main(sys.argv[1:])
