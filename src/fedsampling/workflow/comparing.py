"""Comparison of users' samplers with all others: check, run in the cross matrix, and rank.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.progress import align, format_bytes
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.datasets.tables import FILES, TableData
from fedsampling.evidence.histories import is_at_edge
from fedsampling.experiments.papers import BENCH, CROSS_MATRIX, TUNING
from fedsampling.samplers.interface.in_settings import load_file
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.drawing import draw
from fedsampling.workflow.overrides import (
    REPLACED_EXPERIMENT,
    Comparison,
    OwnProblem,
    all_entries,
    check_entry,
)
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
    compared = matrix.with_config(overrides={CROSS_MATRIX: overrides}).in_subfolder(subfolder)
    compared.write()
    titles = [problem.data.name] if problem.data else datasets
    jobs = [compared.plan.jobs[job] for job in compared.plan.jobs_to_run(CROSS_MATRIX)]
    for source, size in _download_sizes(compared).items():
        echo(f"to download: {source}, {format_bytes(size) if size else 'unknown size'}")
    runs = sum(len(job.runs) for job in compared.plan.jobs.values() if job.sampler in entries)
    echo(f"{len(jobs)} jobs, {runs} runs of {', '.join(names)}, on {', '.join(titles)}")
    if status := execute_all(jobs, compared, lambda manifest: None):
        return status
    if status := draw(CROSS_MATRIX, compared):
        return status
    report = build_report(compared)
    artefacts = compared.folder / "artefacts" / CROSS_MATRIX
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
        papers=[CROSS_MATRIX],
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


# The results of ``fedsampling compare`` as lines, from the artefacts of the cross matrix.


INDENT = "  "
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


def result_lines(
    artefacts: Path, labels: Iterable[str], titles: Mapping[str, str], own_data: bool
) -> Iterator[str]:
    """Yield the results of each entry: ranks, learning rates, and datasets won and lost.

    `artefacts`: folder of the cross matrix's artefacts. `labels`: labels of the entries. `titles`:
    names of the datasets to show, by experiment. `own_data`: whether the user's data are used, so
    that ``--learning-rates`` can extend the grid.
    """

    def table(name: str) -> pd.DataFrame | None:
        path = artefacts / name / f"{name}.csv"
        return pd.read_csv(path) if path.is_file() else None

    ranks, grid = (
        pd.read_csv(artefacts / name / f"{name}.csv")
        for name in (f"{BENCH}ranks", f"{BENCH}tuning")
    )
    grid["experiment"] = grid["experiment"].replace(dict(titles))
    matrix = table(f"{BENCH}matrix_rounds")
    for label in labels:
        yield f"{label}, with speed-ups over MD and 95 % intervals over families of datasets:"
        yield from ranking(ranks, label)
        if matrix is not None:
            yield from wins_and_losses(matrix, label)
        yield from chosen_steps(grid, label, AT_EDGE + WIDEN * own_data)


def ranking(ranks: pd.DataFrame, label: str) -> list[str]:
    """Tabulate a sampler's ranks and speed-ups, one line per measure below a header.

    `ranks`: the artefact ``bench_ranks``.  Intervals are shown if there are several families.
    """
    rows: list[dict[str, str]] = []
    by_measure = ranks.groupby("measure", sort=False)
    ranked_samplers = by_measure["rank"].count().max()
    for measure, table in by_measure:
        (row,) = table[table["scheme"] == label].to_dict("records")
        rank = "none" if pd.isna(row["rank"]) else f"{row['rank']:g}"
        interval = f" [{row['low']:.2f}, {row['high']:.2f}]" if row["families"] > 1 else ""
        rows.append(
            {
                "cost": str(measure),
                f"rank of {ranked_samplers}": rank,
                "speed-up": f"{row['speed_up']:.2f}{interval}",
                "worst family": f"{row['worst']:.2f}",
                "reached target": f"{row['reached']} of {row['runs']}",
            }
        )
    return align([[*rows[0]], *([*row.values()] for row in rows)], INDENT)


def wins_and_losses(matrix: pd.DataFrame, label: str) -> list[str]:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    sides = {"faster": wins, "slower": losses}
    return [
        f"  {side} than MD in rounds: {'; '.join(part['title']) or 'on no dataset'}"
        for side, part in sides.items()
    ]


def chosen_steps(grid: pd.DataFrame, label: str, at_edge: str = AT_EDGE) -> list[str]:
    """Tabulate the learning rates that tuning chose for a sampler, one line per dataset.

    `grid`: the artefact ``tuning``: columns ``experiment``, ``sampler``, ``step`` and ``chosen``.
    At quick scale only md is tuned; the table is then empty. `at_edge`: text after a learning rate
    that is the smallest or largest of its grid.
    """
    rows = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        tried = ", ".join(f"{step:g}" for step in steps)
        for step in table.loc[table["chosen"], "step"]:
            rows.append((str(name), f"{step:g}", tried + at_edge * is_at_edge(step, steps)))
    return align([("tuned on", "learning rate", "tried"), *rows], INDENT) if rows else []
