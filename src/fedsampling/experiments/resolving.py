"""Experiments at one scale, with the user's overrides: the settings of each case and sampler.

An experiment of ``paper.yaml`` has the settings of the paper's size.  The values under ``quick`` or
``reduced`` change them for a smaller scale, and the user's ``overrides`` come last.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field, field_validator, model_validator

from fedsampling.base.errors import InputError, check_known, gathering, nearest
from fedsampling.base.families import load_members
from fedsampling.base.nested import differences, flat, merge
from fedsampling.base.record_errors import check_mapping
from fedsampling.base.records import Positive, Strict, check, hashed_if_set
from fedsampling.experiments.config import Config
from fedsampling.experiments.paper_modules import make_package
from fedsampling.experiments.papers import Paper, check_names
from fedsampling.experiments.registration import CONFIRM
from fedsampling.experiments.selecting import NOT_AT, no_experiment
from fedsampling.experiments.shorthand import SCALE_KEYS
from fedsampling.experiments.simulations.simulation import Seeds, Simulation
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.grids import drawn
from fedsampling.samplers.protocol.in_settings import expand_star


class Experiment(Strict):
    """One experiment: its settings, and the cases, samplers and seeds that it runs over."""

    kind: str = Field(
        description="run kind: a name from experiments/simulations or the paper's simulations*.py"
    )
    title: str
    cases: dict[str, dict[str, Any]] = Field(
        {"base": {}},
        description="named changes to the settings, under `samplers` to single samplers', and "
        "under `draw` to those in the samplers' grids, 1 to 3",
    )
    always: dict[str, tuple[str, ...]] = Field(
        {}, description="samplers, by case, that run the case at paper scale besides the chosen one"
    )
    tuned_as: str = hashed_if_set(
        "", "experiment whose rows of chosen.csv apply; empty: this experiment"
    )
    chosen: dict[str, str] = hashed_if_set(
        {},
        "case, by sampler, in place of that in chosen.csv: the only one that runs at paper scale",
    )
    samplers: dict[str, dict[str, Any]]
    seeds: Seeds = Field(description="a list, or a number n for 0, …, n − 1")
    seed_block: Positive = Field(1, description="seeds that one job runs together")
    jobs_per_process: Positive = Field(
        1, description="short jobs that one process runs one after another, to start only once"
    )
    worlds: bool = hashed_if_set(
        False,
        "each seed is its own problem_seed: it draws its own clients, delays and availability, the "
        "same for all samplers",
    )
    looks: tuple[Positive, ...] = Field(
        (), description="numbers of seeds after which a claim is judged; empty: not declared"
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
    # Of selected experiments, `load_papers` has checked them, against the whole paper.
    changes = {} if config.experiments else config.overrides.get(paper.key, {})
    problems = [
        f"overrides.{paper.key}.{name}: {no_experiment(name, paper)}"
        for name, change in changes.items()
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


def resolved_settings(paper: Paper, config: Config) -> dict[str, dict[str, Any]]:
    """Return a paper's experiments as plain data, without checking the settings of their runs."""
    return {
        name: _experiment(paper, name, config).model_dump(mode="json") for name in paper.experiments
    }


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
    # Twins with fresh seeds inherit problem_seed from the experiments that they repeat.
    settings = changes if name.startswith(CONFIRM) else experiment.settings
    if experiment.worlds and "problem_seed" in settings:
        problems.append(
            f"{prefix}.problem_seed: has no effect with worlds, where each seed draws its own "
            "clients; remove one of the two"
        )
    with gathering(problems):
        _check_tuning(paper, name, experiment, prefix)
    if tuned_as := changes.get("tuned_as"):
        rows_of = {*paper.experiments, *paper.left_out, *paper.chosen}
        with gathering(problems):
            check_known([tuned_as], rows_of, f"{prefix}.tuned_as: '{{}}' is unknown")
    for case, sampler in _pairs(paper, name, experiment, config):
        with gathering(problems):  # every run is checked before the first one starts
            simulations[case, sampler] = run_settings(experiment, case, sampler, prefix)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return Resolved(experiment, simulations)


def _check_tuning(paper: Paper, name: str, experiment: Experiment, prefix: str) -> None:
    """Check the names in an experiment's ``chosen`` and ``always``.

    Cases and samplers that the scale or overrides removed are accepted, as in chosen.csv.
    """
    written = paper.experiments[name]
    cases = {*experiment.cases, *(written.get("cases") or ())}
    samplers = {*experiment.samplers, *(written.get("samplers") or ())}
    if "*" in samplers:
        samplers |= Scheme.members().keys()
    problems: list[str] = []
    for key, names, known in (
        ("chosen", experiment.chosen, samplers),
        ("chosen", experiment.chosen.values(), cases),
        ("always", experiment.always, cases),
        ("always", chain(*experiment.always.values()), samplers),
    ):
        with gathering(problems):
            check_known(names, known, f"{prefix}.{key}: '{{}}' is unknown")
    if problems:
        raise InputError(*problems)


def _pairs(
    paper: Paper, name: str, experiment: Experiment, config: Config
) -> Iterator[tuple[str, str]]:
    """Yield each case and sampler that run.

    At paper scale, a sampler with a case in ``chosen`` or ``chosen.csv`` runs only that case and
    those for which ``always`` lists it.
    """
    at_paper_scale = paper.scales.get(name, config.scale) == "paper"
    tuned = {**paper.chosen.get(experiment.tuned_as or name, {}), **experiment.chosen}
    chosen = tuned if at_paper_scale else {}
    for case, sampler in product(experiment.cases, experiment.samplers):
        is_chosen = case == chosen.get(sampler, case) or chosen[sampler] not in experiment.cases
        if is_chosen or sampler in experiment.always.get(case, ()):
            yield case, sampler


def _experiment(paper: Paper, name: str, config: Config) -> Experiment:
    """Apply scale and overrides to an experiment; settings of single runs are not checked."""
    written, (changes, prefix) = paper.experiments[name], _overrides(paper, name, config)
    paper_size = {key: value for key, value in written.items() if key not in SCALE_KEYS}
    at_scale = merge(paper_size, written.get(paper.scales.get(name, config.scale)) or {})
    merged = _grouped(merge(at_scale, changes))
    samplers = merged.get("samplers")
    if isinstance(samplers, dict) and isinstance(samplers.get("*"), dict):
        try:
            away = bool(merged["settings"].get("availability"))
            merged["samplers"] = expand_star(samplers, away)
        except InputError as error:
            raise InputError(*(f"{prefix}.samplers.{line}" for line in error.lines)) from None
    elif isinstance(samplers, dict) and "*" in (at_scale.get("samplers") or ()):
        # Overrides remove "*", so the paper's nulls, which leave samplers out of "*", go, too.
        merged["samplers"] = {key: record for key, record in samplers.items() if record is not None}
    load_kinds(paper.folder)
    experiment = check(Experiment, merged, f"{prefix}.")
    root, _, rest = Simulation.member(experiment.kind).__module__.partition(".")
    if root == "papers" and (other := rest.partition(".")[0]) != paper.folder.name:
        raise InputError(
            f"{prefix}.kind: '{experiment.kind}' belongs to {other}; use a kind of this paper, or "
            "define it in experiments/simulations/"
        )
    return experiment


def load_kinds(folder: Path) -> tuple[type[Simulation], ...]:
    """Import and return the run kinds that a paper's ``simulations*.py`` define."""
    kinds: list[type[Simulation]] = []
    for path in sorted(folder.glob("simulations*.py")):
        make_package(folder)
        module = f"papers.{folder.name}.{path.stem}"
        kinds += load_members(Simulation, module, path, partial(import_module, module))
    return tuple(kinds)


def run_settings(experiment: Experiment, case: str, sampler: str, prefix: str = "") -> Simulation:
    """Return the checked settings of one case and sampler; `prefix` is the start of error lines."""
    changes, record = dict(experiment.cases[case]), experiment.samplers[sampler]
    start = f"{prefix}." if prefix else ""
    of_samplers = changes.pop("samplers", None) or {}
    check_mapping(of_samplers, f"{start}cases.{case}.samplers")
    of_sampler = of_samplers.get(sampler) or {}
    check_mapping(of_sampler, f"{start}cases.{case}.samplers.{sampler}")
    draw = changes.pop("draw", None)
    settings = merge(experiment.settings, changes)
    if "sampler" in settings:
        raise InputError(f"{start}sampler: unknown key; did you mean 'samplers'?")
    settings["kind"] = experiment.kind
    try:
        if draw is not None:
            of_sampler = drawn(str(record.get("name")), draw) | of_sampler
        settings["sampler"] = merge(record, of_sampler)
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


def scale_of(paper: Paper, name: str, config: Config) -> str:
    """Return the configured scale of an experiment.

    This is ``"paper"`` if it includes all runs of the paper's size, at any scale, and ``"changed"``
    if overrides remove runs.
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
    prefix = "overrides." if name in changes else ""
    return changes.get(name) or {}, f"{prefix}{paper.key}.{name}"


def _covers(larger: Experiment, smaller: Experiment) -> bool:
    """Whether `larger` includes all runs of `smaller`."""
    return (
        larger.settings == smaller.settings
        and larger.cases.items() >= smaller.cases.items()
        and larger.samplers.items() >= smaller.samplers.items()
        and set(larger.seeds) >= set(smaller.seeds)
    )


def _is_used(path: Sequence[str], experiment: Experiment) -> bool:
    """Whether a case uses the experiment's value at this path, rather than setting its own."""
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
