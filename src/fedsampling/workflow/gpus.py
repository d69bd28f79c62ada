"""Assignment of local GPUs: a job takes a free share of one and sees no other.

Snakemake counts GPUs (``--resources gpu=2``) but does not assign them.  A GPU has eight shares,
each with a file that a job locks: all of them, or fewer if several jobs share the GPU.  The kernel
releases the locks when the process ends, so no cleanup is needed.  If SLURM has already assigned a
GPU, that one is used.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fedsampling.base import machine
from fedsampling.experiments.specs import Job
from fedsampling.runs.measurements import load_measurements
from fedsampling.runs.resources import jobs_per_gpu
from fedsampling.workflow.project import Project

VISIBLE = "CUDA_VISIBLE_DEVICES"
DEVICES = Path("/dev")
SHARED_BY = "FEDSAMPLING_JOBS_PER_GPU"  # which learning.models.devices reads
SHARES = 8  # of each GPU
POLL_SECONDS = 0.5


@contextmanager
def assigned(uses_gpu: bool, on_wait: Callable[[], None], sharing: int = 1) -> Iterator[None]:
    """Restrict this process to a free GPU, before PyTorch is imported; wait for it if necessary.

    `sharing`: number of jobs that may share the GPU, each with as much of its memory.
    """
    gpus = visible() if uses_gpu and not os.environ.get("SLURM_JOB_ID") else []
    variables = {SHARED_BY: str(sharing)} if uses_gpu and sharing > 1 else {}
    with ExitStack() as locks:
        if gpus:
            if not (gpu := _locked(gpus, SHARES // sharing, locks)):
                on_wait()
            while not gpu:
                time.sleep(POLL_SECONDS)
                gpu = _locked(gpus, SHARES // sharing, locks)
            variables[VISIBLE] = gpu
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                del os.environ[name]
                if value is not None:
                    os.environ[name] = value


def sharing(jobs: Collection[Job], project: Project) -> int:
    """Return how many jobs such as these share a GPU; under SLURM only with its shards."""
    cluster = project.config.cluster
    if os.environ.get("SLURM_JOB_ID") and cluster.gpu != "shard":
        return 1
    measured = load_measurements(project.results)
    numbers = [jobs_per_gpu(job, measured, cluster) for job in jobs if job.uses_gpu]
    return min(numbers, default=1)


def visible() -> list[str]:
    """Return the GPUs of this machine that this process may use."""
    variable = os.environ.get(VISIBLE)
    if variable is not None:
        # CUDA ignores everything after a negative number.
        names = [name.strip() for name in variable.split(",")]
        return [name for name in names if name and not name.startswith("-")]
    numbers = [path.name.removeprefix("nvidia") for path in DEVICES.glob("nvidia[0-9]*")]
    if (DEVICES / "dxg").exists():  # WSL2
        listed = machine.output(f"{machine.WSL_COMMANDS}/nvidia-smi", "-L").splitlines()
        numbers = [line.split()[1].rstrip(":") for line in listed if line.startswith("GPU ")]
    return sorted((number for number in numbers if number.isdigit()), key=int)


def _locked(gpus: list[str], shares: int, locks: ExitStack) -> str:
    """Lock shares of a GPU that has enough free ones; "" if none has.  Users share no locks."""
    for gpu in gpus:
        with ExitStack() as attempt:
            free = 0
            for share in range(SHARES):
                name = re.sub(r"[^\w-]", "_", f"fedsampling-{os.getuid()}-gpu-{gpu}-{share}")
                lock = FileLock(Path(tempfile.gettempdir()) / f"{name}.lock", mode=0o600)
                try:
                    lock.acquire(blocking=False)
                except Timeout:
                    continue
                attempt.callback(lock.release)
                free += 1
                if free == shares:
                    locks.push(attempt.pop_all())
                    return gpu
    return ""
