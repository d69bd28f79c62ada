"""The project: a configuration, its folders, and its plan, which is cached on disk.

Every command and the Snakefile work on a :class:`Project`.  Resolving a plan takes seconds, so it
is cached as ``plan.jsonl`` in the results folder, with everything that was read to resolve it.
A missing, corrupt or outdated plan is resolved again.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base import input_states, inputs
from fedsampling.base.code import RUN_IT, helpers
from fedsampling.base.errors import InputError
from fedsampling.base.files import checked, digest, guard, write_json
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.selecting import folders_of
from fedsampling.experiments.specs import Job
from fedsampling.runs.made import Made, generation_of, record_of_job
from fedsampling.runs.places import PAPERS, RESULTS, plan_inputs, run_stores
from fedsampling.samplers.users.files import read_at_load
from fedsampling.workflow import locks
from fedsampling.workflow.best_scale import left_to_run
from fedsampling.workflow.digests import digests
from fedsampling.workflow.plan import Plan, resolve
from fedsampling.workflow.plan_file import Planned, read_plan, write_plan

LOGS = Path("logs")
CONFIG, PLAN, CALL_LOCK, JOBS_LOCK = "config.json", "plan.jsonl", "call.lock", "jobs.lock"
EMPTIED = ("cards", "runs")  # folders in which Snakemake removes outputs before it makes them again
CALL = "FEDSAMPLING_CALL"  # environment variable of a call's jobs: digest of its configuration


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
        folder = file.parent
        in_results = file.name == CONFIG and folder != results and folder.is_relative_to(results)
        run = folder.relative_to(results).as_posix() if in_results else None
        config = configuration.load(file, only_reads, run)
        resolves = not (only_reads and config.names_code)
        project = cls(config, results, papers, file, writes=True, resolves=resolves)
        if CALL in os.environ:
            locks.hold(project.folder / JOBS_LOCK, shared=True)
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
        locks.hold(self.folder / CALL_LOCK)
        self._check_no_other_jobs()
        for name in EMPTIED:
            checked(self.folder / name / "any")
        write_json(self.config_file, self.config.model_dump(mode="json"))
        write_plan(self.folder / PLAN, self._key, self._cached)

    def check_free(self) -> None:
        """Before writing results by hand, refuse to run next to a call with other settings.

        Such a call is refused, too, until this process ends.
        """
        if not self.is_written():
            locks.hold(self.folder / CALL_LOCK, shared=True)
            self._check_no_other_jobs()

    def _check_no_other_jobs(self) -> None:
        """Refuse to start next to jobs with other settings, which outlive a killed call."""
        lock = self.folder / JOBS_LOCK
        if not self.is_written() and not locks.is_held(lock):
            locks.check_free(lock)

    def made(self, step: str) -> Made:
        """Return the record of what a step read; `step` is a key of :attr:`digests`."""
        self._observe()
        target, shared = run_stores(self.results, self.config)
        stores = list(dict.fromkeys([target, *shared]))
        return Made.open(self.folder / "made" / f"{step}.json", stores, self.folder)

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
        """Choose the folders whose files count as inputs."""
        target, shared = run_stores(self.results, self.config)
        inputs.ignore(self.results, LOGS, target, *shared)  # runs have digests of their own
        guard(self.results, self.data, target)
        inputs.watch(self.papers, *folders_of(self.config, self.papers).values())
        inputs.watch(*(Path(file).parent for file in self.config.schemes))

    def _read(self, record: inputs.Recording) -> dict[str, str]:
        """Return the states of all inputs of a resolved plan that its key does not cover."""
        files = [Path(file) for file in self.config.schemes]
        files += [helper for file in files for helper in helpers(file).values()]
        papers = map(input_states.files_below, folders_of(self.config, self.papers).values())
        folder = f"{input_states.FOLDER} {self.papers}"
        listing = {folder: input_states.state(folder)}
        parts = input_states.package_files(), listing, read_at_load(), input_states.states_of(files)
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
