"""Tuning on a holdout: run the trials, record the best cases in ``chosen.csv``, run these cases.

The experiment ``tuning_<name>`` runs all cases of ``<name>`` on a holdout.  One of the paper's
artefacts scores them; its table has the columns of ``chosen.csv``.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence, Set
from math import isclose
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import write_text
from fedsampling.experiments.papers import draw_function
from fedsampling.experiments.shorthand import TUNING
from fedsampling.workflow.project import Project
from fedsampling.workflow.run import execute_all

COLUMNS = ("experiment", "sampler", "case", "step", "score", "chosen")
CHOSEN = "chosen.csv"
ROUNDING = 1e-5  # relative, of scores: published runs are rounded to seven digits
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
    tuning = {name: name.replace("/", f"/{TUNING}") for name in experiments}
    tunable = [name for name, trials in tuning.items() if trials in experiments]
    check_known(names, tunable, "'{}' has no tuning")
    trials = _only(project, [tuning[name] for name in names])
    if status := _run(trials, echo):
        return status
    for name in names:
        paper, _, experiment = name.partition("/")
        rows = scores(trials, paper, experiment)
        file = trials.plan.paper(paper).folder / CHOSEN
        write_text(file, merged(file, rows))
        best = sum(row["chosen"] == "True" for row in rows)
        echo(f"{name}: {len(rows)} trials of {best} samplers scored; the best are in {file}")
    return _run(_only(project, names), echo) if runs_chosen else 0


def merged(file: Path, rows: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a ``chosen.csv`` in which `rows` replace the rows of the same samplers.

    All other rows stay in place.  A row stays unchanged if its score differs only by rounding.
    """
    before = _read(file)
    earlier = {_trial(row): row for row in before}
    new = [_unless_rounding(row, earlier.get(_trial(row))) for row in rows]
    tuned = {_pair(row) for row in rows}
    kept = [row for row in before if _pair(row) not in tuned]
    place = _place(before, tuned, {row["experiment"] for row in rows})
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows([*kept[:place], *new, *kept[place:]])
    return text.getvalue()


def _read(file: Path) -> list[dict[str, str]]:
    if not file.is_file():
        return []
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _trial(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["experiment"], row["sampler"], row["case"]


def _pair(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["experiment"], row["sampler"]


def _unless_rounding(
    row: Mapping[str, str], earlier: Mapping[str, str] | None
) -> Mapping[str, str]:
    """Return a row, or the earlier row of the trial if the score changed only by rounding."""
    if earlier is None or earlier["chosen"] != row["chosen"]:
        return row
    is_close = isclose(float(earlier["score"]), float(row["score"]), rel_tol=ROUNDING)
    return earlier if is_close else row


def _place(
    before: Sequence[Mapping[str, str]], tuned: Set[tuple[str, ...]], experiments: Set[str]
) -> int:
    """Return where new rows go among the kept ones.

    In the place of the rows that they replace; else after the last row of their experiment, or at
    the end.
    """
    kept = [row for row in before if _pair(row) not in tuned]
    replaced = [index for index, row in enumerate(before) if _pair(row) in tuned]
    after = [index for index, row in enumerate(kept, 1) if row["experiment"] in experiments]
    return replaced[0] if replaced else after[-1] if after else len(kept)


def _only(project: Project, names: Sequence[str]) -> Project:
    """Return the project with only these experiments, in a separate folder."""
    return project.with_config(experiments=list(names)).in_subfolder(FOLDER)


def _run(project: Project, echo: Callable[[str], None]) -> int:
    """Compute all missing runs of a project's experiments."""
    project.write()
    for paper in project.plan.papers:
        jobs = [project.plan.jobs[name] for name in project.plan.jobs_to_run(paper)]
        echo(f"{paper}: {len(jobs)} jobs; finished runs are reused")
        if status := execute_all(jobs, project, lambda manifest: None):
            return status
    return 0


def scores(project: Project, paper: str, experiment: str) -> list[dict[str, str]]:
    """Score the trials of an experiment with the paper's artefact whose name ends with tuning."""
    from fedsampling.evidence import summaries
    from fedsampling.workflow.summarise import summarise  # imports pandas

    spec, tuning = project.plan.paper(paper), f"{TUNING}{experiment}"
    drawn = [name for name, artefact in spec.artefacts.items() if tuning in artefact.experiments]
    scorer = next((name for name in drawn if name.endswith("tuning")), None)
    if scorer is None:
        raise InputError(
            f"{paper}/{tuning}: no artefact scores it; add one whose name ends with 'tuning'"
        )
    loaded = summaries.load(summarise(paper, tuning, project))
    table = draw_function(spec, scorer)({tuning: loaded}, spec).data
    rows: Any = table[table["experiment"] == experiment]
    return [{name: str(row[name]) for name in COLUMNS} for row in rows.to_dict("records")]
