"""The project: a configuration, its folders, and its plan, which is cached on disk.

Every command and the Snakefile work on a :class:`Project`.  Resolving a plan takes seconds, so it
is cached as ``plan.json`` in the results folder, with everything that was read to resolve it.
A missing, corrupt or outdated plan is resolved again.
"""

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedsampling.base import inputs
from fedsampling.base.code import RUN_IT, code_digest, helpers
from fedsampling.base.errors import InputError
from fedsampling.base.files import checked, digest, guard, sha256, write_json, writing
from fedsampling.base.machine import processor
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import CROSS_MATRIX, Paper
from fedsampling.experiments.resolving import folders_of
from fedsampling.experiments.specs import Job, own_code
from fedsampling.runs.made import Made, generation_of, record_of_job
from fedsampling.runs.places import (
    PAPERS,
    RESULTS,
    plan_inputs,
    published_files,
    run_stores,
    stored_files,
)
from fedsampling.samplers.users.files import load_file, read_at_load
from fedsampling.workflow.plan import Plan, Planned, left_to_run, read_plan, resolve, write_plan

if sys.platform != "win32":  # where a project is refused
    import fcntl

LOGS = Path("logs")
CONFIG, PLAN, CALL_LOCK, JOBS_LOCK = "config.json", "plan.json", "call.lock", "jobs.lock"
CALL = "FEDSAMPLING_CALL"  # environment variable of a call's jobs: digest of its configuration
CHECK_SECONDS = 1  # the most that a check, which holds a lock only to test it, can take
_held: dict[Path, int] = {}  # open locks of the results folders that this process holds


@dataclass(frozen=True)
class Project:
    """A configuration, the folders that it works in, and its plan."""

    config: Config
    results: Path = RESULTS  # folder that all runs share: data, the store, checkpoints
    papers: Path = PAPERS  # folder that holds one folder per paper
    file: Path = Path("config.yaml")  # configuration file
    writes: bool = False  # whether a newly resolved plan is written to disk
    resolves: bool = True  # whether a missing or outdated plan is resolved, which loads code

    @classmethod
    def open(
        cls, file: Path, results: Path = RESULTS, papers: Path = PAPERS, only_reads: bool = False
    ) -> "Project":
        """Read a configuration file.

        `only_reads`: for a command that needs no code. If the file is that of a results folder,
        which may come from somebody else, no code that it names is loaded.
        """
        only_reads = only_reads and file.name == CONFIG and CALL not in os.environ
        config = configuration.load(file, only_reads)
        resolves = not (only_reads and config.names_code)
        project = cls(config, results, papers, file, writes=True, resolves=resolves)
        if CALL in os.environ:
            project._hold(JOBS_LOCK, fcntl.LOCK_SH)
            if os.environ[CALL] != project.call or not project.is_written():
                fix = "run the same command again when that call has ended"
                raise InputError(f"{file}: replaced by another call; {fix}")
        return project

    def with_config(self, **changes: Any) -> "Project":
        """Return the project with a changed configuration; its plan is not written to disk."""
        config = configuration.parse(self.config.model_dump(mode="json") | changes)
        return replace(self, config=config, writes=False)

    def in_subfolder(self, name: str) -> "Project":
        """Return the project with its results in a subfolder."""
        run = f"{self.config.run}/{name}" if self.config.run else name
        return replace(self, config=self.config.model_copy(update={"run": run}))

    @property
    def folder(self) -> Path:
        """Results folder of this configuration's run."""
        return self.config.run_folder(self.results)

    @property
    def data(self) -> Path:
        """Folder of downloaded files."""
        return self.results / "data"

    @property
    def facts(self) -> dict[str, str]:
        """Scale and source of the data, for the provenance of results without runs."""
        # Without computation, these results count as the paper's size.
        scale = self.config.scale if self.config.computes else "paper"
        return {"scale": scale, "data": self.config.data}

    def manifest(self, job: str) -> Path:
        """Return the manifest of a job: the file that lists its runs."""
        return self.folder / "runs" / f"{job}.json"

    @property
    def config_file(self) -> Path:
        """File of the resolved configuration, which the steps of the workflow read."""
        return self.folder / CONFIG

    @property
    def plan(self) -> Plan:
        """Papers, jobs and files of the configuration."""
        return self._cached.plan

    @property
    def digests(self) -> Mapping[str, str]:
        """Digest of each result's inputs, see :func:`digests`."""
        return self._cached.digests

    def left_to_run(self, paper: Paper) -> dict[str, list[Job]]:
        """List a paper's unfinished jobs of the paper's size, by experiment."""
        return left_to_run(paper, self.config, self.results)

    def is_written(self) -> bool:
        """Whether the results folder has this configuration."""
        with suppress(OSError, ValueError):
            written: Any = json.loads(self.config_file.read_text(encoding="utf-8"))
            return bool(written == self.config.model_dump(mode="json"))
        return False

    @property
    def call(self) -> str:
        """Digest of the configuration, by which a job recognises the call that started it."""
        return digest(self.config.model_dump(mode="json"))

    def write(self) -> None:
        """Hold the results folder until this process ends; write the configuration and the plan."""
        self._hold(CALL_LOCK, fcntl.LOCK_EX)
        self._check_no_other_jobs()
        write_json(self.config_file, self.config.model_dump(mode="json"))
        write_plan(self.folder / PLAN, self._key, self._cached)

    def check_free(self) -> None:
        """Before writing results by hand, refuse to run next to a call with other settings.

        Such a call is refused, too, until this process ends.
        """
        if not self.is_written():
            self._hold(CALL_LOCK, fcntl.LOCK_SH)
            self._check_no_other_jobs()

    def _check_no_other_jobs(self) -> None:
        """Refuse to start next to jobs with other settings, which outlive a killed call."""
        if not self.is_written() and self._lock_file(JOBS_LOCK) not in _held:
            os.close(_locked(self._lock_file(JOBS_LOCK), fcntl.LOCK_EX))

    def _hold(self, lock: str, kind: int) -> None:
        if (path := self._lock_file(lock)) not in _held:
            _held[path] = _locked(path, kind)

    def _lock_file(self, lock: str) -> Path:
        return (self.folder / lock).absolute()

    def made(self, step: str) -> Made:
        """Return the record of what a step read; `step` is a key of :attr:`digests`."""
        self._observe()
        target, shared = run_stores(self.results, self.config)
        stores = list(dict.fromkeys([target, *shared]))
        return Made.open(self.folder / "made" / f"{step}.json", stores)

    def made_from(self, step: str) -> str:
        """Return a digest of all inputs of a step, known before it runs or read when it ran."""
        upstream = [
            self.made_from(name)
            for name in (self.digests if step == "report" else ())
            if name.startswith(("papers/", "cards/"))
        ]
        return digest([self.digests[step], self.made(step).generations, upstream])

    def job_made_from(self, *jobs: str) -> str:
        """Return a digest of the specs and the code of jobs, and of what users' code in them read.

        Only jobs that run users' code have a record.
        """
        changes = {}
        for name in jobs if self.plan.due else ():
            if count := generation_of(record_of_job(self.folder, name)):
                changes[name] = count
        made_from = self.plan.made_from(*jobs)
        return digest([made_from, changes]) if changes else made_from

    @cached_property
    def _cached(self) -> Planned:
        path = self.folder / PLAN
        self._observe()
        key = self._key if self.resolves else None
        if cached := read_plan(path, key, self.config, self.papers):
            return cached
        if not self.resolves:
            raise InputError(f"{path}: missing or corrupt; {RUN_IT}")
        with inputs.recording() as record:
            plan = resolve(self.config, self.papers, self.results)
            planned = Planned(plan, digests(plan, self.results), self._read(record))
        if self.writes:
            with suppress(InputError):  # later steps report an unwritable folder
                write_plan(path, self._key, planned)
        return planned

    def _observe(self) -> None:
        """Tell whose files count as inputs."""
        target, shared = run_stores(self.results, self.config)
        inputs.ignore(self.results, LOGS, target, *shared)  # runs have digests of their own
        guard(self.results, self.data, target)
        inputs.watch(self.papers, *folders_of(self.config, self.papers).values())
        inputs.watch(*(Path(file).parent for file in self.config.schemes))

    def _read(self, record: inputs.Recording) -> dict[str, str]:
        """Return all that a resolved plan depends on, besides the parts of the key."""
        files = [Path(file) for file in self.config.schemes]
        files += [helper for file in files for helper in helpers(file).values()]
        papers = map(inputs.files_below, folders_of(self.config, self.papers).values())
        listing = {key: inputs.state(key) for key in [f"{inputs.FOLDER} {self.papers}"]}
        parts = inputs.package_files(), listing, read_at_load(), inputs.states_of(files)
        return inputs.merged(*papers, *parts, record.states())

    @cached_property
    def _key(self) -> str:
        """Digest of the settings of a plan, and of the finished runs that it may use."""
        content = hashlib.sha256()
        # Commands may read the data from another mirror than the workflow: the plan is the same.
        config = self.config.model_dump(mode="json", exclude={"mirror"})
        settings = json.dumps([config, *map(str, (self.results, self.papers))]).encode()
        for name, part in ("config", settings), *plan_inputs(self.results, self.config):
            content.update(f"{name}\0{len(part)}\0".encode())
            content.update(part)
        return content.hexdigest()


def _locked(path: Path, kind: int) -> int:
    """Open, lock and sign a file; the lock ends when the file is closed or the process ends."""
    with writing(path):
        checked(path).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            _wait_for(handle, kind)
        except BlockingIOError:
            owner = os.read(handle, 200).decode(errors="replace")
            os.close(handle)
            raise InputError(
                f"{path.parent}: another call is running in this folder ({owner}); "
                "wait until it ends, or name this run: --config run=NAME"
            ) from None
        except OSError:
            pass  # no locks on this file system; jobs still refuse another call's configuration
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
    return handle


def _wait_for(handle: int, kind: int) -> None:
    """Lock an open file; wait for another call's check, which holds the lock only for an instant.

    Calls and jobs hold their locks until they end, and are not waited for.
    """
    deadline = time.monotonic() + CHECK_SECONDS
    while True:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)


# Digests of the inputs of a step that are known before it runs: values, such as a resolved paper
# and the hashes of its runs, and files.  All others are recorded when it runs, above all code.
#
# Each digest is part of a parameter of its rule: Snakemake reruns the step when it changes.  It
# covers all upstream steps, because Snakemake does not look for missing files behind an output that
# seems up to date.


TEXTS = (".md", ".bib")  # of the report; a drawing that reads such a file records it


def digests(plan: Plan, results: Path = RESULTS) -> dict[str, str]:
    """Return the digests of all results other than runs, by folder and name.

    ``papers/<paper>`` covers all artefacts, claims and explorer data of a paper.
    """
    by_result = _summaries(plan, results)
    for key, paper in plan.papers.items():
        summaries = {name: by_result[f"summaries/{key}/{name}"] for name in paper.experiments}
        # Drawing is cheap: it depends on the whole paper, with its folder, claims and choices.
        whole = [_content(paper), _files(paper), _facts(plan), plan.config.changes(key)]
        drawn = {
            f"artefacts/{key}/{name}": digest([whole, [summaries[n] for n in spec.experiments]])
            for name, spec in paper.artefacts.items()
        }
        judged = {f"claims/{key}": digest([whole, summaries])}
        explored = {
            f"explorer/{key}/{name}": digest([summary, _facts(plan)])
            for name, summary in summaries.items()
        }
        outputs = [drawn, judged, explored]
        by_result |= drawn | judged | explored | {f"papers/{key}": digest(outputs)}
    by_result |= {f"cards/{dataset}": _card(plan, dataset) for dataset in plan.cards}
    matrix = by_result.get(f"papers/{CROSS_MATRIX}", "")
    compared = {}
    for name, file in plan.users_samplers.items():
        code = [own_code(member.code) for member in load_file(Path(file))]
        compared[f"compare/{name}"] = digest([code, plan.config.scale, matrix])
    checked = {"recheck": _recheck(plan, by_result)}
    return by_result | compared | checked | {"report": _report(plan, by_result)}


def _summaries(plan: Plan, results: Path) -> dict[str, str]:
    content = cache(sha256)
    by_result = {}
    for key, experiment in plan.experiments.items():
        paper, _, name = key.partition("/")
        jobs = [plan.jobs[job] for job in plan.jobs_of(paper, name)]
        # A published run may be replaced by another one with the same hash, and so may a stored
        # run that no job of this call computes.
        finished = [job for job in jobs if job.name not in plan.due]
        files = published_files(jobs, plan.config) + stored_files(finished, results, plan.config)
        parts = [content(file) for file in files if file.is_file()]
        written = plan.papers[paper].experiments[name], plan.papers[paper].scales.get(name)
        changes = plan.config.overrides.get(paper, {}).get(name)
        made_from = plan.made_from(*(job.name for job in jobs))
        by_result[f"summaries/{key}"] = digest(
            [experiment, written, changes, made_from, parts, _facts(plan)]
        )
    return by_result


def _content(paper: Paper) -> dict[str, Any]:
    """Return a resolved paper without its place."""
    return paper.model_dump(mode="json", exclude={"folder"})


def _files(paper: Paper) -> dict[str, str]:
    """Return the states of a paper's files: the content of YAML, the code of Python, bytes."""
    states = {}
    for key in inputs.files_below(paper.folder):
        kind, _, name = key.partition(" ")
        path = Path(name)
        if kind == inputs.FILE and path.suffix not in TEXTS:
            relative = path.absolute().relative_to(paper.folder.absolute()).as_posix()
            states[relative] = _state(path)
    return states


def _state(path: Path) -> str:
    if path.suffix == ".yaml":
        # In the order of the file, in which pages show claims and artefacts.
        return digest(repr(parse_yaml(path.read_text(encoding="utf-8"), str(path))))
    return code_digest(path) if path.suffix == ".py" else sha256(path)


def _card(plan: Plan, dataset: str) -> str:
    if shipped := plan.published_card(dataset):
        return sha256(shipped)
    return digest([*map(asdict, plan.cards[dataset])])


def _recheck(plan: Plan, by_result: Mapping[str, str]) -> str:
    """Digest the runs that a recheck compares, and the machine on which it does."""
    codes = sorted({job.code for job in plan.jobs.values()})
    runs = [text for name, text in by_result.items() if name.startswith("summaries/")]
    return digest([codes, runs, platform.machine(), processor()])


def _report(plan: Plan, by_result: dict[str, str]) -> str:
    papers = [_content(paper) for paper in plan.papers.values()]
    return digest([papers, plan.config.public(), by_result])


def _facts(plan: Plan) -> list[str]:
    return [plan.config.scale, plan.config.data]
