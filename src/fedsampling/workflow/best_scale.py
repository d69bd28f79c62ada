"""Scale ``best``: for each experiment, the largest scale at which all its runs are finished.

Experiments without finished runs are left out of the paper, with the reason and a command.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from fedsampling.base import inputs
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.registration import with_seeds
from fedsampling.experiments.resolving import Experiment, resolve_experiments
from fedsampling.experiments.selecting import without
from fedsampling.experiments.shorthand import exists_at
from fedsampling.experiments.specs import Job, jobs
from fedsampling.runs.places import finished_runs, run_stores

LARGEST_FIRST = ("paper", "reduced")


class Listed(NamedTuple):
    """A resolved experiment with its jobs."""

    experiment: Experiment
    jobs: list[Job]


def at_best(paper: Paper, config: Config, results: Path) -> tuple[Paper, dict[str, Listed]]:
    """Choose the scale of each experiment of a paper, if the configuration does not name one.

    Returns the paper, with ``scales``, and its jobs by experiment.  An experiment over all
    registered samplers keeps the samplers with finished runs.
    """
    if config.computes:
        return paper, _listed(paper, config)
    finished = finished_runs(run_stores(results, config)[1])
    scales: dict[str, str] = {}
    listed: dict[str, Listed] = {}
    jobs_at: dict[str, dict[str, list[Job]]] = {}  # by experiment and scale
    for scale in LARGEST_FIRST:
        undecided = without(paper, dict.fromkeys(scales, ""))
        for name, at_scale in _listed_at(undecided, config, scale).items():
            jobs_at.setdefault(name, {})[scale] = at_scale.jobs
            if not _missing(at_scale.jobs, finished):
                scales[name], listed[name] = scale, at_scale
    reasons = {}
    parts: dict[str, dict[str, Any]] = {}
    for name, experiment in paper.experiments.items():
        if name in scales:
            continue
        part = _finished_look(experiment, jobs_at[name], finished) or _finished_part(
            experiment, jobs_at[name], finished
        )
        if part:
            scales[name], parts[name] = part
        else:
            smallest = [*jobs_at[name]][-1]
            reasons[name] = _reason(paper, smallest, jobs_at[name][smallest], finished)
    remaining = without(paper, reasons)
    experiments = remaining.experiments | parts
    remaining = remaining.model_copy(update={"experiments": experiments, "scales": scales})
    listed |= _listed(without(remaining, dict.fromkeys(experiments.keys() - parts, "")), config)
    return remaining, {name: listed[name] for name in experiments}


def left_to_run(paper: Paper, config: Config, results: Path) -> dict[str, list[Job]]:
    """List the unfinished jobs of the paper's size, by experiment, without their code."""
    at_paper_size = config.model_copy(
        update={"scale": "paper", "data": "official", "overrides": {}}
    )
    target, shared = run_stores(results, at_paper_size)
    finished = finished_runs([target, *shared])
    listed = _listed_at(paper, at_paper_size, "paper", with_code=False)
    jobs_of = (job for experiment in listed.values() for job in experiment.jobs)
    inputs.note_runs(run.hash for job in jobs_of for run in job.runs)
    return {name: _missing(experiment.jobs, finished) for name, experiment in listed.items()}


def jobs_at(
    paper: Paper, config: Config, scale: str, experiments: Set[str]
) -> dict[str, list[Job]]:
    """List the jobs of some experiments of a paper at a scale, by experiment."""
    others = dict.fromkeys(paper.experiments.keys() - experiments, "")
    at_scale = config.model_copy(update={"scale": scale, "data": "official", "overrides": {}})
    listed = _listed_at(without(paper, others), at_scale, scale)
    return {name: entry.jobs for name, entry in listed.items()}


def _finished_look(
    experiment: dict[str, Any], jobs_at: Mapping[str, list[Job]], finished: Set[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return an experiment with the seeds of its largest finished look, and its scale; or None."""
    for scale, its_jobs in jobs_at.items():
        for n in sorted(experiment.get("looks", ()), reverse=True):
            seeds = {*experiment["seeds"][:n]}
            runs = [run for job in its_jobs for run in job.runs if run.seed in seeds]
            if all(run.hash in finished for run in runs):
                return scale, with_seeds(experiment, n)
    return None


def _finished_part(
    experiment: dict[str, Any], jobs_at: Mapping[str, list[Job]], finished: Set[str]
) -> tuple[str, dict[str, Any]] | None:
    """Return an experiment on all samplers without the unfinished ones, and its scale.

    A new sampler then does not change the scale of the others.  None if no sampler is finished, or
    if the experiment names its samplers.
    """
    if "*" not in experiment.get("samplers", ()):
        return None
    unfinished = {
        scale: sorted({job.sampler for job in _missing(its_jobs, finished)})
        for scale, its_jobs in jobs_at.items()
    }
    scale = min(unfinished, key=lambda scale: len(unfinished[scale]))
    if len(unfinished[scale]) == len({job.sampler for job in jobs_at[scale]}):
        return None
    samplers = {**experiment["samplers"], **dict.fromkeys(unfinished[scale])}
    return scale, {**experiment, "samplers": samplers}


def _listed_at(
    paper: Paper, config: Config, scale: str, with_code: bool = True
) -> dict[str, Listed]:
    """List the jobs of each experiment that exists at a scale."""
    absent = [name for name, spec in paper.experiments.items() if not exists_at(spec, scale)]
    present = without(paper, dict.fromkeys(absent, ""))
    scales = dict.fromkeys(present.experiments, scale)
    return _listed(present.model_copy(update={"scales": scales}), config, with_code)


def _listed(paper: Paper, config: Config, with_code: bool = True) -> dict[str, Listed]:
    resolved = resolve_experiments(paper, config)
    listed = {name: Listed(experiment, []) for name, (experiment, _) in resolved.items()}
    for job in jobs(paper, config, resolved, with_code):
        listed[job.experiment].jobs.append(job)
    return listed


def _missing(all_jobs: list[Job], finished: Set[str]) -> list[Job]:
    return [job for job in all_jobs if not all(run.hash in finished for run in job.runs)]


def _reason(paper: Paper, scale: str, all_jobs: list[Job], finished: Set[str]) -> str:
    runs = sum(len(job.runs) for job in all_jobs)
    missing = sum(len(job.runs) for job in _missing(all_jobs, finished))
    state = "none" if missing == runs else f"{runs - missing:,}"
    # The paper's folder may have any name; the workflow's target is its key.
    command = f"snakemake --cores all {paper.key} --config scale={scale}"
    return f"{state} of {runs:,} runs finished; '{command}' computes {missing:,}"
