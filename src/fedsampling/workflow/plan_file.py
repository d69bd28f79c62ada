"""The file of a plan, ``plan.json``.

Jobs of one case and sampler, which differ only in their seeds, share an entry.  The entries are
most of the file and JSON themselves, as a text: if no job has to run, as at scale best, most
commands never read them.  The file begins with a digest of its remaining content, which detects
corruption.
"""

import gc
import hashlib
import json
from collections import UserDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from fedsampling.base import inputs
from fedsampling.base.files import write_text
from fedsampling.base.records import check
from fedsampling.experiments.config import Config
from fedsampling.experiments.dataset_uses import DatasetUse
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import folders_of
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.workflow.plan import Plan


class Planned(NamedTuple):
    """A plan, the digests of its results, and the states of all that was read to resolve it."""

    plan: Plan
    digests: Mapping[str, str]
    inputs: Mapping[str, str]


def write_plan(path: Path, key: str, planned: Planned) -> None:
    """Write a plan; `key`: a digest of its settings and of the finished runs."""
    plan, digests, read = planned
    content = {
        "key": key,
        "inputs": dict(read),
        "digests": dict(digests),
        "papers": {name: paper.model_dump(mode="json") for name, paper in plan.papers.items()},
        "experiments": dict(plan.experiments),
        "uses": {name: [asdict(use) for use in used] for name, used in plan.uses.items()},
        "users_samplers": dict(plan.users_samplers),
        "some_due": bool(plan.due),
        "jobs": json.dumps(list(_entries(plan)), separators=(",", ":")),
    }
    body = json.dumps(content, separators=(",", ":"))[1:]
    write_text(path, _head(body) + body)


def read_plan(path: Path, key: str | None, config: Config, folder: Path) -> Planned | None:
    """Read a plan; None if it is missing, corrupt, of another key, or if an input has changed.

    `key`: None accepts a plan that is out of date. `folder`: holds the papers. What the file says
    of folders is ignored, as they hold code that jobs run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    head, body = text[: len(_head(""))], text[len(_head("")) :]
    if head != _head(body):
        return None
    content = json.loads("{" + body)
    inputs.remember(content.get("inputs", {}))  # also of a plan that is out of date
    if key is not None and (content["key"] != key or inputs.changed(content["inputs"])):
        return None
    folders = folders_of(config, folder)
    papers = {
        name: check(Paper, {**fields, "folder": folders.get(name, folder / name)}, "")
        for name, fields in content["papers"].items()
    }
    jobs: Mapping[str, Job] = _LazyJobs(content["jobs"], papers)
    due: frozenset[str] = frozenset()
    if content["some_due"]:
        jobs, due = _jobs(content["jobs"], papers)
    plan = Plan(
        config=config,
        papers=papers,
        jobs=jobs,
        due=due,
        experiments=content["experiments"],
        uses={name: tuple(map(_use, used)) for name, used in content["uses"].items()},
        users_samplers=content["users_samplers"],
    )
    return Planned(plan, content["digests"], content["inputs"])


def _head(body: str) -> str:
    return f'{{"digest":"{hashlib.sha256(body.encode()).hexdigest()}",'


def _entries(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield an entry for jobs that differ only in their seeds, so that settings are stored once."""
    by_settings = groupby(
        plan.jobs.values(), lambda job: (job.name.split("/")[:-1], job.runs[0].settings)
    )
    for (key, settings), group in by_settings:
        jobs = list(group)
        first, run = jobs[0], jobs[0].runs[0]
        yield {
            "of": key,
            "settings": settings,
            "data": run.data,
            "scheme": run.scheme,
            "code": first.code,
            "files": first.files,
            "uses_gpu": first.uses_gpu,
            "blocks": [
                [job.block, job.name in plan.due, [[run.seed, run.hash] for run in job.runs]]
                for job in jobs
            ],
        }


def _jobs(entries: str, papers: Mapping[str, Paper]) -> tuple[dict[str, Job], frozenset[str]]:
    """Return the jobs of the entries by name, and the names of the jobs that are due."""
    jobs: dict[str, Job] = {}
    due = set()
    with _no_collection():
        for entry in json.loads(entries):
            paper, experiment, case, sampler = entry["of"]
            shared, files = (entry["settings"], entry["data"]), tuple(entry["files"])
            for block, is_due, seeds in entry["blocks"]:
                runs = tuple(RunSpec(*shared, seed, entry["scheme"], key) for seed, key in seeds)
                place = paper, experiment, case, sampler, block
                more = papers[paper].folder, entry["code"], files, entry["uses_gpu"]
                job = Job(*place, runs, *more)
                jobs[job.name] = job
                if is_due:
                    due.add(job.name)
    return jobs, frozenset(due)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Suspend garbage collection, which would search ten thousands of new objects in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _LazyJobs(UserDict[str, Job]):
    """Jobs of a plan, read from their entries at first use."""

    def __init__(self, entries: str, papers: Mapping[str, Paper]) -> None:
        self._entries, self._papers = entries, papers

    @cached_property
    def data(self) -> dict[str, Job]:  # type: ignore[override]
        """All jobs by name, in which UserDict looks; read at the first use."""
        return _jobs(self._entries, self._papers)[0]


def _use(fields: dict[str, Any]) -> DatasetUse:
    lists = {key: tuple(fields[key]) for key in ("cases", "files", "code")}
    return DatasetUse(**{**fields, **lists})
