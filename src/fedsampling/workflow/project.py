"""The project: a configuration, its folders, and its plan, which is cached on disk.

Every command and the Snakefile work on a :class:`Project`.  Resolving a plan takes seconds, so it
is cached as ``plan.json`` in the results folder, with a digest of everything that it depends on.
A missing, corrupt or outdated plan is resolved again.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError
from fedsampling.base.files import digest, sha256, write_json, writing
from fedsampling.experiments import config as configuration
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import CROSS_MATRIX, Paper, defining_modules
from fedsampling.experiments.specs import PACKAGE, Job, fingerprint, own_code
from fedsampling.runs.places import PAPERS, RESULTS, plan_inputs, published_files
from fedsampling.samplers.users.files import load_file
from fedsampling.workflow.plan import Plan, left_to_run, read_plan, resolve, write_plan

if sys.platform != "win32":  # where a project is refused
    import fcntl

CONFIG, PLAN, CALL_LOCK, JOBS_LOCK = "config.json", "plan.json", "call.lock", "jobs.lock"
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
        return self._cached[0]

    @property
    def digests(self) -> Mapping[str, str]:
        """Digest of each result's inputs, see :func:`digests`."""
        return self._cached[1]

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
        write_plan(self.folder / PLAN, self._key, self.plan, self.digests)

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

    @cached_property
    def _cached(self) -> tuple[Plan, Mapping[str, str]]:
        path = self.folder / PLAN
        if cached := read_plan(path, self._key, self.config):
            return cached
        plan = resolve(self.config, self.papers, self.results)
        result_digests = digests(plan)
        if self.writes:
            with suppress(InputError):  # later steps report an unwritable folder
                write_plan(path, self._key, plan, result_digests)
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
    """Open, lock and sign a file; the lock ends when the file is closed or the process ends."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
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
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
    return handle


def _files_named(settings: Any) -> Iterator[Path]:
    """Yield the existing files of datasets and models that nested settings name."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            if key in ("path", "file") and isinstance(value, str) and Path(value).is_file():
                yield Path(value)
            yield from _files_named(value)


# Digests of all inputs of a step, including code.
#
# Each digest is a parameter of its rule: Snakemake reruns the step when the digest changes.  It
# covers all upstream steps, because Snakemake does not look for missing files behind an output that
# seems up to date.


TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
VENDOR = TEMPLATES.with_name("vendor")  # the chart library of the run explorer
TEXTS = ("paper.bib", "reported.csv", "findings.md")  # a paper's files in the report


def digests(plan: Plan) -> dict[str, str]:
    """Return the digests of all results other than runs, by folder and name.

    ``papers/<paper>`` covers all artefacts, claims and explorer data of a paper.
    """
    by_result = _summaries(plan)
    views = fingerprint("fedsampling.report.drawing.views")
    for key, paper in plan.papers.items():
        drawn = {
            f"artefacts/{key}/{name}": _artefact(plan, paper, name, by_result)
            for name in paper.artefacts
        }
        judged = {f"claims/{key}": _claims(plan, paper, by_result)}
        explored = {
            f"explorer/{key}/{name}": digest(
                [by_result[f"summaries/{key}/{name}"], _facts(plan), views]
            )
            for name in paper.experiments
        }
        outputs = [drawn, judged, explored]
        by_result |= drawn | judged | explored | {f"papers/{key}": digest(outputs)}
    by_result |= {f"cards/{dataset}": _card(plan, dataset) for dataset in plan.cards}
    matrix = by_result.get(f"papers/{CROSS_MATRIX}", "")
    compared = {}
    for name, file in plan.users_samplers.items():
        code = [own_code(member.code) for member in load_file(Path(file))]
        compared[f"compare/{name}"] = digest([code, plan.config.scale, matrix])
    return by_result | compared | {"report": _report(plan, by_result)}


def _summaries(plan: Plan) -> dict[str, str]:
    code = fingerprint("fedsampling.evidence.summaries")
    content = cache(sha256)
    results = {}
    for key, experiment in plan.experiments.items():
        names = plan.jobs_of(*key.split("/"))
        # A published run may be replaced by another one with the same hash.
        files = published_files((plan.jobs[name] for name in names), plan.config)
        published = [content(file) for file in files if file.is_file()]
        parts = [experiment, plan.made_from(*names), published, code, _facts(plan)]
        results[f"summaries/{key}"] = digest(parts)
    return results


def _artefact(plan: Plan, paper: Paper, name: str, by_result: dict[str, str]) -> str:
    spec = paper.artefacts[name]
    summaries = [by_result[f"summaries/{paper.key}/{key}"] for key in spec.experiments]
    code = fingerprint(*defining_modules(paper.folder, "figures", name), papers=paper.folder.parent)
    return digest([spec.model_dump(mode="json"), _tables(paper), summaries, _facts(plan), code])


def _claims(plan: Plan, paper: Paper, by_result: dict[str, str]) -> str:
    claims = {key: claim.model_dump(mode="json") for key, claim in paper.claims.items()}
    summaries = [by_result[f"summaries/{paper.key}/{name}"] for name in paper.experiments]
    modules = defining_modules(paper.folder, "claims", *paper.claims)
    code = fingerprint(*modules, "fedsampling.evidence.verdicts", papers=paper.folder.parent)
    registered = {key: rule.model_dump(mode="json") for key, rule in paper.registered.items()}
    rules = [claims, registered, paper.left_out]
    return digest([*rules, _tables(paper), summaries, _facts(plan), code])


def _card(plan: Plan, dataset: str) -> str:
    if shipped := plan.published_card(dataset):
        return sha256(shipped)
    uses = plan.cards[dataset]
    loaders = {module for use in uses for module in use.code}
    code = fingerprint("fedsampling.report.data_cards", *sorted(loaders))
    return digest([code, *map(asdict, uses)])


def _report(plan: Plan, by_result: dict[str, str]) -> str:
    code = fingerprint("fedsampling.report.site", "fedsampling.report.crate")
    files = [*sorted(TEMPLATES.iterdir()), *sorted(VENDOR.iterdir())]
    files += [paper.folder / name for paper in plan.papers.values() for name in TEXTS]
    texts = [path.read_text(encoding="utf-8") for path in files if path.is_file()]
    others = {"folder", "scales", "omitted", "chosen"}
    papers = [paper.model_dump(mode="json", exclude=others) for paper in plan.papers.values()]
    return digest([code, texts, papers, plan.config.public(), by_result])


def _facts(plan: Plan) -> list[str]:
    return [plan.config.scale, plan.config.data]


def _tables(paper: Paper) -> list[str]:
    """Return the digests of a paper's tables, such as ``reported.csv``, which its code reads."""
    return [sha256(path) for path in sorted(paper.folder.glob("*.csv"))]
