"""Execution of a job: reuse finished runs, compute the others, store the result of each seed.

A job ends by writing its manifest, which lists its runs and their digests.  Later stages and
Snakemake wait for this file.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base import input_states, inputs, machine, memory
from fedsampling.base.errors import InputError
from fedsampling.base.files import check_writable, digest, write_json
from fedsampling.base.stopping import Stop
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import NetworkSimulation
from fedsampling.experiments.simulations.simulation import RunContext, Simulated
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.learning.training.checkpoint import Checkpoint
from fedsampling.runs import store
from fedsampling.runs.environment import choose_products, device, environment
from fedsampling.runs.leases import hold_leases
from fedsampling.runs.made import generation_of, record_of_job
from fedsampling.runs.places import run_stores
from fedsampling.runs.users_inputs import read_by_users, recording_of_users, users_code

Reporter = Callable[[str, int, int], None]


def stacks(jobs: Iterable[Job]) -> list[list[Job]]:
    """Group jobs whose runs can be computed together, in the order of each group's first job."""
    groups: dict[tuple[object, ...], list[list[Job]]] = {}
    ordered: list[list[Job]] = []
    for job in jobs:
        key = (job.experiment_id, job.sampler, job.block, job.code)
        for group in groups.setdefault(key, []):
            first = group[0].simulation
            if isinstance(first, NetworkSimulation) and first.stacks_with(job.simulation):
                group.append(job)
                break
        else:
            groups[key].append([job])
            ordered.append(groups[key][-1])
    return ordered


def execute(
    jobs: Sequence[Job], config: Config, results: Path, progress: Reporter, stop: Stop | None = None
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
                context = _context(job, due, config, results, stop)
                simulated, facts = _compute(job, due, context, progress)
                for (_, run), table in zip(due, simulated.tables, strict=True):
                    metadata = {"code": job.code, **facts, "hash": run.hash, "spec": run.identity}
                    read.update(facts.get("read", {}))
                    result = store.load(store.save(target, table, metadata))
                    digests[run.hash] = result.metadata["digest"]
                context.checkpoint.remove()
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


def _context(
    job: Job, due: Sequence[tuple[Job, RunSpec]], config: Config, results: Path, stop: Stop | None
) -> RunContext:
    """Return the data folder, device and checkpoint for the simulation of these runs."""
    key = digest([job.code, *(run.hash for _, run in due)])
    path = results / "checkpoints" / f"{key}.npz"
    checkpoint = Checkpoint(path, key, config.checkpoint_seconds, stop or (lambda: False))
    trained_on = device(config) if job.uses_gpu else "cpu"
    return RunContext(results / "data", config.mirror, trained_on, checkpoint)


def _compute(
    job: Job, due: Sequence[tuple[Job, RunSpec]], context: RunContext, progress: Reporter
) -> tuple[Simulated, dict[str, Any]]:
    """Simulate the runs that are due; return the results and their common metadata."""
    if any(run.hash != replace(run, hash="").hash for _, run in due):
        raise InputError(
            f"{job.name}: a run's hash is not that of its settings; delete plan.jsonl in the "
            "results, and run the same command again"
        )
    total = job.steps if job.counter else len(due)

    def report(steps: int) -> None:
        progress(job.name, steps, total)

    # Diverging runs overflow in every round; their `diverged_at` records the divergence.
    observed = users_code(due[0][0])
    with (
        memory.in_a_line(),
        np.errstate(over="ignore", invalid="ignore"),
        recording_of_users(observed),
    ):
        data, seeds = due[0][1].data, [run.seed for _, run in due]
        simulation = due[0][0].simulation
        if isinstance(simulation, NetworkSimulation):
            variants: Any = [member.simulation for member, _ in due]
            simulated = simulation.simulate_stacked(variants, data, seeds, context, report)
        else:
            simulated = simulation.simulate(data, seeds, context, report)
    read = read_by_users(due[0][0]) if observed else {}
    return simulated, {
        **({"read": read} if read else {}),
        "inputs": dict(simulated.inputs),
        "unverified": simulated.unverified,
        "started": f"{context.checkpoint.started:%Y-%m-%dT%H:%M:%SZ}",
        "finished": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        # The stacked seeds share the job's time.
        "seconds": round(context.checkpoint.seconds_so_far() / len(due), 4),
        "peak_mb": machine.peak_megabytes(),
        **environment(context.device, networks=job.uses_gpu),
        **context.notes,
    }


def locate(run_hash: str, target: Path, shared: list[Path], code: str) -> store.Result | None:
    """Return a finished run: of this code from `target`, of any code from shared stores.

    A run from `target` counts only if all that users' code read for it is unchanged.
    """
    result = store.find([target], run_hash, code)
    if result and input_states.changed(result.metadata.get("read", {})):
        result = None
    return result or locate_shared(run_hash, shared, code)


def locate_shared(run_hash: str, shared: Iterable[Path], code: str) -> store.Result | None:
    """Return a finished run from the first store that has it: of this code, or else of another."""
    runs = (store.find([folder], run_hash, key) for folder in shared for key in (code, None))
    return next(filter(None, runs), None)
