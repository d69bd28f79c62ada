"""Jobs, one after another: ``fedsampling run``."""

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from pathlib import Path

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.progress import reporter
from fedsampling.base.stopping import Stopped, requeue, stopping_on_signals
from fedsampling.experiments.specs import Job
from fedsampling.runs.execute import execute, stacks
from fedsampling.runs.places import is_published
from fedsampling.workflow.gpus import assigned, sharing
from fedsampling.workflow.project import Project


def run_jobs(names: Sequence[str], project: Project) -> int:
    """Run jobs one after another, print their manifests, and return the exit status."""
    problems: list[str] = []
    jobs = []
    for name in names:
        with gathering(problems):
            jobs.append(project.plan.job(name))
    if problems:
        raise InputError(*problems)
    return execute_all(jobs, project, lambda manifest: print(manifest, flush=True))


def execute_all(
    jobs: Collection[Job],
    project: Project,
    notify: Callable[[Path], None],
    shows_progress: bool = True,
) -> int:
    """Run jobs one after another; return the exit status of :func:`run_jobs`."""
    networks = any(job.uses_gpu and not is_published(job) for job in jobs)
    gpu = networks and project.config.device != "cpu"
    waits = "all GPUs are in use; waiting"
    current = ""
    try:
        with (
            stopping_on_signals(project.config.cluster.grace) as stop,
            assigned(gpu, lambda: print(waits, file=sys.stderr), sharing(jobs, project)),
            reporter() if shows_progress else nullcontext(lambda *_: None) as progress,
        ):
            config, results = project.config, project.results
            for group in stacks(jobs):
                current = group[0].name
                stop.begin()
                for manifest in execute(group, config, results, progress, stop):
                    notify(manifest)
    except Stopped as stopped:
        print(f"{current}: {stopped}; run the same command to resume", file=sys.stderr, flush=True)
        return requeue()
    return 0
