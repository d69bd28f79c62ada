"""The core-hours of a look at a claim: its missing runs, each as long as finished ones took."""

from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean

from fedsampling.base.inputs import note_runs
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.registration import with_seeds
from fedsampling.experiments.shorthand import exists_at
from fedsampling.experiments.specs import Job
from fedsampling.runs.places import file_name, file_names, finished_runs, run_of_name, run_stores
from fedsampling.workflow.best_scale import LARGEST_FIRST, jobs_at
from fedsampling.workflow.project import Project

SecondsOf = Callable[[str], float | None]  # of a finished run by its hash; None if unknown
Seconds = Mapping[tuple[str, str], Sequence[float]]  # of finished runs, by case and sampler


def hours_of_look(
    paper: Paper, twins: Mapping[str, str], seeds: int, project: Project, seconds_of: SecondsOf
) -> dict[str, float]:
    """Estimate the core-hours of a look's missing runs, by experiment with fresh seeds.

    Returns nothing if no run of one of them, or of the experiment that it repeats, was timed.

    `twins`: experiments with fresh seeds, by their originals. `seeds`: of the look, in all.
    """
    target, reused = run_stores(project.results, project.config)
    stored = file_names(target)
    published = finished_runs([folder for folder in reused if folder != target])
    finished = published | {*map(run_of_name, stored)}
    hours: dict[str, float] = {}
    for original, twin in twins.items():
        jobs = jobs_at(paper, project.config, scale_of_twins(paper, twins), {original, twin})
        note_runs(run.hash for job in jobs[twin] for run in job.runs)
        # Fresh runs first: the others are of earlier code, often on a busier machine.
        known = [
            _recorded_seconds(jobs.get(name, ()), finished, seconds_of) for name in (twin, original)
        ]
        if not any(known):
            return {}
        wanted = {*first_seeds(paper, twin, seeds)}
        hours[twin] = 0.0
        for job in jobs[twin]:
            missing = sum(
                run.seed in wanted
                and run.hash not in published
                and file_name(run.hash, job.code) not in stored  # other versions do not count
                for run in job.runs
            )
            hours[twin] += missing * expected_seconds(job.case, job.sampler, known) / 3600
    return hours


def scale_of_twins(paper: Paper, twins: Mapping[str, str]) -> str:
    """Return the scale at which a claim's experiments with fresh seeds exist."""
    experiment = paper.experiments[next(iter(twins.values()))]
    return next(name for name in LARGEST_FIRST if exists_at(experiment, name))


def first_seeds(paper: Paper, twin: str, n: int) -> list[int]:
    """Return the seeds of a look."""
    seeds: list[int] = with_seeds(paper.experiments[twin], n)["seeds"]
    return seeds


def expected_seconds(case: str, sampler: str, known: Sequence[Seconds]) -> float:
    """Average the seconds of a sampler's runs, of the first of `known` that has any.

    Without any, all runs of the case count, or all runs at all.
    """
    for seconds in known:
        if (case, sampler) in seconds:
            return fmean(seconds[case, sampler])
    every = [
        (key, value) for seconds in known for key, values in seconds.items() for value in values
    ]
    of_case = [value for (other, _), value in every if other == case]
    return fmean(of_case or [value for _, value in every])


def _recorded_seconds(
    jobs: Sequence[Job], finished: Collection[str], seconds_of: SecondsOf
) -> Seconds:
    """Return the seconds that the jobs' finished runs took, by case and sampler."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for job in jobs:
        for run in job.runs:
            of_run = seconds_of(run.hash) if run.hash in finished else None
            if of_run is not None:
                seconds.setdefault((job.case, job.sampler), []).append(of_run)
    return seconds
