"""The project: a configuration, its folders, and its plan, which is cached on disk.

Every command and the Snakefile work on a :class:`Project`.  Resolving a plan takes seconds, so it
is cached as ``plan.json`` in the results folder, with a digest of everything that it depends on.
A missing, corrupt or outdated plan is resolved again.
"""

import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.files import digest, write_json, writing
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.fingerprints import PACKAGE
from fedsampling.runs.places import plan_inputs
from fedsampling.workflow import plan_file
from fedsampling.workflow.digests import TEMPLATES, VENDOR, digests
from fedsampling.workflow.plan import PAPERS, RESULTS, Plan, resolve

CONFIG, PLAN, LOCK = "config.json", "plan.json", "call.lock"
CALL = "FEDSAMPLING_CALL"  # environment variable of a call's jobs: digest of its configuration
_held: dict[Path, int] = {}  # open locks of the results folders that this process holds


@dataclass(frozen=True)
class Project:
    """A configuration, the folders that it works in, and its plan."""

    config: Config
    results: Path = RESULTS  # folder that all runs share: data, the store, checkpoints
    papers: Path = PAPERS  # folder that holds one folder per paper
    file: Path = Path("config.yaml")  # configuration file
    writes: bool = False  # whether a newly resolved plan is written to disk

    @classmethod
    def open(cls, file: Path, results: Path = RESULTS, papers: Path = PAPERS) -> "Project":
        """Read a configuration file."""
        project = cls(configuration.load(file), results, papers, file, writes=True)
        if os.environ.get(CALL, project.call) != project.call:
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
        return self._cached[0]

    @property
    def digests(self) -> Mapping[str, str]:
        """Digest of each result's inputs, see :func:`fedsampling.workflow.digests.digests`."""
        return self._cached[1]

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
        path = self.folder / LOCK
        if path.absolute() not in _held:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = _locked(path, fcntl.LOCK_EX)
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
            _held[path.absolute()] = handle
        write_json(self.config_file, self.config.model_dump(mode="json"))
        plan_file.write(self.folder / PLAN, self._key, self.plan, self.digests)

    def check_free(self) -> None:
        """Refuse to write results by hand while a call with another configuration is running."""
        path = self.folder / LOCK
        if path.is_file() and not self.is_written():
            with writing(path):
                os.close(_locked(path, fcntl.LOCK_SH))

    @cached_property
    def _cached(self) -> tuple[Plan, Mapping[str, str]]:
        path = self.folder / PLAN
        if cached := plan_file.read(
            path, self._key, self.config, self.config.other_run(self.results)
        ):
            return cached
        plan = resolve(self.config, self.papers, self.results)
        result_digests = digests(plan)
        if self.writes:
            with suppress(InputError):  # later steps report an unwritable folder
                plan_file.write(path, self._key, plan, result_digests)
        return plan, result_digests

    @cached_property
    def _key(self) -> str:
        """Digest of all inputs of the plan."""
        content = hashlib.sha256()
        for name, part in self._parts():
            content.update(f"{name}\0{len(part)}\0".encode())
            content.update(part)
        return content.hexdigest()

    def _parts(self) -> Iterator[tuple[str, bytes]]:
        # Commands may read the data from another mirror than the workflow: the plan is the same.
        config = self.config.model_dump(mode="json", exclude={"mirror"})
        yield "config", json.dumps([config, *map(str, (self.results, self.papers))]).encode()
        folders = [self.papers / "*", *(Path(name) for name in self.config.papers or ())]
        files = [
            *(path for folder in folders for path in folder.parent.glob(f"{folder.name}/*.*")),
            *map(Path, self.config.schemes),
        ]
        if other_run := self.config.other_run(self.results):
            files += other_run.glob("summaries/*/*.parquet")
        code = [*PACKAGE.rglob("*.py"), *TEMPLATES.iterdir(), *VENDOR.iterdir()]
        # Relative paths: the digest must not depend on where the package is installed.
        named_paths = [(os.path.relpath(path, PACKAGE), path) for path in code]
        named_paths += [(str(path), path) for path in {*files} if path.is_file()]
        yield from ((name, path.read_bytes()) for name, path in sorted(named_paths))
        for path in sorted({*_files_named(self.config.overrides)}):
            status = path.stat()  # data may be large: compare size and date instead of content
            yield str(path), f"{status.st_size} {status.st_mtime_ns}".encode()
        yield from plan_inputs(self.results, self.config)


def _locked(path: Path, kind: int) -> int:
    """Open and lock a file; the lock ends when the file is closed or the process has ended."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(handle, 200).decode(errors="replace")
        os.close(handle)
        raise InputError(
            f"{path.parent}: another call is running in this folder ({owner}); "
            "wait until it ends, or name this run: --config run=NAME"
        ) from None
    except OSError:
        pass  # no locks on this file system; jobs still refuse another call's configuration
    return handle


def _files_named(settings: Any) -> Iterator[Path]:
    """Yield the existing files of datasets and models that nested settings name."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if key in ("path", "file") and isinstance(value, str) and Path(value).is_file():
                yield Path(value)
            yield from _files_named(value)
