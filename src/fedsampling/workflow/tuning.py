"""Tuning on a holdout: run the trials, record the best cases in ``chosen.csv``, run these cases.

The experiment ``tuning_<name>`` runs all cases of ``<name>`` on a holdout.  One of the paper's
artefacts scores them; its table has the columns of ``chosen.csv``.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from math import isclose
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, nearest
from fedsampling.base.files import write_text
from fedsampling.evidence import summaries
from fedsampling.experiments.papers import TUNING, Paper, draw_function
from fedsampling.workflow.drawing import summarise
from fedsampling.workflow.project import Project
from fedsampling.workflow.running import execute_all

COLUMNS = ("experiment", "sampler", "case", "step", "score", "chosen")
CHOSEN = "chosen.csv"
FOLDER = "tune"  # of the results, for the summaries of the trials


def tune(
    names: Sequence[str], project: Project, echo: Callable[[str], None], runs_chosen: bool = True
) -> int:
    """Tune experiments ``paper/name``, which have ``paper/tuning_name``, and run the chosen cases.

    Returns the exit status: 0, or that of a stopped job that can be resumed.
    """
    if not project.config.computes:
        raise InputError("scale: best computes no runs; use scale=paper, or reduced")
    experiments = project.plan.experiments
    tunable = [name for name in experiments if _tuning(name) in experiments]
    if unknown := [name for name in names if name not in tunable]:
        raise InputError(*(f"'{name}' has no tuning; {nearest(name, tunable)}" for name in unknown))
    trials = _only(project, [_tuning(name) for name in names])
    if status := _run(trials, echo):
        return status
    for name in names:
        paper, _, experiment = name.partition("/")
        rows = _scores(trials, paper, experiment)
        spec = trials.plan.paper(paper)
        file = spec.folder / CHOSEN
        write_text(file, merged(file, rows))
        best = sum(row["chosen"] == "True" for row in rows)
        echo(f"{name}: {len(rows)} trials of {best} samplers scored; the best are in {file}")
    if not runs_chosen:
        return 0
    return _run(_only(project, names), echo)


def merged(file: Path, rows: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a ``chosen.csv`` in which `rows` replace the rows of the same samplers.

    All other rows stay in place.  A row stays unchanged if its score differs only by rounding.
    """
    header = ",".join(COLUMNS)
    old_lines = file.read_text(encoding="utf-8").splitlines()[1:] if file.is_file() else []
    before = {tuple(line.split(",")[:3]): line for line in old_lines}
    lines = [_line(row, before) for row in rows]
    tuned = {(row["experiment"], row["sampler"]) for row in rows}
    replaced = [
        index for index, line in enumerate(old_lines) if tuple(line.split(",")[:2]) in tuned
    ]
    other_lines = [line for index, line in enumerate(old_lines) if index not in set(replaced)]
    names = {row["experiment"] for row in rows}
    last = max(
        (index for index, line in enumerate(other_lines) if line.split(",")[0] in names), default=-1
    )
    place = replaced[0] if replaced else last + 1 if last >= 0 else len(other_lines)
    return "\n".join([header, *other_lines[:place], *lines, *other_lines[place:]]) + "\n"


def _line(row: Mapping[str, str], before: Mapping[tuple[str, ...], str]) -> str:
    """Return a row as text; the earlier text if only the last digits of the score differ."""
    written = io.StringIO()
    csv.DictWriter(written, COLUMNS, lineterminator="").writerow(row)
    line = written.getvalue()
    earlier = before.get((row["experiment"], row["sampler"], row["case"]), "").split(",")
    if len(earlier) == len(COLUMNS) and earlier[-1] == row["chosen"]:
        is_same_score = isclose(float(earlier[-2]), float(row["score"]), rel_tol=1e-9)
        return ",".join(earlier) if is_same_score else line
    return line


def _tuning(name: str) -> str:
    paper, _, experiment = name.partition("/")
    return f"{paper}/{TUNING}{experiment}"


def _only(project: Project, names: Sequence[str]) -> Project:
    """Return the project with only these experiments, in a separate folder."""
    overrides = {
        paper: {key: value for key, value in changes.items() if f"{paper}/{key}" in names}
        for paper, changes in project.config.overrides.items()
    }
    return project.with_config(experiments=list(names), overrides=overrides).in_subfolder(FOLDER)


def _run(project: Project, echo: Callable[[str], None]) -> int:
    """Compute all missing runs of a project's experiments."""
    project.write()
    for paper in project.plan.papers:
        jobs = [project.plan.jobs[name] for name in project.plan.jobs_to_run(paper)]
        echo(f"{paper}: {len(jobs)} jobs; finished runs are reused")
        if status := execute_all(jobs, project, lambda manifest: None):
            return status
    return 0


def _scores(project: Project, paper: str, experiment: str) -> list[dict[str, str]]:
    """Score the trials of an experiment with the paper's tuning artefact."""
    spec, tuning = project.plan.paper(paper), f"{TUNING}{experiment}"
    loaded = summaries.load(summarise(paper, tuning, project))
    table = draw_function(spec, _scorer(spec, tuning))({tuning: loaded}, spec).data
    rows: Any = table[table["experiment"] == experiment]
    return [{name: str(row[name]) for name in COLUMNS} for row in rows.to_dict("records")]


def _scorer(spec: Paper, tuning: str) -> str:
    """Name the artefact whose table scores the trials of a tuning experiment."""
    for name, artefact in spec.artefacts.items():
        if name.endswith("tuning") and tuning in artefact.experiments:
            return name
    raise InputError(
        f"{spec.key}/{tuning}: no artefact scores it; add one whose name ends with 'tuning'"
    )
