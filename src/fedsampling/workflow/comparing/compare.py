"""Comparison of users' samplers with all others: check, run in the cross matrix, and rank.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.plain_text import format_bytes
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.datasets.tables import FILES, TableData
from fedsampling.experiments.cross_matrix import BENCH, PAPER, TUNING
from fedsampling.samplers.interface.in_settings import load_file
from fedsampling.workflow.comparing.entries import all_entries, check_entry
from fedsampling.workflow.comparing.lines import result_lines
from fedsampling.workflow.comparing.overrides import Comparison
from fedsampling.workflow.comparing.own_problem import REPLACED_EXPERIMENT, OwnProblem
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.drawing import draw
from fedsampling.workflow.plan import Plan
from fedsampling.workflow.project import Project
from fedsampling.workflow.reporting import build_report
from fedsampling.workflow.running import execute_all

NO_PROBLEM = OwnProblem()


@dataclass(frozen=True)
class Options:
    """The options of ``fedsampling compare``."""

    files: Sequence[Path]  # each defines a sampler; if a file defines several, the last is used
    # ``key=value`` or ``key=value,value``; several values give several entries.  A setting applies
    # to all samplers that have it
    settings: Sequence[str] = ()
    # datasets of the cross matrix.  If empty: all at this scale; at paper scale, the datasets that
    # two processor cores can finish
    datasets: Sequence[str] = ()
    # ``quick`` needs no data and runs all samplers; the other scales leave out samplers whose runs
    # are not finished.  By default, see :func:`usual_scale`
    scale: str | None = None
    against: Sequence[str] = ()  # the other samplers; ``md`` is always included.  If empty, all
    # the user's samples or model; with either, all samplers are run
    problem: OwnProblem = NO_PROBLEM


def compare(options: Options, project: Project, echo: Callable[[str], None]) -> int:
    """Compare the samplers that some files define with each other and with all others.

    `project`: configuration, and folders of data and runs. `echo`: prints a line. Returns exit
    status: 0, or that of an interrupted job; the same command resumes it.
    """
    problem = options.problem
    scale = options.scale or usual_scale(options.datasets, problem)
    members = list(dict.fromkeys(load_file(file)[-1] for file in options.files))
    entries = all_entries(members, options.settings)
    matrix = _cross_matrix(project, options.files, scale)
    common = _common_settings(matrix)
    if unknown := [name for name in options.against if name not in common]:
        raise InputError(
            *(f"--against {name}: unknown; {nearest(name, common)}" for name in unknown)
        )
    datasets = chosen_datasets(matrix.plan, options.datasets, scale, problem)
    for label, entry in entries.items():
        check_entry(entry, common.get(entry.sampler, {}))
        echo(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")
    comparison = Comparison(matrix, entries, datasets, problem, options.against)
    if problem:
        overrides = comparison.with_fitting_samplers(common, echo)
    else:
        is_benchmark = not options.datasets and all(name.startswith(BENCH) for name in datasets)
        overrides = comparison.with_finished_samplers(is_benchmark, echo)
        datasets = [name for name in datasets if overrides[name]]
    names = [member.named for member in members]
    subfolder = "compare/" + "-".join(filter(None, [*names, problem.name]))
    compared = matrix.with_config(overrides={PAPER: overrides}).in_subfolder(subfolder)
    compared.write()
    titles = [problem.data.name] if problem.data else datasets
    jobs = [compared.plan.jobs[job] for job in compared.plan.jobs_to_run(PAPER)]
    for source, size in _download_sizes(compared).items():
        echo(f"to download: {source}, {format_bytes(size) if size else 'unknown size'}")
    runs = sum(len(job.runs) for job in compared.plan.jobs.values() if job.sampler in entries)
    echo(f"{len(jobs)} jobs, {runs} runs of {', '.join(names)}, on {', '.join(titles)}")
    if status := execute_all(jobs, compared, lambda manifest: None):
        return status
    if status := draw(PAPER, compared):
        return status
    report = build_report(compared)
    artefacts = compared.folder / "artefacts" / PAPER
    by_experiment = dict(zip(datasets, titles, strict=True))
    for line in result_lines(artefacts, entries, by_experiment, own_data=problem.data is not None):
        echo(line)
    if scale == "quick":
        echo("Quick scale only shows that the sampler runs; it is not evidence.")
    echo(f"page: {report.with_name('schemes.html')}")
    return 0


def usual_scale(datasets: Sequence[str], problem: OwnProblem) -> str:
    """Return the scale at which the other samplers' runs on these datasets are finished."""
    finished = all(name.startswith(BENCH) for name in datasets)
    return "paper" if finished and not problem else "reduced"


def chosen_datasets(plan: Plan, names: Sequence[str], scale: str, problem: OwnProblem) -> list[str]:
    """Return the experiments to compare on; see :class:`Options` for the default."""
    experiments = [key.partition("/")[2] for key in plan.experiments]
    tuned = [name for name in experiments if TUNING + name in experiments]
    if problem.data is not None:
        if names:
            raise InputError("--on: no effect with --data; remove one of the two")
        if scale == "quick" and problem.learning_rates:
            raise InputError("--learning-rates: no effect at quick scale; use --scale reduced")
        problem.clients  # noqa: B018 -- an invalid file is reported before anything is checked
        return [REPLACED_EXPERIMENT]
    if problem.model is not None and not names:
        raise InputError("--model: needs datasets; name them with --on, or use --data")
    if unknown := [name for name in names if name not in tuned]:
        raise InputError(
            *(
                f"--on {name}: no dataset at {scale} scale; {nearest(name, tuned)}"
                for name in unknown
            )
        )
    benchmark = [name for name in tuned if name.startswith(BENCH)]
    return list(dict.fromkeys(names)) or benchmark or tuned


def _cross_matrix(project: Project, files: Sequence[Path], scale: str) -> Project:
    """Return the cross matrix at a scale, with the samplers of some files."""
    return project.with_config(
        scale=scale,
        data="embedded" if scale == "quick" else "official",
        papers=[PAPER],
        experiments=None,
        beside=None,
        schemes=list(dict.fromkeys([*project.config.schemes, *map(str, files)])),
        overrides={},
    )


def _common_settings(matrix: Project) -> Mapping[str, Any]:
    """Return the settings of every sampler of the cross matrix, as quick scale runs them all."""
    quick = matrix.with_config(scale="quick", data="embedded").plan.experiments
    samplers: Mapping[str, Any] = next(iter(quick.values()))["samplers"]
    return samplers


def _download_sizes(project: Project) -> dict[str, int | None]:
    plan, config = project.plan, project.config
    datasets = plan.datasets(*plan.jobs)
    return download_sizes(datasets, project.data, config.mirror, unread_files(plan))


def unread_files(plan: Plan) -> set[str]:
    """Return the files of R packages that no job reads: each of these datasets reads one file."""
    read = {plan.jobs[job].runs[0].settings.get("dataset", {}).get("name") for job in plan.due}
    return {
        f"{FILES}/{member.layout.file}"
        for name, member in Dataset.members().items()
        if issubclass(member, TableData) and name not in read
    }
