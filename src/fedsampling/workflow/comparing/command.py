"""``fedsampling compare``: check users' samplers, run them in the cross matrix, and rank them."""

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, check_known, naming
from fedsampling.experiments.cross_matrix import CROSS_MATRIX
from fedsampling.experiments.resolving import resolved_settings
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.users.files import joint_name, load_file
from fedsampling.workflow.comparing.by_dataset import ByDataset
from fedsampling.workflow.comparing.entries import Entry, all_entries, check_entry
from fedsampling.workflow.comparing.own_problem import OwnProblem
from fedsampling.workflow.comparing.results import show_results
from fedsampling.workflow.comparing.selection import (
    Competition,
    Echo,
    Overrides,
    chosen_datasets,
    cross_matrix,
    usual_scale,
)
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of ``fedsampling compare`` asks for."""

    files: Sequence[Path]  # whose samplers are compared, with each other and with all others
    problem: OwnProblem
    scale: str | None = None  # by default as in :func:`usual_scale`
    settings: Sequence[str] = ()  # of the samplers; see :func:`all_entries`
    datasets: Sequence[str] = ()  # of the cross matrix; see :func:`chosen_datasets`
    against: Sequence[str] = ()  # the other samplers, besides md; by default all
    cores: int = 1  # datasets that train at the same time
    minutes: float | None = None  # after these, the finished datasets are ranked


def compare(request: Request, project: Project, echo: Echo) -> int:
    """Compare users' samplers with each other and with all others; print lines with `echo`.

    Returns the exit status: 0, or that of an interrupted job; the same command resumes it.
    """
    minutes, files = request.minutes, request.files
    end = None if minutes is None else time.monotonic() + 60 * minutes
    members = list(dict.fromkeys(member for file in files for member in load_file(file)))
    is_step = all(str(file) in project.config.schemes for file in files)
    made = project.made(f"compare/{joint_name(members)}")
    with made.making() if is_step else nullcontext():
        comparison, common = _competition(request, members, project, echo)
        run = "compare/" + "-".join(filter(None, [joint_name(members), request.problem.name]))
        if comparison.matrix.config.scale == "paper" and not request.problem:
            by_dataset = ByDataset(comparison, run, request.cores, end, echo)
            return by_dataset.train_and_rank(is_benchmark=not request.datasets)
        if request.problem:
            overrides = comparison.with_fitting_samplers(common, echo)
        else:
            overrides = comparison.with_finished_samplers(comparison.datasets, echo)
        return _run_together(comparison, overrides, run, echo)


def _competition(
    request: Request, members: Sequence[type[Scheme]], project: Project, echo: Echo
) -> tuple[Competition, Mapping[str, Any]]:
    """Check a request; return who competes on which datasets, and the others' settings."""
    problem = request.problem
    scale = request.scale or usual_scale(request.datasets, problem)
    if request.minutes is not None and (scale != "paper" or problem):
        raise InputError("--minutes: no effect at this scale or with your data; remove it")
    entries = all_entries(members, request.settings)
    matrix = _cross_matrix(project, request.files, scale)
    common = _at_quick_scale(matrix)
    check_known(request.against, common, "--against {}: unknown")
    chosen = chosen_datasets(matrix, request.datasets, scale, problem)
    problem.check_model()
    problem.check_clients()
    _check(entries, common, echo)
    return Competition(matrix, entries, chosen, problem, request.against), common


def _check(entries: Mapping[str, Entry], common: Mapping[str, Any], echo: Echo) -> None:
    for label, entry in entries.items():
        echo(f"{label}: checking")
        with naming(label) if len(entries) > 1 else nullcontext():
            check_entry(entry, common.get(entry["name"], {}))
        echo(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")


def _run_together(comparison: Competition, overrides: Overrides, run: str, echo: Echo) -> int:
    """Run all jobs in this process, and show the results; return the exit status."""
    compared = comparison.project(overrides, run)
    compared.write()
    plan, problem = compared.plan, comparison.problem
    chosen = [name for name in comparison.datasets if overrides[name]]
    jobs = [plan.jobs[job] for job in plan.jobs_to_run(CROSS_MATRIX)]
    runs = sum(len(job.runs) for job in plan.jobs.values() if job.sampler in comparison.entries)
    titles = [problem.data.name] if problem.data else chosen
    names = ", ".join(comparison.entries)
    where = problem.title if problem.data else ", ".join(titles)
    echo(f"{len(jobs)} jobs, {runs} runs of {names}, on {where}")
    if status := execute_all(jobs, compared, lambda manifest: None):
        return status
    quick = "Quick scale only shows that the sampler runs; it is not evidence."
    return show_results(
        compared,
        comparison.entries,
        dict(zip(chosen, titles, strict=True)),
        quick if comparison.matrix.config.scale == "quick" else "",
        echo,
        own_data=problem.data is not None,
    )


def _at_quick_scale(matrix: Project) -> Mapping[str, Any]:
    """Return the samplers of the experiment that runs them all, with their settings."""
    quick = matrix.with_config(scale="quick", data="embedded")
    experiments = resolved_settings(cross_matrix(quick), quick.config)
    samplers: Mapping[str, Any] = next(iter(experiments.values()))["samplers"]
    return samplers


def _cross_matrix(project: Project, files: Sequence[Path], scale: str) -> Project:
    """Return the cross matrix at a scale, with the samplers of some files."""
    return project.with_config(
        scale=scale,
        data="embedded" if scale == "quick" else "official",
        papers=[CROSS_MATRIX],
        experiments=None,
        schemes=list(dict.fromkeys([*project.config.schemes, *map(str, files)])),
        overrides={},
    )
