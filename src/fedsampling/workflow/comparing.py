"""Comparison of users' samplers with all others: check, run in the cross matrix, and rank.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.quantities import format_bytes
from fedsampling.base.records import merge
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.datasets.tables import FILES, TableData
from fedsampling.experiments.cross_matrix import BENCH, FACTORS, LARGER, PAPER, REFERENCE, TUNING
from fedsampling.experiments.papers import load_paper
from fedsampling.runs.execute import locate
from fedsampling.runs.places import finished_runs
from fedsampling.samplers.own_files import load_file
from fedsampling.workflow.comparison_entries import Entry, all_entries, check_entry
from fedsampling.workflow.comparison_lines import result_lines
from fedsampling.workflow.data_files import download_sizes
from fedsampling.workflow.drawing import draw
from fedsampling.workflow.own_problem import SET, OwnProblem, misfits
from fedsampling.workflow.plan import Plan
from fedsampling.workflow.project import Project
from fedsampling.workflow.reporting import build_report
from fedsampling.workflow.running import execute_all

Tell = Callable[[str], None]
NO_PROBLEM = OwnProblem()


def compare(
    files: Sequence[Path],
    words: Sequence[str],
    sets: Sequence[str],
    scale: str,
    project: Project,
    tell: Tell,
    problem: OwnProblem = NO_PROBLEM,
    against: Sequence[str] = (),
) -> int:
    """Compare the samplers that some files define with each other and with all others.

    Parameters
    ----------
    files : sequence of Path
        Each defines a sampler; if a file defines several, the last is used.
    words : sequence of str
        Settings, ``key=value`` or ``key=value,value``; several values give several entries.  A
        setting applies to all samplers that have it.
    sets : sequence of str
        Datasets of the cross matrix.  If empty: all at this scale; at paper scale, the datasets
        that two processor cores can finish.
    scale : {"quick", "reduced", "paper"}
        ``quick`` needs no data and runs all samplers; the other scales leave out samplers whose
        runs are not finished.
    project : Project
        Configuration, and folders of data and runs.
    tell : callable
        Called with each line of output.
    problem : OwnProblem
        The user's samples or model; with either, all samplers are run.
    against : sequence of str
        The other samplers; ``md`` is always included.  If empty, all.

    Returns
    -------
    int
        Exit status: 0, or that of an interrupted job; the same command resumes it.

    Raises
    ------
    InputError
        If a sampler fails the check, or a dataset or a setting is invalid.
    """
    members = list(dict.fromkeys(load_file(file)[-1] for file in files))
    entries = all_entries(members, words)
    matrix = project.with_config(
        scale=scale,
        data="embedded" if scale == "quick" else "official",
        papers=[PAPER],
        experiments=None,
        beside=None,
        schemes=list(dict.fromkeys([*project.config.schemes, *map(str, files)])),
        overrides={},
    )
    small = matrix.with_config(scale="quick", data="embedded").plan.experiments
    common = next(iter(small.values()))["samplers"]
    _check_names(against, common)
    chosen = _sets(matrix.plan, sets, scale, problem)
    for label, entry in entries.items():
        check_entry(entry, common.get(entry.sampler, {}))
        tell(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")
    request = _Request(matrix, entries, chosen, problem, against)
    if problem:
        overrides = _with_fitting_samplers(request, common, tell)
    else:
        by_default = not sets and all(name.startswith(BENCH) for name in chosen)
        overrides = _with_finished_samplers(request, by_default, tell)
    names = [member.named for member in members]
    comparison = matrix.with_config(overrides={PAPER: overrides}).in_subfolder(
        "compare/" + "-".join(filter(None, [*names, problem.name]))
    )
    comparison.write()
    titles = [problem.data.name] if problem.data else chosen
    jobs = [comparison.plan.jobs[job] for job in comparison.plan.jobs_to_run(PAPER)]
    _announce_downloads(comparison, tell)
    runs = sum(len(job.runs) for job in comparison.plan.jobs.values() if job.sampler in entries)
    tell(f"{len(jobs)} jobs, {runs} runs of {', '.join(names)}, on {', '.join(titles)}")
    if status := execute_all(jobs, comparison, lambda manifest: None):
        return status
    if status := draw(PAPER, comparison):
        return status
    report = build_report(comparison)
    shown = dict(zip(chosen, titles, strict=True))
    artefacts = comparison.folder / "artefacts" / PAPER
    for line in result_lines(artefacts, entries, shown, own_data=problem.data is not None):
        tell(line)
    if scale == "quick":
        tell("Quick scale only shows that the sampler runs; it is not evidence.")
    tell(f"page: {report.with_name('schemes.html')}")
    return 0


def usual_scale(sets: Sequence[str], problem: OwnProblem) -> str:
    """Return the scale at which the other samplers' runs on these datasets are finished."""
    finished = all(name.startswith((BENCH, LARGER)) for name in sets)
    return "paper" if finished and not problem else "reduced"


def _check_names(against: Sequence[str], known: Mapping[str, Any]) -> None:
    if unknown := [name for name in against if name not in known]:
        raise InputError(
            *(f"--against {name}: unknown; {nearest(name, known)}" for name in unknown)
        )


def _sets(plan: Plan, sets: Sequence[str], scale: str, problem: OwnProblem) -> list[str]:
    names = [name for _, _, name in (key.partition("/") for key in plan.experiments)]
    known = [name for name in names if TUNING + name in names]
    if problem.data is not None:
        if sets:
            raise InputError("--on: no effect with --data; remove one of the two")
        if scale == "quick" and problem.learning_rates:
            raise InputError("--learning-rates: no effect at quick scale; use --scale reduced")
        problem.clients  # noqa: B018 -- an invalid file is reported before anything is checked
        return [SET]
    if problem.model is not None and not sets:
        raise InputError("--model: needs datasets; name them with --on, or use --data")
    if unknown := [name for name in sets if name not in known]:
        raise InputError(
            *(
                f"--on {name}: no dataset at {scale} scale; {nearest(name, known)}"
                for name in unknown
            )
        )
    cheap = [name for name in known if name.startswith(BENCH)]
    larger = [name for name in known if name.startswith(LARGER)]
    return list(dict.fromkeys(sets)) or cheap or larger or known


@dataclass(frozen=True)
class _Request:
    """The samplers and datasets of a comparison.

    Parameters
    ----------
    matrix : Project
        The cross matrix at the requested scale.
    entries : mapping of str to Entry
    chosen : sequence of str
        Experiments of the datasets.
    problem : OwnProblem
    against : sequence of str
        The other samplers; if empty, all.
    """

    matrix: Project
    entries: Mapping[str, Entry]
    chosen: Sequence[str]
    problem: OwnProblem
    against: Sequence[str]


def _with_fitting_samplers(
    request: _Request, common: Mapping[str, Any], tell: Tell
) -> dict[str, Any]:
    """Return overrides with all samplers that can train the user's model on the user's data.

    Parameters
    ----------
    common : mapping
        Settings of all samplers of the cross matrix.

    Raises
    ------
    InputError
        If an entry's sampler cannot.
    """
    entries, problem = request.entries, request.problem
    samplers = {entry.sampler for entry in entries.values()}
    kept = {REFERENCE, *request.against, *samplers} if request.against else {*common}
    reasons = problem.opaque({name: common[name] for name in common if name in kept})
    overrides = _overrides(request, request.chosen, reasons)
    reasons |= misfits(request.matrix.with_config(overrides={PAPER: overrides}))
    of_entries = {
        label: reasons.get(label, reasons.get(entry.sampler)) for label, entry in entries.items()
    }
    if refused := [f"{label}: {reason}" for label, reason in of_entries.items() if reason]:
        raise InputError(*refused)
    for label, reason in reasons.items():
        tell(f"left out: {label}: {reason}")
    return _overrides(request, request.chosen, reasons)


def _with_finished_samplers(request: _Request, by_default: bool, tell: Tell) -> dict[str, Any]:
    """Return overrides with the samplers whose runs are finished; at quick scale, with all.

    Parameters
    ----------
    by_default : bool
        Whether the user names no datasets, so that the design of properties is compared, too.

    Raises
    ------
    InputError
        If the runs of the reference are not finished.
    """
    matrix = request.matrix
    design = [FACTORS] if by_default and f"{PAPER}/{FACTORS}" in matrix.plan.experiments else []
    overrides = _overrides(request, [*request.chosen, *design], ())
    if matrix.config.scale == "quick":
        return overrides
    missing = _unfinished(matrix.with_config(overrides={PAPER: overrides}), request.entries)
    if REFERENCE in missing.get(FACTORS, ()):  # the design is not needed for a rank
        overrides[FACTORS] = None
        del missing[FACTORS]
    for experiment, others in missing.items():
        if REFERENCE in others:
            raise InputError(
                f"--on {experiment.removeprefix(TUNING)}: the runs of {REFERENCE}, which sets "
                f"the target, are not finished at {matrix.config.scale} scale; "
                "use another dataset or scale"
            )
        overrides[experiment]["samplers"] |= dict.fromkeys(others)
    if left_out := sorted({other for others in missing.values() for other in others}):
        tell(f"left out because their runs are not finished: {', '.join(left_out)}")
    return overrides


def _announce_downloads(comparison: Project, tell: Tell) -> None:
    """List the downloads of a comparison."""
    plan = comparison.plan
    sizes = download_sizes(
        plan.datasets(*plan.jobs), comparison.data, comparison.config.mirror, _unread(plan)
    )
    for source, number in sizes.items():
        tell(f"to download: {source}, {format_bytes(number) if number else 'unknown size'}")


def _overrides(
    request: _Request, experiments: Sequence[str], left_out: Collection[str]
) -> dict[str, Any]:
    """Return overrides that add the entries to some experiments and remove all others.

    Parameters
    ----------
    left_out : collection of str
        Samplers to remove.
    """
    plan, entries, problem = request.matrix.plan, request.entries, request.problem
    overrides: dict[str, Any] = {}
    kept = {*experiments, *(TUNING + name for name in experiments)}
    paper, shared = plan.papers[PAPER], problem.shared()
    for experiment in load_paper(PAPER, paper.folder.parent).experiments:
        if experiment not in kept:
            overrides[experiment] = None
            continue
        common = {
            name: record | {key: value for key, value in shared.items() if key in record}
            for name, record in plan.experiments[f"{PAPER}/{experiment}"]["samplers"].items()
        }
        samplers = {
            label: common[entry.sampler] | entry.settings
            for label, entry in entries.items()
            if entry.sampler in common and entry.sampler not in left_out
        }
        if problem or request.against:  # list the others by name instead of the paper's "*"
            compared = {entry.sampler for entry in entries.values()}
            others = [name for name in common if name not in compared and name not in left_out]
            if request.against:
                others = [name for name in others if name in (REFERENCE, *request.against)]
            samplers |= {name: common[name] for name in others}
            written = paper.experiments[experiment]
            labels = merge(written, written.get(plan.config.scale) or {})["samplers"]
            samplers |= {label: None for label in labels if label not in samplers}
        resolved = plan.experiments[f"{PAPER}/{experiment}"]
        overrides[experiment] = {"samplers": samplers, **problem.settings(experiment, resolved)}
    return overrides


def _unread(plan: Plan) -> set[str]:
    """Return the files of R packages that no job reads: each of these datasets reads one file."""
    read = {plan.jobs[job].runs[0].settings.get("dataset", {}).get("name") for job in plan.due}
    return {
        f"{FILES}/{member.layout.file}"
        for name, member in Dataset.members().items()
        if issubclass(member, TableData) and name not in read
    }


def _unfinished(project: Project, entries: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return, by experiment, the other samplers with missing runs on a dataset or in its tuning."""
    target, shared = finished_runs(project.results, project.config)
    missing: dict[str, dict[str, None]] = {}
    for job in project.plan.jobs.values():
        name = job.experiment.removeprefix(TUNING)
        incomplete = missing.setdefault(name, {})
        if job.sampler in entries or job.sampler in incomplete:
            continue
        if not all(locate(run.hash, target, shared, job.code) for run in job.runs):
            incomplete[job.sampler] = None
    return {
        f"{start}{name}": [*others]
        for name, others in missing.items()
        for start in ("", TUNING)
        if others and f"{PAPER}/{start}{name}" in project.plan.experiments
    }
