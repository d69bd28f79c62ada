"""The order of a comparison's datasets: data on hand first, then the cheapest."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from fedsampling.data.sources.mirrors import is_on_hand
from fedsampling.experiments.cross_matrix import CROSS_MATRIX, REFERENCE
from fedsampling.experiments.shorthand import TUNING
from fedsampling.experiments.specs import Job
from fedsampling.runs.places import published_files
from fedsampling.workflow.project import Project

EARLY_SETS, EARLY_WORLDS = 5, 3  # of the first ranking


@dataclass(frozen=True)
class DatasetWork:
    """The training of the users' samplers on a dataset of the cross matrix."""

    name: str
    family: str
    runs: int  # to train, tuning included
    seconds: float  # on one core, as long as MD's published runs took on their machine
    is_on_hand: bool  # whether nothing has to be downloaded
    is_ranked_early: bool = True


def schedule(project: Project, labels: Collection[str], names: Sequence[str]) -> list[DatasetWork]:
    """Return the work on each dataset in the order in which it begins.

    `labels`: of the samplers that are trained.  Each tries all cases on the holdout, and runs one
    of them in all worlds.
    """
    families = pd.read_csv(project.plan.paper(CROSS_MATRIX).folder / "datasets.csv")
    family = dict(zip(families["set"], families["family"], strict=True))
    works = []
    for name in names:
        tuning, worlds = (
            project.plan.jobs_of(f"{CROSS_MATRIX}/{prefix}{name}") for prefix in (TUNING, "")
        )
        runs = _count(tuning, labels) + _runs_of_one_case(worlds, labels)
        seconds = _seconds_of_reference([*tuning, *worlds], project)
        settings = project.plan.experiments[f"{CROSS_MATRIX}/{name}"]
        early = settings.get("worlds", False) and not settings["settings"].get("availability")
        files = {file for job in [*tuning, *worlds] for file in job.files}
        on_hand = all(is_on_hand(file, project.data, project.config.mirror) for file in files)
        if runs:  # some datasets have few samplers
            cost = runs * seconds
            works.append(DatasetWork(name, family.get(name, name), runs, cost, on_hand, early))
    return sorted(works, key=lambda work: (not work.is_on_hand, work.seconds))


def first_sets(works: Sequence[DatasetWork]) -> list[DatasetWork]:
    """Return the cheapest datasets on hand, one of each family, for an early ranking.

    These have worlds, and clients that stay: where they come and go, no ranks are computed.
    """
    by_family: dict[str, DatasetWork] = {}
    for work in works:
        if work.is_on_hand and work.is_ranked_early:
            by_family.setdefault(work.family, work)
    return [*by_family.values()][:EARLY_SETS]


def _count(jobs: Sequence[Job], labels: Collection[str]) -> int:
    return sum(len(job.runs) for job in jobs if job.sampler in labels)


def _runs_of_one_case(jobs: Sequence[Job], labels: Collection[str]) -> int:
    """Return the samplers' runs of one case each, the case that has most of them."""
    largest = 0
    for label in labels:
        of_cases: Counter[str] = Counter()
        for job in jobs:
            if job.sampler == label:
                of_cases[job.case] += len(job.runs)
        largest += max(of_cases.values(), default=0)
    return largest


def _seconds_of_reference(jobs: Sequence[Job], project: Project) -> float:
    """Return the mean seconds of the reference's published runs; infinity if there are none."""
    of_reference = [job for job in jobs if job.sampler == REFERENCE]
    hashes = {run.hash for job in of_reference for run in job.runs}
    seconds = []
    for path in published_files(of_reference, project.config):
        rows = pq.read_table(path, columns=["hash", "metadata"]).to_pylist()
        notes: list[Mapping[str, object]] = [
            json.loads(row["metadata"]) for row in rows if row["hash"] in hashes
        ]
        seconds += [float(str(note["seconds"])) for note in notes]
    return float(np.mean(seconds)) if seconds else float("inf")
