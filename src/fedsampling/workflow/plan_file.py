"""The file of a plan, ``plan.jsonl``: three lines.

1. The SHA-256 of the other lines, which detects corruption.
2. The plan without its jobs, as a JSON object.
3. The jobs, as a JSON array.  Jobs of one case and sampler, which differ only in their seeds, share
   an entry.  This line is most of the file.  If no job has to run, as at scale best, most commands
   never parse it.

Somebody may have sent the file: names in it that become paths are checked.
"""

import gc
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from fedsampling.base import input_states
from fedsampling.base.errors import InputError
from fedsampling.base.files import decoding, write_text
from fedsampling.base.records import check
from fedsampling.experiments.config import Config
from fedsampling.experiments.dataset_uses import DatasetUse
from fedsampling.experiments.papers import Paper, check_names
from fedsampling.experiments.selecting import folders_of
from fedsampling.experiments.specs import Job, RunSpec
from fedsampling.workflow.plan import Plan

DELETE = "delete it and run the same command again"
HEXADECIMAL = re.compile("[0-9a-f]*")  # hashes of runs and of code are parts of file names


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
    }
    records = content, list(_entries(plan))
    lines = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    write_text(path, f"{_digest(lines)}\n{lines}")


def read_plan(path: Path, key: str | None, config: Config, folder: Path) -> Planned | None:
    """Read a plan; None if it is missing, corrupt, of another key, or if an input has changed.

    A plan of another version of this package may lack keys; then it is None, too.

    `key`: None accepts a plan that is out of date. `folder`: holds the papers. What the file says
    of folders is ignored, as they hold code that jobs run.
    """
    try:
        digest, _, lines = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if digest != _digest(lines):
        return None
    folders = folders_of(config, folder)
    with suppress(InputError, AttributeError, KeyError, TypeError, ValueError):
        first, entries = lines.splitlines()
        content = json.loads(first)
        input_states.remember(content["inputs"])  # also of a plan that is out of date
        if key is None or (content["key"] == key and not input_states.changed(content["inputs"])):
            papers = {
                name: check(Paper, {**fields, "folder": folders.get(name, folder / name)}, "")
                for name, fields in check_names(content["papers"]).items()
            }
            return _planned(content, papers, _Jobs(path, entries, papers), config)
    return None


def _planned(
    content: dict[str, Any], papers: Mapping[str, Paper], jobs: "_Jobs", config: Config
) -> Planned:
    plan = Plan(
        config=config,
        papers=papers,
        jobs=jobs,
        due=jobs.due if content["some_due"] else frozenset(),
        experiments=content["experiments"],
        uses={name: tuple(map(_use, used)) for name, used in content["uses"].items()},
        users_samplers=check_names(content["users_samplers"]),
    )
    return Planned(plan, content["digests"], content["inputs"])


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode()).hexdigest()


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


class _Jobs(Mapping[str, Job]):
    """Jobs of a plan by name; their line is parsed at the first use."""

    def __init__(self, path: Path, entries: str, papers: Mapping[str, Paper]) -> None:
        self._path, self._entries, self._papers = path, entries, papers

    def __getitem__(self, name: str) -> Job:
        return self._parsed[0][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parsed[0])

    def __len__(self) -> int:
        return len(self._parsed[0])

    @property
    def due(self) -> frozenset[str]:
        """Names of the jobs that are due."""
        return self._parsed[1]

    @cached_property
    def _parsed(self) -> tuple[dict[str, Job], frozenset[str]]:
        jobs: dict[str, Job] = {}
        due = set()
        with _no_collection(), decoding(self._path, "invalid", DELETE):
            for entry in json.loads(self._entries):
                for block, is_due, seeds in entry["blocks"]:
                    job = self._job(entry, block, seeds)
                    jobs[job.name] = job
                    if is_due:
                        due.add(job.name)
        return jobs, frozenset(due)

    def _job(self, entry: Mapping[str, Any], block: int, seeds: list[tuple[int, str]]) -> Job:
        paper, experiment, case, sampler = entry["of"]
        check_names(dict.fromkeys((experiment, case, sampler)))
        hashes = (entry["code"], *(key for _, key in seeds))
        if not all(map(HEXADECIMAL.fullmatch, hashes)):
            raise ValueError("a hash has other characters than hexadecimal digits")
        settings, data, scheme = entry["settings"], entry["data"], entry["scheme"]
        return Job(
            paper=paper,
            experiment=experiment,
            case=case,
            sampler=sampler,
            block=int(block),
            runs=tuple(RunSpec(settings, data, int(seed), scheme, key) for seed, key in seeds),
            folder=self._papers[paper].folder,
            code=entry["code"],
            files=tuple(entry["files"]),
            uses_gpu=entry["uses_gpu"],
        )


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


def _use(fields: dict[str, Any]) -> DatasetUse:
    lists = {key: tuple(fields[key]) for key in ("cases", "files", "code")}
    return DatasetUse(**{**fields, **lists})
