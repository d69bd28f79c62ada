"""Comparison of users' samplers with all others: check, run in the cross matrix, and rank.

The comparison is the cross matrix (``papers/crossmatrix``) with additional samplers.  If the runs
of the other samplers are published, only the new samplers are run.  Runs go to the store;
summaries, artefacts and a report of the comparison go to ``<results>/compare/<sampler>/``.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.quantities import format_bytes
from fedsampling.base.records import merge
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.datasets.tables import FILES, TableData
from fedsampling.experiments.cross_matrix import BENCH, FACTORS, LARGER, PAPER, REFERENCE, TUNING
from fedsampling.experiments.papers import load_paper
from fedsampling.report.choosing import size
from fedsampling.runs.cluster.calibration import downloads
from fedsampling.runs.execute import locate
from fedsampling.runs.places import finished_runs
from fedsampling.samplers.check import check_sampler
from fedsampling.samplers.check_data import N
from fedsampling.samplers.own_files import load_file
from fedsampling.samplers.scheme import Scheme, scheme
from fedsampling.workflow.drawing import draw
from fedsampling.workflow.own_problem import SET, OwnProblem, misfits
from fedsampling.workflow.plan import Plan
from fedsampling.workflow.project import Project
from fedsampling.workflow.reporting import build_report
from fedsampling.workflow.running import execute_all

Tell = Callable[[str], None]
NO_PROBLEM = OwnProblem()
AT_EDGE = "; at the edge of the grid"
WIDEN = ", which --learning-rates extends"


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
    names = [member.named for member in members]
    entries = _all_entries(members, words)
    whole = project.with_config(
        scale=scale,
        data="embedded" if scale == "quick" else "official",
        papers=[PAPER],
        experiments=None,
        beside=None,
        schemes=list(dict.fromkeys([*project.config.schemes, *map(str, files)])),
        overrides={},
    )
    small = whole.with_config(scale="quick", data="embedded").plan.experiments
    common = next(iter(small.values()))["samplers"]
    _check_names(against, common)
    chosen = _sets(whole.plan, sets, scale, problem)
    by_default = not (sets or problem) and all(name.startswith(BENCH) for name in chosen)
    design = [FACTORS] if by_default and f"{PAPER}/{FACTORS}" in whole.plan.experiments else []
    for label, (name, settings) in entries.items():
        _check(name, common.get(name, {}) | settings)
        tell(f"{label}: passes the check (slots, bias, reproducibility, observations, memory)")
    kept = {REFERENCE, *against, *(name for name, _ in entries.values())} if against else {*common}
    reasons = problem.opaque({name: common[name] for name in common if name in kept})
    overrides = _with(whole.plan, entries, [*chosen, *design], problem, against, reasons)
    if problem:
        reasons |= misfits(whole.with_config(overrides={PAPER: overrides}))
        of_entries = {
            label: reasons.get(label, reasons.get(name)) for label, (name, _) in entries.items()
        }
        if refused := [f"{label}: {reason}" for label, reason in of_entries.items() if reason]:
            raise InputError(*refused)
        for label, reason in reasons.items():
            tell(f"left out: {label}: {reason}")
        overrides = _with(whole.plan, entries, chosen, problem, against, reasons)
    elif scale != "quick":
        missing = _unfinished(whole.with_config(overrides={PAPER: overrides}), entries)
        if REFERENCE in missing.get(FACTORS, ()):  # the design is not needed for a rank
            overrides[FACTORS] = None
            del missing[FACTORS]
        for experiment, others in missing.items():
            if REFERENCE in others:
                raise InputError(
                    f"--on {experiment.removeprefix(TUNING)}: the runs of {REFERENCE}, which sets "
                    f"the target, are not finished at {scale} scale; use another dataset or scale"
                )
            overrides[experiment]["samplers"] |= dict.fromkeys(others)
        if left_out := sorted({other for others in missing.values() for other in others}):
            tell(f"left out because their runs are not finished: {', '.join(left_out)}")
    comparison = whole.with_config(overrides={PAPER: overrides}).in_subfolder(
        "compare/" + "-".join(filter(None, [*names, problem.name]))
    )
    comparison.write()
    plan = comparison.plan
    sizes = downloads(
        plan.datasets(*plan.jobs), comparison.data, comparison.config.mirror, _unread(plan)
    )
    for source, number in sizes.items():
        tell(f"to download: {source}, {format_bytes(number) if number else 'unknown size'}")
    runs = sum(len(job.runs) for job in plan.jobs.values() if job.sampler in entries)
    jobs = [plan.jobs[job] for job in plan.jobs_to_run(PAPER)]
    titles = [problem.data.name] if problem.data else chosen
    tell(f"{len(jobs)} jobs, {runs} runs of {', '.join(names)}, on {', '.join(titles)}")
    if status := execute_all(jobs, comparison, lambda manifest: None):
        return status
    if status := draw(PAPER, comparison):
        return status
    report = build_report(comparison)
    artefacts = comparison.folder / "artefacts" / PAPER
    together = f"{size(artefacts)}ranks"
    ranks = pd.read_csv(artefacts / together / f"{together}.csv")
    tuning = f"{size(artefacts)}tuning"
    grid = pd.read_csv(artefacts / tuning / f"{tuning}.csv")  # at quick scale only md is tuned
    grid["experiment"] = grid["experiment"].replace(dict(zip(chosen, titles, strict=True)))
    for label in entries:
        for line in (*ranking(ranks, label), *chosen_steps(grid, label)):
            tell(line + (WIDEN if problem.data and line.endswith(AT_EDGE) else ""))
        if (artefacts / "bench_defaults").is_dir():
            defaults = pd.read_csv(artefacts / "bench_defaults" / "bench_defaults.csv")
            matrix = pd.read_csv(artefacts / "bench_matrix_rounds" / "bench_matrix_rounds.csv")
            tell(tuned(defaults, label))
            tell(wins_and_losses(matrix, label))
            better = pd.read_csv(artefacts / "bench_improvement" / "bench_improvement.csv")
            for line in chances(better, label):
                tell(line)
        if (artefacts / "factors_effects").is_dir():
            effects = pd.read_csv(artefacts / "factors_effects" / "factors_effects.csv")
            for line in properties(effects, label):
                tell(line)
    if scale == "quick":
        tell("Quick scale only shows that the sampler runs; it is not evidence.")
    tell(f"page: {report.with_name('schemes.html')}")
    return 0


def usual_scale(sets: Sequence[str], problem: OwnProblem) -> str:
    """Return the scale at which the other samplers' runs on these datasets are finished."""
    finished = all(name.startswith((BENCH, LARGER)) for name in sets)
    return "paper" if finished and not problem else "reduced"


def ranking(ranks: pd.DataFrame, label: str) -> list[str]:
    """Describe a sampler's ranks in the artefact ``ranks``, one line per measure."""
    lines = []
    for measure, table in ranks.groupby("measure", sort=False):
        (row,) = table[table["scheme"] == label].to_dict("records")
        place = "no rank" if pd.isna(row["rank"]) else f"rank {row['rank']:g}"
        if not pd.isna(row["rank"]):
            place += f" [{row['rank_low']:g}, {row['rank_high']:g}] of {table['rank'].count()}"
        speed = f"{row['speed_up']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        reached = f"{row['reached']} of its {row['runs']} runs reached the target"
        lines.append(f"{label}: {measure}: {place}; {speed} times as fast as md; {reached}")
    return lines


def chosen_steps(grid: pd.DataFrame, label: str) -> list[str]:
    """Describe the learning rates that tuning chose for a sampler, one line per dataset.

    Parameters
    ----------
    grid : DataFrame
        The artefact ``tuning``: columns ``experiment``, ``sampler``, ``step`` and ``chosen``.
    """
    lines = []
    for name, table in grid[grid["sampler"] == label].groupby("experiment", sort=False):
        steps = sorted(table["step"].unique())
        for step in table.loc[table["chosen"], "step"]:
            line = f"{label}: {name}: step {step:g} of {', '.join(f'{each:g}' for each in steps)}"
            at_edge = len(steps) > 1 and step in (steps[0], steps[-1])
            lines.append(line + (AT_EDGE if at_edge else ""))
    return lines


def tuned(defaults: pd.DataFrame, label: str) -> str:
    """Describe the gain of tuning, from the artefact ``bench_defaults``."""
    (row,) = defaults[defaults["scheme"] == label].to_dict("records")
    return (
        f"{label}: rounds: {row['default_speed_up']:.2f} times as fast as md with its defaults, "
        f"{row['speed_up']:.2f} at its best trial"
    )


def wins_and_losses(matrix: pd.DataFrame, label: str) -> str:
    """Name the datasets on which the whole interval of the speed-up is above or below 1."""
    rows = matrix[matrix["scheme"] == label]
    wins, losses = rows[rows["speed_up_low"] > 1], rows[rows["speed_up_high"] < 1]
    named = (", ".join(part["title"]) or "no dataset" for part in (wins, losses))
    return f"{label}: rounds: faster than md on {next(named)}; slower on {next(named)}"


def chances(better: pd.DataFrame, label: str) -> list[str]:
    """Describe how often a sampler beats MD, from the artefact ``bench_improvement``."""
    return [
        f"{label}: {row['measure']}: cheaper than md in {row['probability']:.0%} of runs "
        f"[{row['low']:.0%}, {row['high']:.0%}]; on other datasets "
        f"[{row['set_low']:.0%}, {row['set_high']:.0%}]"
        for row in better[better["scheme"] == label].to_dict("records")
    ]


def properties(effects: pd.DataFrame, label: str) -> list[str]:
    """Name the clients' properties that help or harm, from the artefact ``factors_effects``."""
    lines = []
    for measure in ("rounds", "seconds"):
        rows = effects[(effects["scheme"] == label) & (effects["measure"] == measure)]
        rows = rows[rows["counts"]].sort_values("effect", ascending=False)
        named = [f"{row.factor} {row.level} × {row.effect:.2f}" for row in rows.itertuples()]
        lines.append(
            f"{label}: {measure}: properties that change its speed-up over md: "
            f"{', '.join(named) or 'none'}"
        )
    return lines


def _all_entries(
    members: Sequence[type[Scheme]], words: Sequence[str]
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the sampler's name and the settings of each entry, by its label."""
    entries = {}
    known = {key for member in members for key in member.model_fields}
    for member in members:
        # A setting that no sampler has goes to all of them, which reject it.
        its_words = [
            word
            for word in words
            if (key := word.partition("=")[0]) in member.model_fields or key not in known
        ]
        for label, settings in _entries(member.named, its_words).items():
            entries[label] = member.named, settings
    return entries


def _entries(name: str, words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each entry's settings by its label: the sampler's name and the values that differ."""
    values: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: not a setting; write it as key=value")
        several = [value] if value[:1] in ("[", "{") else value.split(",")
        values.setdefault(key, []).extend(each.strip() for each in several)
    entries = {}
    for combination in product(*values.values()):
        settings = dict(zip(values, combination, strict=True))
        differs = [f"{key}-{settings[key]}" for key in values if len(values[key]) > 1]
        label = "-".join([name, *differs])
        entries[label] = {key: parse_yaml(value, f"--set {key}") for key, value in settings.items()}
    return entries


def _check(name: str, settings: dict[str, Any]) -> None:
    options = {key: value for key, value in settings.items() if key != "name"}
    if isinstance(m := options.get("m"), int):
        options["m"] = min(m, N)  # the check uses small populations
    try:
        sampler = scheme(name, **options)
    except InputError as error:
        raise InputError(*(line.replace("scheme.", "--set ", 1) for line in error.lines)) from None
    check_sampler(sampler)


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


def _with(
    plan: Plan,
    entries: Mapping[str, tuple[str, dict[str, Any]]],
    chosen: Sequence[str],
    problem: OwnProblem,
    against: Sequence[str],
    left_out: Collection[str],
) -> dict[str, Any]:
    """Return overrides that add the entries to the chosen datasets and remove other datasets."""
    overrides: dict[str, Any] = {}
    kept = {*chosen, *(TUNING + name for name in chosen)}
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
            label: common[name] | settings
            for label, (name, settings) in entries.items()
            if name in common and name not in left_out
        }
        if problem or against:  # list the others by name instead of the paper's "*"
            compared = {name for name, _ in entries.values()}
            others = [name for name in common if name not in compared and name not in left_out]
            if against:
                others = [name for name in others if name in (REFERENCE, *against)]
            samplers |= {name: common[name] for name in others}
            written = paper.experiments[experiment]
            if "*" in merge(written, written.get(plan.config.scale) or {})["samplers"]:
                samplers["*"] = None
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
