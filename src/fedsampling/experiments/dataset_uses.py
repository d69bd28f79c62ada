"""How experiments use datasets: one entry per dataset setting, for the data cards.

Imports no slow library, since the workflow calls this module.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedsampling.base.families import members_within
from fedsampling.experiments.specs import Job


@dataclass(frozen=True)
class DatasetUse:
    """Settings with which an experiment uses a dataset."""

    paper: str
    experiment: str
    cases: tuple[str, ...]  # cases with these settings
    settings: dict[str, Any]  # settings of the dataset, without its name
    data: str
    seed: int  # seed of the data; if every run has its own data, the seed of the first run
    files: tuple[str, ...]  # names of the official datasets in sources.yaml that are read
    code: tuple[str, ...]  # modules that load or generate the dataset


def dataset_uses(jobs: Iterable[Job]) -> dict[str, tuple[DatasetUse, ...]]:
    """Group jobs by dataset; jobs of one experiment with the same dataset settings are one use."""
    groups: dict[str, dict[tuple[str, ...], tuple[Job, list[str]]]] = {}
    for job in jobs:
        settings = job.runs[0].settings
        if "dataset" in settings and settings.get("detail", True):
            text = json.dumps(settings["dataset"], sort_keys=True)
            group = groups.setdefault(settings["dataset"]["name"], {})
            _, cases = group.setdefault((job.paper, job.experiment, text), (job, []))
            if job.case not in cases:
                cases.append(job.case)
    return {
        name: tuple(_use(job, cases) for job, cases in groups[name].values())
        for name in sorted(groups)
    }


def _use(job: Job, cases: list[str]) -> DatasetUse:
    run = job.runs[0]
    settings = {key: value for key, value in run.settings["dataset"].items() if key != "name"}
    seed = run.settings.get("problem_seed", run.seed)
    record = job.simulation.dataset  # type: ignore[attr-defined]
    return DatasetUse(
        paper=job.paper,
        experiment=job.experiment,
        cases=tuple(cases),
        settings=settings,
        data=run.data,
        seed=seed,
        files=record.files(),
        code=tuple(member.code for member in members_within(record)),
    )
