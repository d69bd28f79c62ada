"""What a configuration runs, before it runs: ``fedsampling check``, ``check-sampler``, ``plan``."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from math import inf, isnan, nan, prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fedsampling.base import memory
from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError, gathering
from fedsampling.base.progress import reporter
from fedsampling.base.text import align, format_bytes, format_duration
from fedsampling.data.sources.fetch import download_sizes
from fedsampling.data.sources.local_files import place_of
from fedsampling.data.sources.sources import editions
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import defining_modules
from fedsampling.experiments.simulations.network import Network, check_pairs, pair_bytes
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.experiments.specs import Job
from fedsampling.learning.models.settings import Model
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.report.citation import paper_bibtex
from fedsampling.runs.execute import device
from fedsampling.runs.places import run_stores, unfinished_runs
from fedsampling.runs.resources import Measured, excesses, measurement_key, save_measurements
from fedsampling.runs.store import find
from fedsampling.workflow.project import Project

if TYPE_CHECKING:
    from fedsampling.learning.training.launches import Launches


def check_all(project: Project) -> list[str]:
    """Check the configuration, the papers' files and every run; return a summary.

    For experiments with overrides, the clients are also loaded if their data are available.
    """
    plan, config = project.plan, project.config
    problems: list[str] = []
    if config.device == "cuda" and config.cluster.gpu == "none":
        with gathering(problems):
            device(config)  # skipped on clusters: another node may have the GPU
    for key, paper in plan.papers.items():
        with gathering(problems):
            paper_bibtex(paper.folder / "paper.bib", key)
        for files, names in (("figures", paper.artefacts), ("claims", paper.claims)):
            with gathering(problems):
                defining_modules(paper.folder, files, *names)
    for job in plan.jobs.values():
        if config.overrides.get(job.paper, {}).get(job.experiment) and not job.block:
            misfits: list[str] = []
            with gathering(misfits):
                _check_clients(job, project)
            problems += [f"overrides.{job.paper}.{job.experiment}.{line}" for line in misfits]
    if problems:
        raise InputError(*dict.fromkeys(problems))
    runs = sum(len(job.runs) for job in plan.jobs.values())
    lines = [f"{project.file}: valid: {len(plan.jobs)} jobs, {runs} runs"]
    lines += [
        f"overrides.{key}.{name}: left out: {reason}"
        for key, changes in config.overrides.items()
        for name, reason in plan.papers[key].left_out.items()
        if changes.get(name)
    ]
    return lines


def _check_clients(job: Job, project: Project) -> None:
    """Raise an InputError if a network's settings do not fit its data, if these are available."""
    where, data = Where(project.data, project.config.mirror), job.runs[0].data
    network = job.simulation
    if not isinstance(network, Network) or data != available_data(job, where.cache, where.mirror):
        return
    largest = work_of(network, data, where, _max_bytes(project.config)).largest
    if network.work.batch > largest:
        raise InputError(
            f"work.batch: {network.work.batch} exceeds the samples of every client; "
            f"must be at most {largest:.0f}"
        )


# Run ``fedsampling check-sampler`` in a separate process with a time limit.
#
# If the sampler loops forever, calls ``sys.exit`` or crashes, only that process ends.  The error is
# one line.


_CHECK = """import faulthandler, sys
faulthandler.dump_traceback_later(float(sys.argv.pop(1)), exit=True)
from fedsampling.cli import main
main()"""
_CALL = re.compile(r'^  File "(.+)", line (\d+) in (\w+)$', re.MULTILINE)


def check_in_subprocess(seconds: float, name: str, options: Sequence[str]) -> int:
    """Check a sampler, by name or file and settings such as ``m=4``; return the exit status."""
    python = [sys.executable, "-P", "-X", "faulthandler", "-c", _CHECK, str(seconds)]
    command = [*python, "check-sampler", "--timeout", "0", "--", name, *options]
    process = subprocess.run(command, capture_output=True, text=True)
    status, err = process.returncode, process.stderr
    if status == 1 and "Timeout (" in err:
        raise InputError(
            f"{name}: no result after {seconds:g} s{_place(err, name)}; look for an endless loop, "
            "put code that trains below if __name__ == '__main__', "
            f"or use --timeout {2 * seconds:g}"
        )
    if status < 0:
        cause = signal.Signals(-status).name
        raise InputError(f"{name}: the check ended with {cause}{_place(err, name)}; fix the file")
    if status not in (0, 2) or (status and not err):
        raise InputError(
            f"{name}: the check ended with status {status} and no result; "
            "a sampler must not end the process"
        )
    print(process.stdout, end="")
    print(err, end="", file=sys.stderr)
    return status


def _place(report: str, name: str) -> str:
    """Return the innermost call within the user's file, from faulthandler's report."""
    for file, line, function in _CALL.findall(report):
        if file.endswith(name.rpartition("/")[2]):
            return f", in {function} ({name}:{line})"
    return ""


# Costs of a configuration before it runs, ``fedsampling plan``: jobs, time, downloads.


START_UP_SECONDS = 1.5  # interpreter and imports of a job
MAX_SECONDS = 35.0  # for all estimates


class ExperimentCost(NamedTuple):
    """Cost of one experiment, or of all."""

    experiment: str
    jobs: int
    runs: int
    finished: int
    hours: float  # of the unfinished runs, on one core; NaN if unknown
    at_most: bool  # whether runs may end before their last round
    gpu_hours: float = 0.0  # predicted for the runs of networks on an H100


class Costs(NamedTuple):
    """Costs of all experiments."""

    experiments: list[ExperimentCost]
    downloads: dict[str, int | None]  # bytes of missing official files; None if unknown
    notes: list[str]
    on_gpu: bool = False  # whether networks were measured on this machine's GPU


def estimate(project: Project) -> Costs:
    """Estimate the costs, and save the times and memory that cluster jobs will request."""
    plan, config = project.plan, project.config
    target, shared = run_stores(project.results, config)
    open_runs = {
        job.name: sum(
            not find([target], run_hash, job.code) for run_hash in unfinished_runs(job, shared)
        )
        for job in plan.jobs.values()
    }
    due = [job for job in plan.jobs.values() if open_runs[job.name]]
    measured, notes = _measure(due, project)
    if measured:
        save_measurements(measured, project.results)
    notes += excesses(due, measured, config.cluster)
    by_experiment = {
        name: [plan.jobs[job] for job in plan.jobs_of(*name.split("/"))]
        for name in plan.experiments
    }
    costs = [_cost(name, jobs, open_runs, measured) for name, jobs in by_experiment.items()]
    downloads = download_sizes(plan.datasets(*plan.jobs), project.data, config.mirror)
    on_gpu = any(cost.device != "cpu" for cost in measured.values())
    return Costs(costs, downloads, notes, on_gpu)


_CORE = "one core of this machine", "cores"


def cost_table(costs: Costs) -> str:
    """Format the costs as a table, with notes below."""
    hours = [cost.hours for cost in costs.experiments if not isnan(cost.hours)]
    jobs, runs, finished = (
        sum(getattr(cost, column) for cost in costs.experiments)
        for column in ("jobs", "runs", "finished")
    )
    total = ExperimentCost("total", jobs, runs, finished, sum(hours) if hours else nan, False)
    time_of = "GPU time" if costs.on_gpu else "CPU time"
    rows: list[tuple[str, ...]] = [("experiment", "jobs", "runs", "finished", time_of)]
    for cost in (*costs.experiments, total):
        cpu_time = "≤ " * cost.at_most + format_duration(3600 * cost.hours)
        rows.append((*map(str, cost[:4]), cpu_time))
    lines = [*align(rows, numbers_from=1), "", *costs.notes]
    lines += [
        f"download  {name}: {'unknown size' if size is None else format_bytes(size)}"
        for name, size in costs.downloads.items()
    ] or ["download: nothing"]
    if total.finished == total.runs:
        lines.append("All runs are finished; nothing has to be computed.")
    elif hours:
        if gpu_hours := sum(cost.gpu_hours for cost in costs.experiments):
            lines.append(
                f"On an H100, runs of networks would take {format_duration(3600 * gpu_hours)} "
                "(predicted, not measured: docs/performance.md)."
            )
        where, number = ("this machine's GPU", "GPUs") if costs.on_gpu else _CORE
        lines.append(
            f"{time_of} is for {where} and often off by a factor of two; divide it "
            f"by your number of {number}. ≤: runs may end before their last round."
        )
    else:
        lines.append("CPU time was not estimated.")
    return "\n".join(lines)


def _measure(jobs: Sequence[Job], project: Project) -> tuple[dict[str, Measured], list[str]]:
    """Estimate each job; also return notes on the experiments that could not be estimated."""
    measured: dict[str, Measured] = {}
    notes: dict[str, str] = {}
    end = time.monotonic() + MAX_SECONDS
    with reporter() as progress:
        for index, job in enumerate(jobs):
            progress("measuring", index, len(jobs))
            key = measurement_key(job)
            if key in measured or job.experiment_id in notes:
                continue
            if time.monotonic() > end:
                notes[job.experiment_id] = f"no time left after {MAX_SECONDS:.0f} s"
                continue
            try:
                measured[key] = measure(job, project.results, project.config)
            except InputError as error:
                notes[job.experiment_id] = error.lines[0]
    return measured, [f"not estimated  {name}: {reason}" for name, reason in notes.items()]


def _cost(
    name: str, jobs: Sequence[Job], open_runs: dict[str, int], measured: dict[str, Measured]
) -> ExperimentCost:
    """Return the cost of an experiment; unknown jobs are assumed to take as long as the others."""
    due = [job for job in jobs if open_runs[job.name]]
    known = [(job, measured[key]) for job in due if (key := measurement_key(job)) in measured]
    seconds = sum(
        START_UP_SECONDS + open_runs[job.name] / len(job.runs) * cost.step * job.steps
        for job, cost in known
    )
    if due:
        seconds *= len(due) / len(known) if known else nan
    gpu_seconds = sum(
        open_runs[job.name] / len(job.runs) * cost.gpu_step * job.steps for job, cost in known
    )
    runs = sum(len(job.runs) for job in jobs)
    finished = runs - sum(open_runs[job.name] for job in due)
    at_most = any(job.runs[0].settings.get("until") for job in due)
    hours = seconds / 3600, at_most, gpu_seconds / 3600
    return ExperimentCost(name, len(jobs), runs, finished, *hours)


# Time and memory of a job by its settings: the operations of its rounds, divided by the rate of a
# local step, which is measured on this machine in a fraction of a second.  Jobs of other run kinds
# take minutes at most; a kind declares the seconds of a step.


MIN_TIMED_SECONDS = 0.03
MAX_TIMED_OPERATIONS = 1e9  # of a call that is timed on a CPU, if it is of several slots
TIMED_SLOTS = (10, 100, 1000)  # numbers of slots that are timed on a GPU
ROUND_SECONDS = 0.002  # of a run, in addition to its products: draws, costs, the server's step


class Batch(NamedTuple):
    """A batch of one slot's network."""

    model: Model
    sample: tuple[int, ...]
    classes: int | None
    size: int
    tokens: bool


class Work(NamedTuple):
    """The work of one run of a network."""

    operations: float  # of a round's products and convolutions, with the share of evaluations
    slots: float  # clients that train in a round
    largest: float  # training samples of the client with the most
    bytes: float  # of models, batches, the steps of all slots at once, and the sampler
    batch: Batch


def measure(job: Job, results: Path, config: Config) -> Measured:
    """Estimate the time of a job's step and its memory; stand-ins replace missing official data."""
    settings, seeds = job.simulation, len(job.runs)
    if not isinstance(settings, Network):
        return Measured(settings.step_seconds * (seeds if job.counter else 1))
    where = Where(results / "data", config.mirror, device(config))
    data = available_data(job, where.cache, where.mirror)
    work = work_of(settings, data, where, _max_bytes(config))
    rate = operations_per_second(work.batch, round(seeds * work.slots), where.device)
    seconds = seeds * (work.operations / rate + ROUND_SECONDS)
    # Most runs that end by their clock end soon after their minimum number of rounds.
    rounds = (settings.until and settings.until.rounds) or settings.rounds
    share, mb = rounds / settings.rounds, work.bytes / 2**20
    gpu_seconds, gpu_jobs = predicted_on_a_gpu(work, seeds)
    if where.device != "cpu":
        gpu_seconds = 0.0  # it is measured
    return Measured(share * seconds, where.device, mb, share * gpu_seconds, gpu_jobs)


def _max_bytes(config: Config) -> float:
    """Return the memory of this machine, or of the largest job on a cluster."""
    return max(memory.available(), config.cluster.max_mem_mb * 2**20)


def work_of(settings: Network, data: str, where: Where, max_bytes: float = inf) -> Work:
    """Count the work of a run.

    Raises InputError if settings and data do not fit, or if the sampler's matrices of all pairs of
    clients exceed `max_bytes`.
    """
    sizes, tests, sample, classes = _clients(settings, data, where)
    held = settings.holdout or 0.0
    tests, samples = (held * sizes.sum() if held else tests), (1 - held) * sizes
    n, work, sampler, every = len(sizes), settings.work, settings.sampler, settings.evaluation.every
    try:
        sampler.check_population(n)
    except ValueError as error:
        raise InputError(str(error)) from None
    batch = Batch(settings.model, sample, classes, work.batch, settings.inputs == "tokens")
    d, step_bytes, forward, step = batch_cost(batch)
    slots = min(sampler.expected_clients(n, settings.rounds), float(n))
    steps = work.steps or (work.epochs or 1) * np.ceil(samples / work.batch).mean()
    dense = min(settings.evaluation.each_until, settings.rounds) / settings.rounds
    evaluations = 1 / every + dense * (1 - 1 / every)  # in each round
    evaluated = (tests + samples.sum() * settings.evaluation.training_loss) * evaluations
    if "losses" in sampler.needs:
        evaluated += samples.mean() * getattr(sampler, "d", n)
    operations = slots * steps * step + evaluated * forward / work.batch
    trained = 4 * d * (2 + 3 * slots) + slots * (step_bytes + 4 * work.batch * prod(sample))
    check_pairs(sampler, n, max_bytes)
    stored = pair_bytes(sampler, n)
    if sampler.needs & {"gradients", "updates"}:  # of all clients, and a copy in double precision
        stored += 12.0 * n * d
    return Work(operations, slots, samples.max(), trained + stored, batch)


@lru_cache
def batch_cost(batch: Batch) -> tuple[int, int, int, int]:
    """Return parameters, bytes of a step, and operations of a batch's outputs and of a step."""
    from fedsampling.learning.models.operations import operations, step_bytes

    network = batch.model.build(batch.sample, batch.classes)
    with memory.in_a_line():
        count = operations(network, batch.sample, batch.size)
        bytes_ = step_bytes(network, batch.sample, batch.size)
    return network.dimension, bytes_, count.forward, count.step


@lru_cache
def operations_per_second(batch: Batch, slots: int, device: str) -> float:
    """Measure the operations per second of local steps, with up to `slots` stacked slots.

    Seconds are of the CPU, or of a GPU.
    """
    from fedsampling.learning.models.devices import precise, stack_bytes
    from fedsampling.learning.training.launches import slot_bytes, trial_step

    network, step = batch.model.build(batch.sample, batch.classes), batch_cost(batch)[-1]
    if device == "cpu":
        stack, clock = MAX_TIMED_OPERATIONS // max(step, 1), time.process_time
        stack = int(np.clip(stack, 1, max(slots, 1)))
    else:
        work = LocalWork(batch=batch.size, step=1, steps=1)
        fit = stack_bytes(device) / slot_bytes(network, batch.sample, work, device)
        stack = max(n for n in (1, *TIMED_SLOTS) if n == 1 or n <= min(slots, fit))
        clock = time.perf_counter
    step_of_all = trial_step(network, batch.sample, batch.size, stack, device)

    def take() -> None:
        with precise(device):
            step_of_all().sum().item()  # waits for a GPU, too

    take()  # libraries choose and try out
    steps, begin = 0, clock()
    while (spent := clock() - begin) < MIN_TIMED_SECONDS:
        take()
        steps += 1
    return step * stack * steps / spent


def predicted_on_a_gpu(work: Work, seeds: int) -> tuple[float, int]:
    """Predict the seconds of a round on an H100, and how many such jobs it can serve at once."""
    from fedsampling.learning.models.devices import GPU_SHARE
    from fedsampling.learning.training.launches import H100

    one = launches(work.batch)
    if not one.flop:
        return 0.0, 1
    fit = GPU_SHARE * H100.memory / max(one.peak_bytes, 1)
    step = one.times(max(min(seeds * work.slots, fit), 1))
    return seeds * work.operations * step.seconds() / step.flop, step.jobs_at_once()


@lru_cache
def launches(batch: Batch) -> "Launches":
    """Count what a step of one slot asks of a GPU."""
    from fedsampling.learning.training.launches import of_step

    network = batch.model.build(batch.sample, batch.classes)
    with memory.in_a_line():
        return of_step(network, batch.sample, batch.size, 1)


def available_data(job: Job, cache: Path, mirror: str | None) -> str:
    """Return the source of a job's data; ``embedded``, the stand-ins, if its files are missing."""
    for name in job.files:
        of_each = editions(name).values()
        if not any(all(place_of(file, cache, mirror) for file in files) for files in of_each):
            return "embedded"
    return job.runs[0].data


def _clients(
    settings: Network, data: str, where: Where
) -> tuple[Ints, int, tuple[int, ...], int | None]:
    """Return the clients' sizes, the number of tests, a sample's shape and the classes; cached."""
    key = settings.model_dump_json(include={"dataset", "problem_seed"}) + data
    if key not in _SEEN:
        problem = settings.dataset.load(data, settings.problem_seed, where.cache, where.mirror)
        shape = problem.x.shape[1:]
        _SEEN[key] = problem.n_samples, len(problem.x_test), shape, problem.classes
    return _SEEN[key]


_SEEN: dict[str, tuple[Ints, int, tuple[int, ...], int | None]] = {}
