"""The file format of a plan: ``plan.json``.

Jobs of one case and sampler, which differ only in their seeds, share an entry.  The entries are
most of the file and JSON themselves, as a text: if no job has to run, as at scale best, most
commands never read them.  The file begins with a digest of its remaining content, which detects
corruption.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from fedsampling.base.files import write_text
from fedsampling.base.records import check
from fedsampling.experiments.config import Config
from fedsampling.experiments.dataset_uses import DatasetUse
from fedsampling.experiments.papers import Paper, as_plain
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.workflow.plan import Plan


def write(path: Path, key: str, plan: Plan, digests: Mapping[str, str]) -> None:
    """Write a plan, the digests of its results, and `key`, the digest of its inputs."""
    content = {
        "key": key,
        "digests": dict(digests),
        "papers": {name: as_plain(paper) for name, paper in plan.papers.items()},
        "experiments": dict(plan.experiments),
        "uses": {name: [asdict(use) for use in used] for name, used in plan.uses.items()},
        "users_samplers": dict(plan.users_samplers),
        "some_due": bool(plan.due),
        "jobs": json.dumps(list(_entries(plan)), separators=(",", ":")),
    }
    body = json.dumps(content, separators=(",", ":"))[1:]
    write_text(path, _head(body) + body)


def read(
    path: Path, key: str, config: Config, other_run: Path | None
) -> tuple[Plan, Mapping[str, str]] | None:
    """Read a plan and the digests of its results.

    `key`: digest of the plan's current inputs. `config`: configuration of the plan. `other_run`:
    results folder of the run to compare with. Returns none if the file is missing, corrupt or has
    another key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    head, body = text[: len(_head(""))], text[len(_head("")) :]
    if head != _head(body):
        return None
    content = json.loads("{" + body)
    if content["key"] != key:
        return None
    papers = {name: check(Paper, fields, "") for name, fields in content["papers"].items()}
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
        other_run=other_run,
    )
    return plan, content["digests"]


def _head(body: str) -> str:
    return f'{{"digest":"{hashlib.sha256(body.encode()).hexdigest()}",'


def _entries(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield an entry for jobs that differ only in their seeds, so that settings are stored once."""

    def of(job: Job) -> tuple[tuple[str, str, str, str], dict[str, Any]]:
        return (job.paper, job.experiment, job.case, job.sampler), job.runs[0].settings

    for (key, settings), group in groupby(plan.jobs.values(), of):
        jobs = list(group)
        first = jobs[0].runs[0]
        yield {
            "of": key,
            "settings": settings,
            "data": first.data,
            "scheme": first.scheme,
            "code": jobs[0].code,
            "files": jobs[0].files,
            "uses_gpu": jobs[0].uses_gpu,
            "blocks": [
                [job.block, job.name in plan.due, [[run.seed, run.hash] for run in job.runs]]
                for job in jobs
            ],
        }


def _jobs(entries: str, papers: Mapping[str, Paper]) -> tuple[dict[str, Job], frozenset[str]]:
    """Return the jobs of the entries by name, and the names of the jobs that are due."""
    jobs: dict[str, Job] = {}
    due = set()
    for entry in json.loads(entries):
        shared = entry["settings"], entry["data"]
        files = tuple(entry["files"])
        for block, is_due, seeds in entry["blocks"]:
            runs = tuple(RunSpec(*shared, seed, entry["scheme"], key) for seed, key in seeds)
            paper, experiment, case, sampler = entry["of"]
            place = paper, experiment, case, sampler, block
            folder = papers[paper].folder
            job = Job(*place, runs, folder, entry["code"], files, entry["uses_gpu"])
            jobs[job.name] = job
            if is_due:
                due.add(job.name)
    return jobs, frozenset(due)


class _LazyJobs(Mapping[str, Job]):
    """Jobs of a plan, read from their entries at first use."""

    def __init__(self, entries: str, papers: Mapping[str, Paper]) -> None:
        self._entries, self._papers = entries, papers

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        return _jobs(self._entries, self._papers)[0]

    def __getitem__(self, name: str) -> Job:
        return self._jobs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)


def _use(fields: dict[str, Any]) -> DatasetUse:
    lists = {key: tuple(fields[key]) for key in ("cases", "files", "code")}
    return DatasetUse(**{**fields, **lists})
