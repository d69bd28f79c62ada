"""Scale ``best``: each experiment at the largest scale whose runs are all finished.

The scales are chosen before any job is listed.  The Snakefile imports this module, so it must stay
light.  Experiments without finished runs are left out of the paper, with the reason and a command.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from fedsampling.experiments.config import Config
from fedsampling.experiments.paper_selection import without
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.specs import Job, jobs
from fedsampling.runs.places import finished_runs, run_stores

LARGEST_FIRST = ("paper", "reduced")


def at_best(paper: Paper, config: Config, results: Path) -> Paper:
    """Choose the scale of each experiment of a paper, if the configuration does not name one.

    `config`: includes overrides: changed runs have other hashes. Returns unchanged if the
    configuration names a scale.  Otherwise with ``scales``; an experiment over all registered
    samplers keeps the samplers with finished runs.
    """
    if config.computes:
        return paper
    finished = finished_runs(run_stores(results, config)[1])
    scales: dict[str, str] = {}
    jobs_at: dict[str, dict[str, list[Job]]] = {}  # by experiment and scale
    for scale in LARGEST_FIRST:
        undecided = without(paper, dict.fromkeys(scales, ""))
        for name, its_jobs in _jobs(undecided, config, scale).items():
            jobs_at.setdefault(name, {})[scale] = its_jobs
            if not _missing(its_jobs, finished):
                scales[name] = scale
    experiments = dict(paper.experiments)
    reasons = {}
    for name, experiment in paper.experiments.items():
        if name in scales:
            continue
        if part := _finished_part(experiment, jobs_at[name], finished):
            scales[name], experiments[name] = part
        else:
            smallest = [*jobs_at[name]][-1]
            reasons[name] = _reason(paper, smallest, jobs_at[name][smallest], finished)
    remaining = without(paper, reasons)
    remaining_experiments = {name: experiments[name] for name in remaining.experiments}
    return remaining.model_copy(update={"experiments": remaining_experiments, "scales": scales})


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


def _jobs(paper: Paper, config: Config, scale: str) -> dict[str, list[Job]]:
    """List the jobs of each experiment that exists at a scale."""
    absent = [name for name, spec in paper.experiments.items() if spec.get(scale, {}) is None]
    present = without(paper, dict.fromkeys(absent, ""))
    present = present.model_copy(update={"scales": dict.fromkeys(present.experiments, scale)})
    by_experiment: dict[str, list[Job]] = {}
    for job in jobs(present, config):
        by_experiment.setdefault(job.experiment, []).append(job)
    return by_experiment


def left_to_run(paper: Paper, config: Config, results: Path) -> dict[str, list[Job]]:
    """List the unfinished jobs of the paper's size, by experiment.

    `paper`: with all its experiments. `config`, `results`: only the locations of finished runs
    matter.
    """
    at_paper_size = config.model_copy(
        update={"scale": "paper", "data": "official", "overrides": {}}
    )
    target, shared = run_stores(results, at_paper_size)
    finished = finished_runs([target, *shared])
    return {
        name: _missing(its_jobs, finished)
        for name, its_jobs in _jobs(paper, at_paper_size, "paper").items()
    }


def _missing(all_jobs: list[Job], finished: Set[str]) -> list[Job]:
    return [job for job in all_jobs if not all(run.hash in finished for run in job.runs)]


def _reason(paper: Paper, scale: str, all_jobs: list[Job], finished: Set[str]) -> str:
    runs = sum(len(job.runs) for job in all_jobs)
    missing = sum(len(job.runs) for job in _missing(all_jobs, finished))
    state = "none" if missing == runs else f"{runs - missing:,}"
    # The paper's folder may have any name; the workflow's target is its key.
    command = f"snakemake --cores all {paper.key} --config scale={scale}"
    return f"{state} of {runs:,} runs finished; '{command}' computes {missing:,}"
