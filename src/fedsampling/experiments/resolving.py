"""Experiments at one scale, with the user's overrides, and the checked settings of their runs.

An experiment of ``paper.yaml`` has the settings of the paper's size.  The values under ``quick`` or
``reduced`` change them for a smaller scale, and the user's ``overrides`` come last.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from pydantic import Field, field_validator, model_validator

from fedsampling.base import memory
from fedsampling.base.errors import InputError, gathering, nearest
from fedsampling.base.records import Positive, Strict, check, differences, flat, merge
from fedsampling.experiments.config import Config
from fedsampling.experiments.paper_selection import NOT_AT, no_experiment
from fedsampling.experiments.papers import Paper, check_names, load_kinds
from fedsampling.experiments.simulations.simulation import Seeds, Simulation
from fedsampling.samplers.interface.in_settings import expand_star

SMALLER_SCALES = ("quick", "reduced")  # keys of an experiment that change its settings


class Experiment(Strict):
    """One experiment: its settings, and the cases, samplers and seeds that it runs over."""

    kind: str = Field(
        description="run kind: a name from experiments/simulations or the paper's simulations*.py"
    )
    title: str
    cases: dict[str, dict[str, Any]] = Field(
        {"base": {}},
        description="named changes to the settings, and under `samplers` to single samplers'",
    )
    always: dict[str, tuple[str, ...]] = Field(
        {}, description="samplers, by case, that run the case at paper scale besides the chosen one"
    )
    tuned_as: str = Field(
        "",
        description="experiment whose rows of chosen.csv apply; empty: this experiment",
        exclude_if=lambda name: not name,
    )
    samplers: dict[str, dict[str, Any]]
    seeds: Seeds = Field(description="a list, or a number n for 0, …, n − 1")
    seed_block: Positive = Field(1, description="seeds that one job runs together")
    worlds: bool = Field(
        False,
        description="each seed is its own problem_seed: it draws its own clients, delays and "
        "availability, the same for all samplers",
        exclude_if=lambda worlds: not worlds,
    )
    settings: dict[str, Any] = Field(description="settings of all runs")

    @field_validator("kind")
    @classmethod
    def _registered(cls, kind: str) -> str:
        return Simulation.member(kind).named

    @field_validator("cases", "samplers")
    @classmethod
    def _named(cls, named: dict[str, Any]) -> dict[str, Any]:
        if not named:
            raise ValueError("empty; add at least one")
        return check_names(named)

    @model_validator(mode="after")
    def _separate_worlds(self) -> "Experiment":
        if self.worlds and "problem_seed" not in Simulation.member(self.kind).model_fields:
            raise ValueError(f"worlds: run kind '{self.kind}' has no problem_seed; remove worlds")
        if self.worlds and "problem_seed" in self.settings:
            raise ValueError("problem_seed: worlds sets it to the seed; remove one of the two")
        if self.worlds and self.seed_block > 1:
            raise ValueError(
                f"seed_block: {self.seed_block} seeds with worlds have different clients; must be 1"
            )
        return self


class Resolved(NamedTuple):
    """An experiment at one scale, with the user's overrides."""

    experiment: Experiment
    # checked settings of the runs, by case and sampler that run
    simulations: Mapping[tuple[str, str], Simulation]


def resolve_experiments(paper: Paper, config: Config) -> dict[str, Resolved]:
    """Resolve a paper's experiments at the configured scale, with the user's overrides."""
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


def _resolve(paper: Paper, name: str, config: Config) -> Resolved:
    """Resolve an experiment, and check it with the settings of its runs."""
    changes, prefix = _overrides(paper, name, config)
    experiment = _experiment(paper, name, config)
    simulations: dict[tuple[str, str], Simulation] = {}
    problems = [
        f"{prefix}.{key}: each case sets its own value; override it below cases"
        for key in flat(_grouped(changes)["settings"])
        if not _is_used(key.split("."), experiment)
    ]
    for case, sampler in _pairs(paper, name, experiment, config):
        with gathering(problems):  # every run is checked before the first one starts
            simulations[case, sampler] = run_settings(experiment, case, sampler, prefix)
    problems += _obstacles(experiment, simulations, config, prefix)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return Resolved(experiment, simulations)


def _pairs(
    paper: Paper, name: str, experiment: Experiment, config: Config
) -> Iterator[tuple[str, str]]:
    """Yield each case and sampler that run.

    At paper scale, a sampler with a case in ``chosen.csv`` runs only that case and those for which
    ``always`` lists it.
    """
    at_paper_scale = paper.scales.get(name, config.scale) == "paper"
    chosen = paper.chosen.get(experiment.tuned_as or name, {}) if at_paper_scale else {}
    for case, sampler in product(experiment.cases, experiment.samplers):
        is_chosen = case == chosen.get(sampler, case) or chosen[sampler] not in experiment.cases
        if is_chosen or sampler in experiment.always.get(case, ()):
            yield case, sampler


def _experiment(paper: Paper, name: str, config: Config) -> Experiment:
    """Apply scale and overrides to an experiment; settings of single runs are not checked."""
    written, (changes, prefix) = paper.experiments[name], _overrides(paper, name, config)
    paper_size = {key: value for key, value in written.items() if key not in SMALLER_SCALES}
    at_scale = merge(paper_size, written.get(paper.scales.get(name, config.scale)) or {})
    merged = _grouped(merge(at_scale, changes))
    samplers = merged.get("samplers")
    if isinstance(samplers, dict) and isinstance(samplers.get("*"), dict):
        try:
            availability = merged["settings"].get("availability") or {}
            away = availability.get("name", "always") != "always"
            merged["samplers"] = expand_star(samplers, away)
        except InputError as error:
            raise InputError(*(f"{prefix}.samplers.{line}" for line in error.lines)) from None
    elif isinstance(samplers, dict) and "*" in (at_scale.get("samplers") or ()):
        # Overrides remove "*", so the paper's nulls, which leave samplers out of "*", go, too.
        merged["samplers"] = {
            label: settings for label, settings in samplers.items() if settings is not None
        }
    load_kinds(paper.folder)
    experiment = check(Experiment, merged, f"{prefix}.")
    code = Simulation.member(experiment.kind).code
    if code.startswith("papers.") and not code.startswith(f"papers.{paper.key}."):
        raise InputError(
            f"{prefix}.kind: '{experiment.kind}' belongs to papers/{code.split('.')[1]}; move its "
            "module to fedsampling/experiments/simulations to share it"
        )
    return experiment


def run_settings(experiment: Experiment, case: str, sampler: str, prefix: str = "") -> Simulation:
    """Return the checked settings of one case and sampler; `prefix` is the start of error lines."""
    changes = dict(experiment.cases[case])
    of_sampler = (changes.pop("samplers", None) or {}).get(sampler, {})
    settings = merge(experiment.settings, changes)
    start = f"{prefix}." if prefix else ""
    if "sampler" in settings:
        raise InputError(f"{start}sampler: unknown key; did you mean 'samplers'?")
    settings["kind"] = experiment.kind
    settings["sampler"] = merge(experiment.samplers[sampler], of_sampler)
    try:
        return check(Simulation, settings, "")
    except InputError as error:
        lines = (_written_key(line, experiment, case, sampler) for line in error.lines)
        raise InputError(*(start + line for line in lines)) from None


def _written_key(line: str, experiment: Experiment, case: str, sampler: str) -> str:
    """Replace the key in an error line by the key in the experiment that sets the value."""
    key = line.partition(":")[0]
    if line.startswith(("sampler.", "sampler:")):
        return line.replace("sampler", f"samplers.{sampler}", 1)
    if _has_key(experiment.cases[case], key):
        return f"cases.{case}.{line}"
    if line.startswith(f"{key}: unknown key; ") and "." not in key:
        fields = {*Simulation.member(experiment.kind).model_fields, *Experiment.model_fields}
        return f"{key}: unknown key; {nearest(key, fields - {'sampler', 'settings'})}"
    return line


def _obstacles(
    experiment: Experiment,
    simulations: Mapping[tuple[str, str], Simulation],
    config: Config,
    prefix: str,
) -> list[str]:
    """Return a line for each setting with which a job exceeds the available memory or time."""
    block = min(experiment.seed_block, len(experiment.seeds))
    required = max((run.least_bytes(block) for run in simulations.values()), default=0.0)
    available = max(memory.available(), 1e6 * config.cluster.max_mem_mb)
    if line := memory.lacking(required, available):
        return [f"{prefix}: {line}"]
    # Jobs can stop between rounds only, so one selection must fit into the time limit.
    seconds = 60 * config.cluster.max_runtime
    return [
        f"{prefix}.samplers.{sampler}.{line}"
        for (_, sampler), run in simulations.items()
        if (line := run.obstacle(block, available, seconds))
    ]


def scale_of(paper: Paper, name: str, config: Config) -> str:
    """Return the scale of an experiment as configured.

    Returns ``"paper"`` if the experiment includes all runs of the paper's size, at any configured
    scale; ``"changed"`` if overrides remove runs; otherwise the configured scale.
    """
    scale = paper.scales.get(name, config.scale)
    at_paper_scale = paper.model_copy(update={"scales": {name: "paper"}})
    unchanged = config.model_copy(update={"overrides": {}})
    configured = _experiment(paper, name, config)
    if _covers(configured, _experiment(at_paper_scale, name, unchanged)):
        return "paper"
    is_complete = _covers(configured, _experiment(paper, name, unchanged))
    return scale if is_complete and scale != "paper" else "changed"


def changed(paper: Paper, name: str, config: Config) -> list[str]:
    """List the settings that overrides change: ``key value (value in paper.yaml)``."""
    if not config.overrides.get(paper.key, {}).get(name):
        return []
    unchanged = config.model_copy(update={"overrides": {}})
    ours, papers = (
        _experiment(paper, name, chosen).model_dump(mode="json") for chosen in (config, unchanged)
    )
    return differences(ours, papers)


def _overrides(paper: Paper, name: str, config: Config) -> tuple[dict[str, Any], str]:
    """Return the overrides of an experiment, and the prefix of errors in its settings."""
    changes = config.overrides.get(paper.key, {})
    prefix = f"overrides.{paper.key}.{name}" if name in changes else f"{paper.key}.{name}"
    return changes.get(name) or {}, prefix


def _covers(larger: Experiment, smaller: Experiment) -> bool:
    """Whether `larger` includes all runs of `smaller`."""
    return (
        larger.settings == smaller.settings
        and larger.cases.items() >= smaller.cases.items()
        and larger.samplers.items() >= smaller.samplers.items()
        and set(larger.seeds) >= set(smaller.seeds)
    )


def _is_used(path: Sequence[str], experiment: Experiment) -> bool:
    """Whether some case uses the experiment's value at this path, instead of its own."""
    mark = object()
    marked: Any = mark
    for key in reversed(path):
        marked = {key: marked}
    for case in experiment.cases.values():
        value: Any = merge(merge(experiment.settings, marked), case)
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is mark:
            return True
    return False


def _has_key(case: Any, dotted: str) -> bool:
    """Whether a case sets the value of a dotted key."""
    for key in dotted.split("."):
        if not isinstance(case, dict):
            return True  # an element of a list in the case
        if key not in case:
            return False
        case = case[key]
    return True


def _grouped(written: dict[str, Any]) -> dict[str, Any]:
    """Move all keys that are not fields of :class:`Experiment` into ``settings``."""
    fields = set(Experiment.model_fields) - {"settings"}
    grouped = {key: value for key, value in written.items() if key in fields}
    grouped["settings"] = {key: value for key, value in written.items() if key not in fields}
    return grouped
