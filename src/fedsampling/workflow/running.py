"""Running jobs one after another, on the device that the configuration chooses."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fedsampling.base.errors import InputError, gathering
from fedsampling.base.progress import reporter
from fedsampling.base.stopping import Stopped, requeue, watching
from fedsampling.experiments.specs import Job
from fedsampling.runs.execute import execute_stacked, stacks
from fedsampling.runs.places import is_published
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


def execute_all(jobs: Collection[Job], project: Project, notify: Callable[[Path], None]) -> int:
    """Run jobs one after another; return the exit status of :func:`run_jobs`."""
    gpu = any(job.uses_gpu and not is_published(job) for job in jobs)
    waits = "all GPUs are in use; waiting"
    current = ""
    try:
        with (
            watching(project.config.cluster.grace) as stop,
            assigned(gpu, lambda: print(waits, file=sys.stderr)),
            reporter() as progress,
        ):
            config, results = project.config, project.results
            for group in stacks(jobs):
                current = group[0].name
                stop.begin()
                for manifest in execute_stacked(group, config, results, progress, stop):
                    notify(manifest)
    except Stopped as stopped:
        print(f"{current}: {stopped}; run the same command to resume", file=sys.stderr, flush=True)
        return requeue()
    return 0


# Assignment of local GPUs: each job takes a free one and sees no other.
#
# Snakemake counts GPUs (``--resources gpu=2``) but does not assign them.  A job locks a file per
# GPU; the kernel releases the lock when the process ends, so no cleanup is needed.  If SLURM has
# already assigned a GPU, that one is used.


VISIBLE = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS = 0.5


@contextmanager
def assigned(uses_gpu: bool, on_wait: Callable[[], None]) -> Iterator[None]:
    """Restrict this process to a free GPU, before PyTorch is imported; wait for it if necessary."""
    gpus = visible() if uses_gpu and not os.environ.get("SLURM_JOB_ID") else []
    if not gpus:
        yield
        return
    lock, gpu = _locked(gpus)
    if lock is None:
        on_wait()
    while lock is None:
        time.sleep(POLL_SECONDS)
        lock, gpu = _locked(gpus)
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = gpu
    try:
        yield
    finally:
        del os.environ[VISIBLE]
        if before is not None:
            os.environ[VISIBLE] = before
        lock.release()


def visible() -> list[str]:
    """Return the GPUs of this machine that this process may use."""
    variable = os.environ.get(VISIBLE)
    if variable is not None:
        # CUDA ignores everything after a negative number.
        names = [name.strip() for name in variable.split(",")]
        return [name for name in names if name and not name.startswith("-")]
    numbers = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia[0-9]*")]
    return sorted((number for number in numbers if number.isdigit()), key=int)


def _locked(gpus: list[str]) -> tuple[FileLock | None, str]:
    """Lock a free GPU; (None, "") if all are in use.  Users do not share locks."""
    for gpu in gpus:
        name = re.sub(r"[^\w-]", "_", f"fedsampling-{os.getuid()}-gpu-{gpu}")
        lock = FileLock(Path(tempfile.gettempdir()) / f"{name}.lock", mode=0o600)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        return lock, gpu
    return None, ""
