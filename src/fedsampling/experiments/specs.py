"""From papers and configuration to runs: each run as checked data with a hash.

Experiments, updated with the values of the scale and the user's overrides, expand to one
:class:`RunSpec` per case, sampler and seed.  A run is a pure function of its RunSpec.  It is stored
by the hash of the fields that determine its result, so that papers share identical runs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from fedsampling.base import memory
from fedsampling.base.errors import InputError, gathering, nearest
from fedsampling.base.families import members_within
from fedsampling.base.records import check, merge
from fedsampling.experiments.config import Config
from fedsampling.experiments.fingerprints import fingerprint, own_code
from fedsampling.experiments.paper_selection import NOT_AT, no_experiment
from fedsampling.experiments.papers import Experiment, Paper, load_kinds
from fedsampling.experiments.simulations.simulation import Simulation
from fedsampling.samplers.in_settings import expand_star

SMALLER_SCALES = ("quick", "reduced")  # keys of an experiment that update its own settings


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run: exactly the fields that determine its result.

    Parameters
    ----------
    settings : dict
        Plain data of a checked settings record, the sampler included.
    data : {"embedded", "official", "generated"}
        Source of the data; ``generated`` if the paper itself simulates them.
    seed : int
    scheme : str
        Digest of the user's file that defines the sampler; empty for this project's samplers.
    hash : str
        Twenty hexadecimal digits of the SHA-256 of the identity's canonical JSON; computed by
        default.
    """

    settings: dict[str, Any]
    data: str
    seed: int
    scheme: str = ""
    hash: str = ""

    def __post_init__(self) -> None:
        if not self.hash:
            text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
            object.__setattr__(self, "hash", hashlib.sha256(text.encode()).hexdigest()[:20])

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that the hash covers."""
        scheme_code = {"scheme": self.scheme} if self.scheme else {}
        return {"settings": self.settings, "data": self.data, "seed": self.seed, **scheme_code}


@dataclass(frozen=True)
class Job:
    """The runs that one process computes together: a block of seeds for one case and sampler.

    Parameters
    ----------
    paper, experiment, case, sampler : str
    block : int
    runs : tuple of RunSpec
    folder : Path
        The paper's folder, whose ``simulations*.py`` may define the run kind.
    code : str
        Fingerprint of the code that the results depend on.
    files : tuple of str
        Datasets whose official files the runs read.
    uses_gpu : bool
        Whether the runs can use a GPU.
    """

    paper: str
    experiment: str
    case: str
    sampler: str
    block: int
    runs: tuple[RunSpec, ...]
    folder: Path = Path()
    code: str = ""
    files: tuple[str, ...] = ()
    uses_gpu: bool = False

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


@dataclass(frozen=True)
class Resolved:
    """An experiment at one scale, with the user's overrides.

    Parameters
    ----------
    experiment : Experiment
    simulations : mapping
        Checked settings of the runs, by case and sampler.
    """

    experiment: Experiment
    simulations: Mapping[tuple[str, str], Simulation]


def resolve_experiments(paper: Paper, config: Config) -> dict[str, Resolved]:
    """Resolve a paper's experiments at the configured scale, with the user's overrides.

    Raises
    ------
    InputError
        With one line for every error; lines about an override begin with ``overrides``.
    """
    problems = [
        f"overrides.{paper.key}.{name}: {no_experiment(name, paper)}"
        for name, change in config.overrides.get(paper.key, {}).items()
        if change is not None
        and name not in paper.experiments
        and paper.left_out.get(name) in (None, NOT_AT.format(config.scale))
    ]
    resolved = {}
    for name in paper.experiments:
        with gathering(problems):
            resolved[name] = _resolve(paper, name, config)
    if problems:
        raise InputError(*problems)
    return resolved


def scale_of(paper: Paper, name: str, config: Config) -> str:
    """Return the scale of an experiment as configured.

    Returns
    -------
    str
        ``"paper"`` if the experiment includes all runs of the paper's size, at any configured
        scale; ``"changed"`` if overrides remove runs; otherwise the configured scale.
    """
    scale = paper.scales.get(name, config.scale)
    full = paper.model_copy(update={"scales": {name: "paper"}})
    unchanged = config.model_copy(update={"overrides": {}})
    configured = _experiment(paper, name, config)
    if _covers(configured, _experiment(full, name, unchanged)):
        return "paper"
    same = _covers(configured, _experiment(paper, name, unchanged))
    return scale if same and scale != "paper" else "changed"


def changed(paper: Paper, name: str, config: Config) -> list[str]:
    """List the settings that overrides change: ``key value (value in paper.yaml)``."""
    if not config.overrides.get(paper.key, {}).get(name):
        return []
    unchanged = config.model_copy(update={"overrides": {}})
    ours, papers = (_experiment(paper, name, each) for each in (config, unchanged))
    return differences(ours.model_dump(mode="json"), papers.model_dump(mode="json"))


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """List the settings in which two resolved experiments differ: ``key value (other's value)``."""
    mine, others = _flat(first), _flat(second)
    return [
        f"{key.removeprefix('settings.')} {_shown(mine, key)} ({_shown(others, key)})"
        for key in {**others, **mine}
        if mine.get(key) != others.get(key)
    ]


def run_settings(experiment: Experiment, case: str, sampler: str, place: str = "") -> Simulation:
    """Return the checked settings of one case and sampler; `place` is the prefix of errors."""
    changes = dict(experiment.cases[case])
    of_sampler = (changes.pop("samplers", None) or {}).get(sampler, {})
    merged = merge(experiment.settings, changes)
    where = f"{place}." if place else ""
    if "sampler" in merged:
        raise InputError(f"{where}sampler: unknown key; did you mean 'samplers'?")
    used = merge(experiment.samplers[sampler], of_sampler)
    merged = {**merged, "kind": experiment.kind, "sampler": used}
    try:
        return check(Simulation, merged, "")
    except InputError as error:
        lines = []
        for line in error.lines:
            if line.startswith(("sampler.", "sampler:")):
                line = line.replace("sampler", f"samplers.{sampler}", 1)
            elif _sets(experiment.cases[case], key := line.partition(":")[0]):
                line = f"cases.{case}.{line}"
            elif line.startswith(f"{key}: unknown key; ") and "." not in key:
                known = {*Simulation.member(experiment.kind).model_fields, *Experiment.model_fields}
                line = f"{key}: unknown key; {nearest(key, known - {'sampler', 'settings'})}"
            lines.append(where + line)
        raise InputError(*lines) from None


def jobs(paper: Paper, config: Config, resolved: Mapping[str, Resolved] | None = None) -> list[Job]:
    """List the jobs of a paper, or of its `resolved` experiments, in the order of its file.

    At paper scale, a sampler with a case in ``chosen.csv`` runs only that case and the cases listed
    as ``always``.
    """
    listed = []
    for name, each in (resolved or resolve_experiments(paper, config)).items():
        experiment = each.experiment
        blocks = range(0, len(experiment.seeds), experiment.seed_block)
        at_paper_scale = paper.scales.get(name, config.scale) == "paper"
        chosen = paper.chosen.get(experiment.tuned_as or name, {}) if at_paper_scale else {}
        for (case, sampler), simulation in each.simulations.items():
            selected = {chosen.get(sampler, case), *experiment.always}
            if case not in selected and chosen[sampler] in experiment.cases:
                continue
            plain = simulation.model_dump(mode="json")
            files = simulation.files()
            data = config.data if files else "generated"
            modules = [member.code for member in members_within(simulation)]
            users_code = "".join(map(own_code, modules))
            code = fingerprint(*sorted({*modules}), papers=paper.folder.parent)
            official = files if data == "official" else ()
            for block, first in enumerate(blocks):
                seeds = experiment.seeds[first : first + experiment.seed_block]
                runs = tuple(RunSpec(plain, data, seed, users_code) for seed in seeds)
                place = paper.key, name, case, sampler, block
                listed.append(Job(*place, runs, paper.folder, code, official, simulation.gpu))
    return listed


def _resolve(paper: Paper, name: str, config: Config) -> Resolved:
    """Resolve an experiment, and check it with the settings of its runs."""
    changes, place = _overrides(paper, name, config)
    experiment = _experiment(paper, name, config)
    simulations: dict[tuple[str, str], Simulation] = {}
    problems = [
        f"{place}.{key}: each case sets its own value; override it below cases"
        for key in _flat(_grouped(changes)["settings"])
        if not _reaches(key.split("."), experiment)
    ]
    for case, sampler in product(experiment.cases, experiment.samplers):
        with gathering(problems):  # every run is checked before the first one starts
            simulations[case, sampler] = run_settings(experiment, case, sampler, place)
    block = min(experiment.seed_block, len(experiment.seeds))
    least = max((each.least_bytes(block) for each in simulations.values()), default=0.0)
    limit = max(memory.available(), 1e6 * config.cluster.max_mem_mb)
    if line := memory.lacking(least, limit):
        problems.append(f"{place}: {line}")
    for (_, sampler), each in () if line else simulations.items():
        # Jobs can stop between rounds only, so one selection must fit into the time limit.
        if line := each.obstacle(block, limit, 60 * config.cluster.max_runtime):
            problems.append(f"{place}.samplers.{sampler}.{line}")
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return Resolved(experiment, simulations)


def _experiment(paper: Paper, name: str, config: Config) -> Experiment:
    """Apply scale and overrides to an experiment; settings of single runs are not checked."""
    written, (changes, place) = paper.experiments[name], _overrides(paper, name, config)
    base = {key: value for key, value in written.items() if key not in SMALLER_SCALES}
    base = merge(base, written.get(paper.scales.get(name, config.scale)) or {})
    merged = _grouped(merge(base, changes))
    samplers = merged.get("samplers")
    if isinstance(samplers, dict) and isinstance(samplers.get("*"), dict):
        try:
            away = (merged["settings"].get("availability") or {}).get("name", "always") != "always"
            merged["samplers"] = expand_star(samplers, away)
        except InputError as error:
            raise InputError(*(f"{place}.samplers.{line}" for line in error.lines)) from None
    elif isinstance(samplers, dict) and "*" in (base.get("samplers") or ()):
        # Overrides have removed "*": the paper's null, which leaves a sampler out of it, goes, too.
        merged["samplers"] = {label: kept for label, kept in samplers.items() if kept is not None}
    experiment = check(Experiment, merged, f"{place}.")
    code = Simulation.member(experiment.kind).code
    if code.startswith("papers.") and not code.startswith(f"papers.{paper.key}."):
        raise InputError(
            f"{place}.kind: '{experiment.kind}' belongs to papers/{code.split('.')[1]}; move its "
            "module to fedsampling/experiments/simulations to share it"
        )
    return experiment


def _overrides(paper: Paper, name: str, config: Config) -> tuple[dict[str, Any], str]:
    """Return the overrides of an experiment, and the prefix of errors in its settings."""
    changes = config.overrides.get(paper.key, {})
    place = f"overrides.{paper.key}.{name}" if name in changes else f"{paper.key}.{name}"
    return changes.get(name) or {}, place


def _covers(larger: Experiment, smaller: Experiment) -> bool:
    """Whether `larger` includes all runs of `smaller`."""
    return (
        larger.settings == smaller.settings
        and larger.cases.items() >= smaller.cases.items()
        and larger.samplers.items() >= smaller.samplers.items()
        and set(larger.seeds) >= set(smaller.seeds)
    )


def _reaches(path: Sequence[str], experiment: Experiment) -> bool:
    """Whether some case uses the shared value at this path."""
    mark = object()
    probe: Any = mark
    for key in reversed(path):
        probe = {key: probe}
    for case in experiment.cases.values():
        value: Any = merge(merge(experiment.settings, probe), case)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is mark:
            return True
    return False


def _sets(case: Any, key: str) -> bool:
    """Whether the case sets the value of a dotted key."""
    for part in key.split("."):
        if not isinstance(case, dict):
            return True  # an element of a list in the case
        if part not in case:
            return False
        case = case[part]
    return True


def _grouped(written: dict[str, Any]) -> dict[str, Any]:
    """Move all keys that are not fields of :class:`Experiment` into ``settings``."""
    fields = set(Experiment.model_fields) - {"settings"}
    grouped = {key: value for key, value in written.items() if key in fields}
    grouped["settings"] = {key: value for key, value in written.items() if key not in fields}
    return grouped


def _flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested mappings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _shown(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key, "none")
    if isinstance(value, list) and len(value) > 3:
        return f"{len(value)} values"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
