"""From resolved experiments to jobs: each run as checked data with a hash.

An experiment expands to one :class:`RunSpec` per case, sampler and seed.  A run is a pure function
of its RunSpec.  It is stored by the hash of the fields that determine its result, so that papers
share identical runs, and by the fingerprint of the code that its result depends on
(:mod:`.fingerprints`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.base.families import OWN_FILE, members_within
from fedsampling.base.files import digest
from fedsampling.experiments.config import Config
from fedsampling.experiments.fingerprints import PAPERS, fingerprint, of_package, own_code, path_of
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.resolving import Resolved, load_kinds, resolve_experiments
from fedsampling.experiments.simulations.simulation import Simulation
from fedsampling.learning.models.settings import ModelFile


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

    @cached_property
    def settings_digest(self) -> str:
        """Digest of what all runs of its case and sampler share: settings, and source of data."""
        first = self.runs[0]
        shared = {key: first.settings[key] for key in first.settings if key != "problem_seed"}
        return digest([shared, first.data])

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


def jobs(
    paper: Paper,
    config: Config,
    resolved: Mapping[str, Resolved] | None = None,
    with_code: bool = True,
) -> list[Job]:
    """List a paper's jobs in the order of ``paper.yaml``.

    `resolved`: only these of its experiments. `with_code`: whether to compute the fingerprints of
    their code, for which the package is parsed.
    """
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
            code = fingerprint(*sorted(used), papers=paper.folder.parent) if with_code else ""
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
                listed.append(
                    Job(
                        paper=paper.key,
                        experiment=name,
                        case=case,
                        sampler=sampler,
                        block=block,
                        runs=runs,
                        folder=paper.folder,
                        code=code,
                        files=official,
                        uses_gpu=simulation.gpu,
                    )
                )
    return listed


def users_files(simulation: Simulation) -> list[Path]:
    """Return the users' files that define the sampler and the model of some runs."""
    members = list(members_within(simulation))
    files = [path_of(member.code, PAPERS) for member in members if member.code.startswith(OWN_FILE)]
    return files + [Path(member.file) for member in members if isinstance(member, ModelFile)]
