"""The finished runs of a project as tidy tables: a row per value, with the runs' settings.

``fedsampling export`` and :func:`fedsampling.summary` read them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.lazy import pd
from fedsampling.base.nested import flat
from fedsampling.experiments.specs import Job
from fedsampling.runs.finished import Finished
from fedsampling.runs.places import run_stores
from fedsampling.workflow.project import Project

if TYPE_CHECKING:
    from fedsampling.runs.store import Result

KEYS = ("paper", "experiment", "case", "sampler", "seed")
COLUMNS = (*KEYS, "at", "metric", "value")


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its place in the plan, its settings, and its table."""

    job: Job
    seed: int
    settings: Mapping[str, Any]  # flat, such as ``work.step``
    result: "Result"

    @property
    def names(self) -> dict[str, Any]:
        """The values of the columns KEYS."""
        job = self.job
        return dict(
            zip(KEYS, (job.paper, job.experiment, job.case, job.sampler, self.seed), strict=True)
        )

    def table(self, settings: bool = True) -> "pd.DataFrame":
        """Return the rows with the columns COLUMNS, and those of the settings."""
        rows = self.result.table.assign(**self.names).astype({"metric": str})[[*COLUMNS]]
        return rows.assign(**self.settings) if settings else rows


@dataclass
class Count:
    """How many of the runs are finished; complete after the iteration."""

    runs: int = 0
    finished: int = 0


def selected_jobs(project: Project, names: Sequence[str]) -> list[Job]:
    """Return the jobs of NAMES, each ``PAPER`` or ``PAPER/EXPERIMENT``.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    plan = project.plan
    jobs = []
    for name in names:
        paper, _, experiment = name.partition("/")
        plan.paper(paper)
        prefix = f"{paper}/"
        experiments = [each for each in plan.experiments if each.startswith(prefix)]
        if experiment:
            check_known([name], experiments, "experiment: '{}' is unknown")
            experiments = [name]
        for each in experiments:
            jobs += plan.jobs_of(each)
    return [*{job.name: job for job in jobs}.values()]


def finished_runs_of(project: Project, jobs: Sequence[Job], count: Count) -> Iterator[FinishedRun]:
    """Yield the finished runs of jobs; count them.

    Raises
    ------
    InputError
        At the end, if none is finished.
    """
    target, shared = run_stores(project.results, project.config)
    finished = Finished(target, shared)
    for job in jobs:
        for run in job.runs:
            count.runs += 1
            if result := finished.find(run.hash, job.code):
                count.finished += 1
                settings = {"hash": run.hash, "data": run.data, **flat_settings(run.settings)}
                yield FinishedRun(job, run.seed, settings, result)
    if not count.finished:
        raise InputError(f"none of the {count.runs} runs is finished; run 'snakemake' first")


def flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested settings: ``{"work": {"step": 0.1}}`` becomes ``{"work.step": 0.1}``.

    Lists become JSON; settings that are off (null) are left out.
    """
    return {
        key: json.dumps(value) if isinstance(value, list | tuple) else value
        for key, value in flat(settings).items()
        if value is not None and value != {}
    }
