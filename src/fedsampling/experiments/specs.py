"""From resolved experiments to jobs: each run as checked data with a hash, and its code's hash.

An experiment expands to one :class:`RunSpec` per case, sampler and seed.  A run is a pure function
of its RunSpec.  It is stored by the hash of the fields that determine its result, so that papers
share identical runs, and by the fingerprint of the code that its result depends on.

A fingerprint covers syntax trees without comments and docstrings, so documenting or formatting a
module does not invalidate results.  Imports are followed through the package and the papers'
folders by parsing; nothing is imported, so it is cheap to compute.  Members of a family (samplers,
datasets, models, …) are discovered, not imported.  The caller therefore passes in the members that
a job uses, and a new member leaves all other results valid.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.code import PACKAGE, helpers, imported, with_helpers
from fedsampling.base.code import parsed as _read
from fedsampling.base.families import OWN_FILE, members_within
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import Resolved, load_kinds, resolve_experiments
from fedsampling.experiments.simulations.simulation import Simulation
from fedsampling.learning.models.settings import ModelFile

PAPERS = Path("papers")
# Modules that cannot change a result; packages end in a dot. Settings (experiments, records) enter
# the hash of the run as values. Storage, stopping, cluster requests and memory estimates do not
# change a run's tables. Downloaded files are compared with their publishers' checksums. Registries
# import all members of a family, so following them would make every result depend on every member.
NEUTRAL = tuple(
    f"{PACKAGE.name}.{name}"
    for name in (
        "base.code",
        "base.errors",
        "base.families",
        "base.files",
        "base.inputs",
        "base.progress",
        "base.records",
        "base.stopping",
        "data.sources.",
        "experiments.config",
        "experiments.paper_modules",
        "experiments.papers",
        "experiments.registration",
        "experiments.resolving",
        "experiments.shorthand",
        "experiments.specs",
        "learning.models.settings",
        "learning.training.checkpoint",
        "runs.",
        "workflow.",
    )
)


@cache
def fingerprint(*modules: str, papers: Path = PAPERS) -> str:
    """Hash the code of `modules` and of everything that they import, to sixteen hexadecimal digits.

    The hash does not depend on dates, git or the version of Python. A module may be in a paper's
    folder, ``papers.<key>.figures``, or in a user's file.
    """
    content = hashlib.sha256()
    for module in sorted(sources(modules, papers)):
        path = _path(module, papers)
        known_as = path.name if module.startswith(OWN_FILE) else module  # in any folder
        content.update(f"{known_as}\0{_read(path)[0]}\0".encode())
    return content.hexdigest()[:16]


def sources(modules: Iterable[str], papers: Path = PAPERS) -> set[str]:
    """Return `modules` and all that they import of this project, but not those in ``NEUTRAL``."""
    visited: set[str] = set()
    pending = [module for module in modules if _is_module(module, papers)]
    while pending:
        module = pending.pop()
        if module not in visited:
            visited.add(module)
            pending += _imports(module, papers)
    return visited


def own_code(module: str) -> str:
    """Hash the code of a user's sampler file, with its helpers, to sixteen hexadecimal digits.

    Empty for others.
    """
    if not module.startswith(OWN_FILE):
        return ""
    path = _path(module, PAPERS)
    return with_helpers(path, _read(path)[0][:16])


def of_package(*paths: Path) -> set[str]:
    """Return the modules of this package that users' files and their helpers import."""
    files = [file for path in paths for file in (path, *helpers(path).values())]
    return {name for file in files for name in imported(file) if _is_module(name, PAPERS)}


def _neutral(module: str) -> bool:
    return any(
        module == name or (name.endswith(".") and f"{module}.".startswith(name)) for name in NEUTRAL
    )


@cache
def _imports(module: str, papers: Path) -> set[str]:
    """Return what a module imports of this project, in functions as well, without ``NEUTRAL``."""
    path = _path(module, papers)
    names = set()
    for start, name in _read(path)[1]:
        if level := len(start) - len(start.lstrip(".")):
            parts = module.split(".")
            above = parts[: len(parts) - level + (path.name == "__init__.py")]
            start = ".".join([*above, *filter(None, [start.lstrip(".")])])
        inner = f"{start}.{name}"
        names.add(inner if name and _is_module(inner, papers) else start)
    return {name for name in names if _is_module(name, papers) and not _neutral(name)}


@cache
def _is_module(name: str, papers: Path) -> bool:
    ours = name.split(".")[0] in (PACKAGE.name, PAPERS.name) or name.startswith(OWN_FILE)
    return ours and _path(name, papers).is_file()


def _path(module: str, papers: Path) -> Path:
    if module.startswith(OWN_FILE):
        return Path(str(sys.modules[module].__file__))
    root, *parts = module.split(".")
    below = (papers if root == PAPERS.name else PACKAGE).joinpath(*parts)
    return below / "__init__.py" if below.is_dir() else below.with_suffix(".py")


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: exactly the fields that determine its result."""

    settings: dict[str, Any]  # plain data of a checked settings record, the sampler included
    data: str  # source of the data; ``generated`` if the paper itself simulates them
    seed: int
    # digest of the user's file that defines the sampler; empty for this project's samplers
    scheme: str = ""
    # twenty hexadecimal digits of the SHA-256 of the identity's canonical JSON; computed by default
    hash: str = ""

    def __post_init__(self) -> None:
        if not self.hash:
            key = run_hash(canonical(self.settings), self.data, self.seed, self.scheme)
            object.__setattr__(self, "hash", key)

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that the hash covers."""
        scheme_code = {"scheme": self.scheme} if self.scheme else {}
        return {"settings": self.settings, "data": self.data, "seed": self.seed, **scheme_code}


def canonical(content: dict[str, Any]) -> str:
    """Return plain data as JSON in the form that hashes cover."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def run_hash(settings: str, data: str, seed: int, scheme: str) -> str:
    """Return the hash of a run's identity; `settings`: canonical JSON, which a job's runs share."""
    others = {"data": data, "seed": seed} | ({"scheme": scheme} if scheme else {})
    text = f'{canonical(others)[:-1]},"settings":{settings}}}'  # "settings" is the last key
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Job:
    """The runs that one process computes together: a block of seeds for one case and sampler."""

    paper: str
    experiment: str
    case: str
    sampler: str
    block: int
    runs: tuple[RunSpec, ...]
    folder: Path = Path()  # the paper's folder, whose ``simulations*.py`` may define the run kind
    code: str = ""  # fingerprint of the code that the results depend on
    files: tuple[str, ...] = ()  # datasets whose official files the runs read
    uses_gpu: bool = False  # whether the runs can use a GPU

    @property
    def name(self) -> str:
        """The job's path below ``results/runs`` and its name in messages."""
        parts = (self.paper, self.experiment, self.case, self.sampler, f"block-{self.block}")
        return "/".join(parts)

    @property
    def experiment_id(self) -> str:
        """The experiment as ``paper/experiment``."""
        return f"{self.paper}/{self.experiment}"

    @cached_property
    def kind(self) -> type[Simulation]:
        """The run kind, a class of settings."""
        load_kinds(self.folder)
        return Simulation.member(self.runs[0].settings["kind"])

    @cached_property
    def simulation(self) -> Simulation:
        """The checked settings that its runs share."""
        return self.kind.model_validate(self.runs[0].settings)

    @property
    def counter(self) -> str | None:
        """The setting that counts steps, ``rounds`` or ``draws``; None if each seed is one step."""
        settings = self.runs[0].settings
        if settings["sampler"]["name"] == "none":
            return None
        return next((name for name in ("rounds", "draws") if settings.get(name)), None)

    @property
    def steps(self) -> int:
        """Number of rounds, draws or seeds."""
        return int(self.runs[0].settings[self.counter]) if self.counter else len(self.runs)


def jobs(paper: Paper, config: Config, resolved: Mapping[str, Resolved] | None = None) -> list[Job]:
    """List the jobs of a paper, or of its `resolved` experiments, in the order of its file."""
    listed = []
    for name, (experiment, simulations) in (resolved or resolve_experiments(paper, config)).items():
        blocks = range(0, len(experiment.seeds), experiment.seed_block)
        for (case, sampler), simulation in simulations.items():
            settings = simulation.model_dump(mode="json")
            files = simulation.files()
            data = config.data if files else "generated"
            modules = [member.code for member in members_within(simulation)]
            users_code = "".join(map(own_code, modules))
            used = {*modules, *of_package(*users_files(simulation))}
            code = fingerprint(*sorted(used), papers=paper.folder.parent)
            official = files if data == "official" else ()
            text = canonical(settings)
            for block, first in enumerate(blocks):
                seeds = experiment.seeds[first : first + experiment.seed_block]
                runs = tuple(
                    RunSpec(settings | {"problem_seed": seed}, data, seed, users_code)
                    if experiment.worlds
                    else RunSpec(
                        settings, data, seed, users_code, run_hash(text, data, seed, users_code)
                    )
                    for seed in seeds
                )
                path = paper.key, name, case, sampler, block
                listed.append(Job(*path, runs, paper.folder, code, official, simulation.gpu))
    return listed


def users_files(simulation: Simulation) -> list[Path]:
    """Return the users' files that define the sampler and the model of some runs."""
    members = list(members_within(simulation))
    files = [_path(member.code, PAPERS) for member in members if member.code.startswith(OWN_FILE)]
    return files + [Path(member.file) for member in members if isinstance(member, ModelFile)]


# How experiments use datasets: one entry per dataset setting, for the data cards.
#
# Imports no slow library, since the workflow calls this module.


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
