"""Execution of a job: reuse finished runs, compute the others, store the result of each seed.

A job ends by writing its manifest, which lists its runs and their digests.  Later stages and
Snakemake wait for this file.
"""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base import inputs, machine, memory
from fedsampling.base.errors import InputError
from fedsampling.base.files import check_writable, digest, write_json
from fedsampling.base.lazy import torch
from fedsampling.base.stopping import Stop
from fedsampling.experiments.config import PRODUCTS_VARIABLE, Config
from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.simulations.simulation import Simulated, Where
from fedsampling.experiments.specs import PAPERS, Job, RunSpec, users_files
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.runs import store
from fedsampling.runs.leases import hold_leases
from fedsampling.runs.made import generation_of, record_of_job
from fedsampling.runs.places import run_stores
from fedsampling.samplers.users.files import read_at_load

LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "torch")
# Environment variables that select kernels, and so the rounding, of libraries.
KERNELS = (
    "ATEN_CPU_CAPABILITY",
    PRODUCTS_VARIABLE,
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "NPY_DISABLE_CPU_FEATURES",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
)
Progress = Callable[[str, int, int], None]


def stacks(jobs: Iterable[Job]) -> list[list[Job]]:
    """Group jobs whose runs can be computed together, in the order of each group's first job."""
    groups: dict[tuple[object, ...], list[list[Job]]] = {}
    ordered: list[list[Job]] = []
    for job in jobs:
        key = (job.experiment_id, job.sampler, job.block, job.code)
        for group in groups.setdefault(key, []):
            first = group[0].simulation
            if isinstance(first, Network) and first.stacks_with(job.simulation):
                group.append(job)
                break
        else:
            groups[key].append([job])
            ordered.append(groups[key][-1])
    return ordered


def execute(
    jobs: Sequence[Job], config: Config, results: Path, progress: Progress, stop: Stop | None = None
) -> list[Path]:
    """Compute the missing runs of a job, or of a group of :func:`stacks`; write their manifests.

    Runs that another process is computing are waited for and reused. `progress` gets the job's
    name, the number of finished steps and the total; simulations with checkpoints poll `stop`.
    """
    check_writable(results)
    inputs.ignore(results)
    choose_products(config)
    target, shared = run_stores(results, config)
    job = jobs[0]
    paths = [config.run_folder(results) / "runs" / f"{member.name}.json" for member in jobs]
    records = [record_of_job(config.run_folder(results), member.name) for member in jobs]
    generations = [generation_of(record) for record in records]
    # Each run is computed once: two cases with the same settings have the same runs.
    runs = {run.hash: (member, run) for member in jobs for run in member.runs}
    digests: dict[str, str] = {}  # of the tables of finished runs, by the runs' hashes
    read: dict[str, str] = {}  # inputs of users' code

    def unfinished() -> list[tuple[Job, RunSpec]]:
        for run_hash in runs.keys() - digests.keys():
            if result := locate(run_hash, target, shared, job.code):
                digests[run_hash] = result.metadata["digest"]
                read.update(result.metadata.get("read", {}))
        return [runs[run_hash] for run_hash in runs if run_hash not in digests]

    if (due := unfinished()) and not config.computes:
        fix = "run the same command again to leave out its experiment"
        raise InputError(f"{job.name}: {len(due)} of its runs cannot be read; {fix}")
    if due:
        waiting = "{}: waits for {}, which computes the same runs".format
        with hold_leases(
            [store.lease_of(target, run.hash, job.code) for _, run in due],
            lambda owner: print(waiting(job.name, owner), file=sys.stderr, flush=True),
        ):
            if due := unfinished():  # another process may have computed them
                where = _where(job, due, config, results, stop)
                simulated, facts = _compute(job, due, where, progress)
                for (_, run), table in zip(due, simulated.tables, strict=True):
                    metadata = {"code": job.code, **facts, "hash": run.hash, "spec": run.identity}
                    read.update(facts.get("read", {}))
                    result = store.load(store.save(target, table, metadata))
                    digests[run.hash] = result.metadata["digest"]
                where.checkpoint.remove()
    progress(job.name, 1, 1)
    for record, generation in zip(records, generations, strict=True):
        if read or generation:
            write_json(record, {"read": read, "generation": generation})
    for member, path in zip(jobs, paths, strict=True):
        rows = [
            {"hash": run.hash, "seed": run.seed, "digest": digests[run.hash]} for run in member.runs
        ]
        write_json(path, {"job": member.name, "runs": rows})
    return paths


def _where(
    job: Job, due: Sequence[tuple[Job, RunSpec]], config: Config, results: Path, stop: Stop | None
) -> Where:
    """Return the data folder, device and checkpoint for the simulation of these runs."""
    key = digest([job.code, *(run.hash for _, run in due)])
    path = results / "checkpoints" / f"{key}.npz"
    checkpoint = Checkpoint(path, key, config.checkpoint_seconds, stop or (lambda: False))
    trained_on = device(config) if job.uses_gpu else "cpu"
    return Where(results / "data", config.mirror, trained_on, checkpoint)


def _compute(
    job: Job, due: Sequence[tuple[Job, RunSpec]], where: Where, progress: Progress
) -> tuple[Simulated, dict[str, Any]]:
    """Simulate the runs that are due; return the results and their common metadata."""
    if any(run.hash != replace(run, hash="").hash for _, run in due):
        raise InputError(
            f"{job.name}: a run's hash is not that of its settings; delete plan.json in the "
            "results, and run the same command again"
        )
    total = job.steps if job.counter else len(due)

    def report(steps: int) -> None:
        progress(job.name, steps, total)

    started, clock = datetime.now(UTC), time.perf_counter()
    # Diverging runs overflow in every round; their `diverged_at` records the divergence.
    observed = users_code(due[0][0])
    with memory.in_a_line(), np.errstate(over="ignore", invalid="ignore"), _recording(observed):
        data, seeds = due[0][1].data, [run.seed for _, run in due]
        simulation = due[0][0].simulation
        if isinstance(simulation, Network):
            variants: Any = [member.simulation for member, _ in due]
            simulated = simulation.simulate_stacked(variants, data, seeds, where, report)
        else:
            simulated = simulation.simulate(data, seeds, where, report)
    seconds = time.perf_counter() - clock
    read = _read_by_users(due[0][0]) if observed else {}
    return simulated, {
        **({"read": read} if read else {}),
        "inputs": dict(simulated.inputs),
        "unverified": simulated.unverified,
        "started": f"{started:%Y-%m-%dT%H:%M:%SZ}",
        "finished": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "seconds": round(seconds / len(due), 4),  # the stacked seeds share the job's time
        "peak_mb": machine.peak_megabytes(),
        **environment(where.device, networks=job.uses_gpu),
        **where.notes,
    }


# Inputs of users' code.
#
# The package's own code reads nothing but data that are compared with a digest in the settings.
# Users' samplers, models and run kinds may read anything: it goes into the records of their runs.


_records: list[inputs.Recording] = []  # of all simulations of this process


@contextmanager
def _recording(observed: bool) -> Iterator[None]:
    with inputs.recording() if observed else nullcontext() as record:
        yield
    if record:
        _records.append(record)


def users_code(job: Job) -> bool:
    """Whether users' code takes part in the runs of a job."""
    return bool(users_files(job.simulation)) or job.kind.__module__.startswith(f"{PAPERS}.")


def _read_by_users(job: Job) -> dict[str, str]:
    """Return what users' code read in this process, when it was imported included.

    All that it read so far counts, because what one run reads may be remembered for the next one.
    """
    at_load = read_at_load() if users_files(job.simulation) else {}
    return inputs.merged(at_load, *(record.states() for record in _records))


def choose_products(config: Config) -> None:
    """Use the configured library for matrix products; must be called before the first product."""
    if config.products != "auto":
        os.environ[PRODUCTS_VARIABLE] = config.products


def device(config: Config) -> str:
    """Return the device that trains networks, by PyTorch's name."""
    if config.device == "cpu":
        return "cpu"
    if torch.cuda.is_available():
        return "cuda"
    if config.device == "cuda":
        raise InputError("device: 'cuda' needs a GPU, and PyTorch sees none; use cpu or auto")
    return "cpu"


def locate(run_hash: str, target: Path, shared: list[Path], code: str) -> store.Result | None:
    """Return a finished run: of this code from `target`, of any code from shared stores.

    A run from `target` counts only if all that users' code read for it is unchanged.
    """
    result = store.find([target], run_hash, code)
    if result and inputs.changed(result.metadata.get("read", {})):
        result = None
    return result or locate_shared(run_hash, shared, code)


def locate_shared(run_hash: str, shared: Iterable[Path], code: str) -> store.Result | None:
    """Return a finished run from the first store that has it: of this code, or else of another."""
    runs = (store.find([folder], run_hash, key) for folder in shared for key in (code, None))
    return next(filter(None, runs), None)


@cache
def environment(device: str = "cpu", networks: bool = False) -> dict[str, Any]:
    """Return the environment of a run: package, commit, libraries, kernel settings, device."""
    kernels = {name: os.environ[name] for name in KERNELS if os.environ.get(name)}
    if networks and device == "cpu":
        from fedsampling.learning.models import products

        kernels["products"] = products.library()
    return {
        "package": metadata.version("fedsampling"),
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in LIBRARIES},
        "kernels": kernels,
        "device": _device(device),
    }


def _commit() -> str | None:
    """Return the checkout's commit, with "-dirty" if tracked files differ from it.

    Published runs do not count: publishing one experiment must not mark the next one's runs.
    None outside a checkout, and for an installed package inside another project's checkout.
    """
    no_published_runs = [":/", ":(top,exclude)published_runs"]
    try:
        _git("ls-files", "--error-unmatch", __file__)
        commit = _git("rev-parse", "--short=12", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=no", "--", *no_published_runs)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changes else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()


def _device(device: str) -> str:
    if device == "cuda":
        return f"cuda: {torch.cuda.get_device_name()}"
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return f"cpu: {machine.processor()}, {threads} thread{'' if threads == '1' else 's'}"
