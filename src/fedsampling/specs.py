"""From papers and configuration to runs: what each paper asks for, as checked data.

``papers/<key>/paper.yaml`` becomes a :class:`Paper`; its experiments, with the scale's values and
the user's overrides laid over them, expand to :class:`RunSpec` records, one per case, sampler and
seed.  A run is a pure function of its RunSpec, and is found again by the hash of the fields that
determine its result: two papers that ask for the same run share it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from fedsampling.config import Config
from fedsampling.errors import InputError, nearest
from fedsampling.settings import SEEDS, AnySettings, Ijcnn1, Positive, Run
from fedsampling.validation import Strict, check, distinct, merge, read_yaml


class Experiment(Strict):
    """One experiment: its settings, and the cases, samplers and seeds that it runs over."""

    kind: Literal["federated", "gradient", "inclusion", "weights"]
    title: str
    cases: dict[str, dict[str, Any]] = Field(
        {"base": {}}, description="named changes to the settings"
    )
    samplers: dict[str, dict[str, Any]]
    seeds: list[Annotated[int, Field(ge=0, lt=SEEDS)]] = Field(
        description="a list, or a number n for 0, …, n − 1"
    )
    seed_block: Positive = Field(1, description="seeds that one job runs together")
    settings: dict[str, Any] = Field(description="what all runs share")

    @field_validator("seeds", mode="before")
    @classmethod
    def _count(cls, seeds: Any) -> Any:
        if isinstance(seeds, int) and not isinstance(seeds, bool):
            if seeds < 1:
                raise ValueError(f"{seeds} is out of range; give at least 1, or a list of seeds")
            return list(range(seeds))
        if not isinstance(seeds, list):
            raise ValueError(f"{seeds!r} is not right; give a number of seeds, or a list of them")
        return seeds

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if not seeds:
            raise ValueError("no seeds; give at least one")
        return distinct(seeds)

    @field_validator("cases", "samplers")
    @classmethod
    def _named(cls, named: dict[str, Any]) -> dict[str, Any]:
        for name in named:
            if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
                raise ValueError(f"{name!r} becomes a folder; use letters, digits, - _ . alone")
        return named


class Choice(Strict):
    """Something the paper leaves open, and what was chosen."""

    name: str
    value: str
    why: str


class ArtefactSpec(Strict):
    """A table or figure that must exist."""

    kind: Literal["figure", "table", "text"]
    title: str
    caption: str
    experiments: list[str] = Field(default_factory=list)


class ClaimSpec(Strict):
    """A sentence of the paper that can hold or fail, and the rule that decides."""

    statement: str
    artefact: str
    reported: str
    margin: str = Field(description="declared before running")
    rule: str


class Paper(Strict):
    """A paper: its experiments, artefacts and claims."""

    key: str
    title: str
    authors: str
    year: int
    venue: str
    url: str
    summary: str
    choices: list[Choice] = Field(default_factory=list)
    experiments: dict[str, dict[str, Any]]
    artefacts: dict[str, ArtefactSpec]
    claims: dict[str, ClaimSpec]


@dataclass(frozen=True)
class RunSpec:
    """One run: what determines its result, and nothing else.

    Parameters
    ----------
    settings : dict
        Plain data of a checked settings record, the sampler included.
    data : {"embedded", "official", "generated"}
        Where its data come from; ``generated`` if the paper simulates them itself.
    seed : int
    """

    settings: dict[str, Any]
    data: str
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that the hash covers."""
        return {"settings": self.settings, "data": self.data, "seed": self.seed}

    @property
    def hash(self) -> str:
        """Twenty hexadecimal digits of the SHA-256 of the canonical JSON."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Job:
    """What one process computes: the seeds of a block for one case and sampler."""

    paper: str
    experiment: str
    case: str
    sampler: str
    block: int
    runs: tuple[RunSpec, ...]

    @property
    def name(self) -> str:
        """Its place below ``results/runs``, and its name in every message."""
        parts = (self.paper, self.experiment, self.case, self.sampler, f"block-{self.block}")
        return "/".join(parts)


def load_papers(config: Config, papers: Path) -> dict[str, Paper]:
    """Read the papers that a configuration asks for.

    Raises
    ------
    InputError
        If one is not known, or overridden without being asked for.
    """
    for key in config.overrides:
        if key not in config.papers:
            raise InputError(
                f"overrides.{key}: not among the papers asked for; {nearest(key, config.papers)}"
            )
    return {key: load_paper(key, papers) for key in config.papers}


def load_paper(key: str, papers: Path) -> Paper:
    """Read and check ``papers/<key>/paper.yaml``.

    Raises
    ------
    InputError
        If there is no such paper, or with one line for every error in its file.
    """
    path = papers / key / "paper.yaml"
    if not path.is_file():
        known = [found.parent.name for found in papers.glob("*/paper.yaml")]
        raise InputError(f"papers: '{key}' is not known; {nearest(key, known)}")
    paper = check(Paper, read_yaml(path), f"papers/{key}/paper.yaml: ")
    for artefact, spec in paper.artefacts.items():
        for name in spec.experiments:
            if name not in paper.experiments:
                raise InputError(
                    f"papers/{key}/paper.yaml: artefacts.{artefact}.experiments: '{name}' is not "
                    f"known; {nearest(name, paper.experiments)}"
                )
    return paper


def experiments(paper: Paper, config: Config) -> dict[str, Experiment]:
    """Resolve a paper's experiments at the configured scale, with the user's overrides.

    Raises
    ------
    InputError
        With one line for every error; those of an override name ``overrides``.
    """
    changes = config.overrides.get(paper.key, {})
    for name in changes:
        if name not in paper.experiments:
            raise InputError(
                f"overrides.{paper.key}.{name}: no such experiment; "
                f"{nearest(name, paper.experiments)}"
            )
    resolved = {}
    for name, given in paper.experiments.items():
        base = {key: value for key, value in given.items() if key != "quick"}
        if config.scale == "quick":
            base = merge(base, given.get("quick", {}))
        merged = _grouped(merge(base, changes.get(name, {})))
        place = f"overrides.{paper.key}.{name}" if name in changes else f"{paper.key}.{name}"
        resolved[name] = check(Experiment, merged, f"{place}.")
        for case in resolved[name].cases:  # every run is checked before the first one starts
            for sampler in resolved[name].samplers:
                settings(resolved[name], case, sampler, place)
    return resolved


def settings(experiment: Experiment, case: str, sampler: str, place: str = "") -> AnySettings:
    """Return the checked settings of one case and sampler; `place` begins each error line."""
    given = merge(experiment.settings, experiment.cases[case])
    given = {"kind": experiment.kind, **given, "sampler": experiment.samplers[sampler]}
    try:
        return check(Run, {"run": given}, "").run
    except InputError as error:
        lines = [line.removeprefix("run.").removeprefix("run: ") for line in error.lines]
        where = f"{place}." if place else ""
        named = [line.replace("sampler.", f"samplers.{sampler}.", 1) for line in lines]
        raise InputError(*(f"{where}{line}" for line in named)) from None


def jobs(paper: Paper, config: Config) -> list[Job]:
    """List the jobs of a paper, in the order of its file."""
    listed = []
    for name, experiment in experiments(paper, config).items():
        blocks = range(0, len(experiment.seeds), experiment.seed_block)
        for case in experiment.cases:
            for sampler in experiment.samplers:
                checked = settings(experiment, case, sampler)
                plain = checked.model_dump(mode="json")
                data = _data(checked, config)
                for block, first in enumerate(blocks):
                    seeds = experiment.seeds[first : first + experiment.seed_block]
                    runs = tuple(RunSpec(plain, data, seed) for seed in seeds)
                    listed.append(Job(paper.key, name, case, sampler, block, runs))
    return listed


def find_job(paper: Paper, config: Config, name: str) -> Job:
    """Return the job of a name such as ``paper/experiment/case/sampler/block-0``.

    Raises
    ------
    InputError
        If the paper has no such job.
    """
    known = {job.name: job for job in jobs(paper, config)}
    if name not in known:
        raise InputError(f"job: '{name}' is not known; {nearest(name, known)}")
    return known[name]


def _grouped(given: dict[str, Any]) -> dict[str, Any]:
    """Put the keys that are not the experiment's own below ``settings``."""
    own = set(Experiment.model_fields) - {"settings"}
    grouped = {key: value for key, value in given.items() if key in own}
    grouped["settings"] = {key: value for key, value in given.items() if key not in own}
    return grouped


def _data(checked: AnySettings, config: Config) -> str:
    real = isinstance(getattr(checked, "dataset", None), Ijcnn1)
    return config.data if real else "generated"
