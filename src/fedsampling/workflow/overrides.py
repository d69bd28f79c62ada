"""A user's samples and model in ``fedsampling compare``, and the settings that they imply.

They replace the data and models of the cross matrix's experiments.  No finished run matches, so
all samplers are trained.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.records import check, merge
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.papers import CROSS_MATRIX, REFERENCE, TUNING, load_paper
from fedsampling.experiments.simulations.network import (
    OPAQUE,
    Network,
    build_learner,
    build_sampler,
    load_problem,
)
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.runs.execute import locate
from fedsampling.runs.places import run_stores
from fedsampling.samplers.checking.check import check_sampler
from fedsampling.samplers.checking.rounds import N
from fedsampling.samplers.scheme import Scheme, scheme
from fedsampling.workflow.project import Project

REPLACED_EXPERIMENT = "digit"  # whose data are replaced
CLIENTS_PER_SELECTED, MAX_SELECTED = 5, 10  # one client in five is selected, at most ten


@dataclass(frozen=True)
class OwnProblem:
    """A user's own samples and model for a comparison, as given by the options.

    `target`, `client` and `test` are columns of the file `data`; `test` marks test samples. `model`
    is ``my_model.py:Net``, or the name of a model of the package; `loss` a function in the model's
    file. `learning_rates` is the grid of tuning, such as ``0.1,0.3``.
    """

    data: Path | None = None
    target: str = "y"
    client: str = "client"
    test: str | None = None
    client_info: Path | None = None
    model: str | None = None
    loss: str | None = None
    rounds: int | None = None
    seeds: int | None = None
    learning_rates: str | None = None

    def __post_init__(self) -> None:
        if self.loss is not None and ":" not in (self.model or ""):
            raise InputError(
                "--loss: no effect without --model FILE:NAME; add it, or remove --loss"
            )
        for option in ("rounds", "seeds", "learning_rates", "test", "client_info"):
            if getattr(self, option) and self.data is None:
                name = f"--{option.replace('_', '-')}"
                raise InputError(f"{name}: no effect without --data; add it, or remove {name}")

    def __bool__(self) -> bool:
        return self.data is not None or self.model is not None

    @property
    def name(self) -> str:
        """The names of the data file and the model, such as ``clients-my_model-Net``."""
        data = "" if self.data is None else self.data.stem
        model = (self.model or "").replace(".py:", "-").rpartition("/")[2]
        return "-".join(filter(None, [data, model]))

    def settings(self, experiment: str, resolved: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that replace those of an experiment, which is `resolved`."""
        changes: dict[str, Any] = {}
        if self.data is not None:
            holdout = ", learning rates on a holdout" if experiment.startswith(TUNING) else ""
            changes = {
                "title": f"{self.data.name}{holdout}",
                "dataset": self._dataset,
                "inputs": self.clients.input_type,
                "model": {"name": "mlp" if self.clients.classes else "linear"},
            }
            if self.rounds:
                interval = resolved["settings"]["evaluation"]["every"]
                changes["rounds"] = self.rounds
                changes["evaluation"] = {"every": min(interval, max(self.rounds // 10, 1))}
            if self.seeds and not experiment.startswith(TUNING):
                changes["seeds"] = self.seeds
            if rates := self._rates():
                cases = {f"step-{rate:g}": {"work": {"step": rate}} for rate in rates}
                changes["cases"] = dict.fromkeys(resolved["cases"]) | cases
        if self.model is not None:
            file, colon, name = self.model.rpartition(":")
            changes["model"] = {"file": file, "name": name} if colon else {"name": name}
            if self.loss is not None:
                changes["model"]["loss"] = self.loss
        return changes

    def sampler_settings(self) -> dict[str, int]:
        """Return the samplers' settings that follow from the number of clients."""
        if self.data is None:
            return {}
        m = min(MAX_SELECTED, max(self.clients.n_clients // CLIENTS_PER_SELECTED, 1))
        return {"m": m, "first": m, "d": 2 * m, "available": 3 * m}

    def untrainable(self, samplers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the reasons why samplers, by label, cannot train a user's module."""
        if self.model is None or ":" not in self.model:
            return {}
        checked = {label: check(Scheme, dict(record), "") for label, record in samplers.items()}
        reason = OPAQUE.removeprefix("model: {} ")
        return {
            label: reason for label, sampler in checked.items() if "heterogeneity" in sampler.needs
        }

    def _rates(self) -> list[float]:
        try:
            rates = [float(word) for word in (self.learning_rates or "").split(",") if word.strip()]
        except ValueError:
            rates = [-1.0]
        if any(not 0 < rate < np.inf for rate in rates):
            raise InputError(
                f"--learning-rates {self.learning_rates}: invalid; must be positive numbers, "
                "such as 0.1,0.3,1"
            )
        return rates

    @cached_property
    def clients(self) -> FederatedDataset:
        """The clients of the file."""
        try:
            dataset = check(Dataset, self._dataset, "")
            return dataset.load("official", 0, Path(), None)
        except InputError as error:
            raise InputError(*(f"--data: {line}" for line in error.lines)) from None

    @property
    def _dataset(self) -> dict[str, Any]:
        columns = {"target": self.target, "client": self.client}
        if self.test is not None:
            columns["test"] = self.test
        if self.client_info is not None:
            columns["client_info"] = str(self.client_info)
        return {"name": "files", "path": str(self.data), **columns}


def misfits(project: Project) -> Mapping[str, str]:
    """Return the reasons why samplers, by label, do not fit the clients or the model."""
    where = Where(project.data, project.config.mirror)
    reasons: dict[str, str] = {}
    for settings, labels in _by_experiment(project):
        first = next(iter(labels.values()))
        problem = load_problem(first, settings, where)
        learner = build_learner(first, problem, settings, where)
        for label, simulation in labels.items():
            try:
                build_sampler(simulation, learner, [0])
            except (InputError, ValueError) as error:
                reasons.setdefault(label, str(error).splitlines()[0])
    return reasons


def _by_experiment(project: Project) -> Iterator[tuple[str, dict[str, Network]]]:
    """Yield, for each experiment, the source of its data and a simulation of each sampler."""
    jobs = project.plan.jobs.values()
    for experiment in dict.fromkeys(job.experiment for job in jobs):
        its_jobs = [job for job in jobs if job.experiment == experiment]
        simulations = {job.sampler: job.simulation for job in its_jobs}
        yield (
            its_jobs[0].runs[0].data,
            {name: run for name, run in simulations.items() if isinstance(run, Network)},
        )


# The cross matrix of ``fedsampling compare``: which samplers and datasets it keeps.
#
# A comparison overrides the experiments of ``papers/crossmatrix``: it adds the user's samplers, and
# leaves out other datasets, and samplers that cannot be compared.


@dataclass(frozen=True)
class Entry:
    """A sampler with the settings of ``--set``, as one competitor of a comparison."""

    sampler: str
    settings: dict[str, Any]


def all_entries(members: Sequence[type[Scheme]], words: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of some samplers by label.

    `words`: settings, ``key=value`` or ``key=value,value``; several values give several entries.  A
    setting applies to all samplers that have it.
    """
    entries = {}
    fields = {key for member in members for key in member.model_fields}
    for member in members:
        # A setting that no sampler has goes to all of them, which reject it.
        its_words = [
            word
            for word in words
            if (key := word.partition("=")[0]) in member.model_fields or key not in fields
        ]
        for label, settings in _entries(member.named, its_words).items():
            entries[label] = Entry(member.named, settings)
    return entries


def check_entry(entry: Entry, common: Mapping[str, Any]) -> None:
    """Check that an entry, with the settings `common` to its sampler, works as it declares."""
    settings = {**common, **entry.settings}
    options = {key: value for key, value in settings.items() if key != "name"}
    if isinstance(m := options.get("m"), int):
        options["m"] = min(m, N)  # the check uses small populations
    try:
        sampler = scheme(entry.sampler, **options)
    except InputError as error:
        raise InputError(*(line.replace("scheme.", "--set ", 1) for line in error.lines)) from None
    check_sampler(sampler)


def _entries(name: str, words: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each entry's settings by its label: the sampler's name and the values that differ."""
    values: dict[str, list[str]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: not a setting; write it as key=value")
        parts = [value] if value[:1] in ("[", "{") else value.split(",")
        values.setdefault(key, []).extend(part.strip() for part in parts)
    entries = {}
    for combination in product(*values.values()):
        settings = dict(zip(values, combination, strict=True))
        differs = [f"{key}-{settings[key]}" for key in values if len(values[key]) > 1]
        label = "-".join([name, *differs])
        entries[label] = {key: parse_yaml(value, f"--set {key}") for key, value in settings.items()}
    return entries


Overrides = dict[str, Any]  # of the cross matrix, by experiment; see Config.overrides
Echo = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """The entries, datasets and other samplers of a comparison."""

    matrix: Project  # the cross matrix at the scale of the comparison
    entries: Mapping[str, Entry]  # by label
    datasets: Sequence[str]  # experiments of the cross matrix
    problem: OwnProblem
    against: Sequence[str]  # the other samplers; if empty, all

    def with_fitting_samplers(self, common: Mapping[str, Any], echo: Echo) -> Overrides:
        """Return overrides with all samplers that can train the model; echo the others."""
        samplers = {entry.sampler for entry in self.entries.values()}
        compared = {REFERENCE, *self.against, *samplers} if self.against else {*common}
        reasons = self.problem.untrainable(
            {name: settings for name, settings in common.items() if name in compared}
        )
        overrides = self._overrides(self.datasets, reasons)
        reasons |= misfits(self.matrix.with_config(overrides={CROSS_MATRIX: overrides}))
        of_entries = {
            label: reasons.get(label, reasons.get(entry.sampler))
            for label, entry in self.entries.items()
        }
        if refused := [f"{label}: {reason}" for label, reason in of_entries.items() if reason]:
            raise InputError(*refused)
        for label, reason in reasons.items():
            echo(f"left out: {label}: {reason}")
        return self._overrides(self.datasets, reasons)

    def with_finished_samplers(self, is_benchmark: bool, echo: Echo) -> Overrides:
        """Return overrides with the samplers whose runs are finished; at quick scale, with all.

        Datasets of the benchmark on which the reference's runs are not finished are left out.

        `is_benchmark`: whether to compare on the whole benchmark. `echo`: prints a line, with the
        datasets and samplers that are left out.
        """
        scale = self.matrix.config.scale
        overrides = self._overrides(self.datasets, ())
        if scale == "quick":
            return overrides
        missing = self._unfinished(overrides)
        unusable = [name for name, samplers in missing.items() if REFERENCE in samplers]
        if unusable and (not is_benchmark or {*self.datasets} <= {*unusable}):
            raise InputError(
                f"--on {unusable[0].removeprefix(TUNING)}: the runs of {REFERENCE}, which sets the "
                f"target, are not finished at {scale} scale; use another dataset or scale"
            )
        for experiment in unusable:  # a rank does not need all datasets
            overrides[experiment] = None
            del missing[experiment]
        for experiment, samplers in missing.items():
            overrides[experiment]["samplers"] |= dict.fromkeys(samplers)
        left_out = [name for name in unusable if not name.startswith(TUNING)]
        left_out += sorted({name for samplers in missing.values() for name in samplers})
        if left_out:
            echo(f"left out because their runs are not finished: {', '.join(left_out)}")
        return overrides

    def _overrides(self, experiments: Sequence[str], left_out: Collection[str]) -> Overrides:
        """Return overrides that add the entries to some experiments and remove all others."""
        plan = self.matrix.plan
        compared = {*experiments, *(TUNING + name for name in experiments)}
        overrides: Overrides = {}
        for experiment in load_paper(
            CROSS_MATRIX, plan.papers[CROSS_MATRIX].folder.parent
        ).experiments:
            if experiment in compared:
                resolved = plan.experiments[f"{CROSS_MATRIX}/{experiment}"]
                overrides[experiment] = {
                    "samplers": self._samplers(experiment, resolved["samplers"], left_out),
                    **self.problem.settings(experiment, resolved),
                }
            else:
                overrides[experiment] = None
        return overrides

    def _samplers(
        self, experiment: str, matrix_samplers: Mapping[str, Any], left_out: Collection[str]
    ) -> dict[str, Any]:
        """Return an experiment's samplers: the entries, and the samplers to compare them with."""
        shared = self.problem.sampler_settings()
        common = {
            name: record | {key: value for key, value in shared.items() if key in record}
            for name, record in matrix_samplers.items()
        }
        samplers = {
            label: common[entry.sampler] | entry.settings
            for label, entry in self.entries.items()
            if entry.sampler in common and entry.sampler not in left_out
        }
        if not self.problem and not self.against:
            return samplers  # in addition to the paper's "*"
        compared = {entry.sampler for entry in self.entries.values()}
        names = [name for name in common if name not in compared and name not in left_out]
        if self.against:
            names = [name for name in names if name in (REFERENCE, *self.against)]
        samplers |= {name: common[name] for name in names}
        written = self.matrix.plan.papers[CROSS_MATRIX].experiments[experiment]
        labels = merge(written, written.get(self.matrix.config.scale) or {})["samplers"]
        return samplers | {label: None for label in labels if label not in samplers}

    def _unfinished(self, overrides: Overrides) -> dict[str, list[str]]:
        """Return, by experiment, the other samplers with missing runs, tuning included."""
        project = self.matrix.with_config(overrides={CROSS_MATRIX: overrides})
        target, shared = run_stores(project.results, project.config)
        missing: dict[str, dict[str, None]] = {}  # by dataset; the inner dict is an ordered set
        for job in project.plan.jobs.values():
            samplers = missing.setdefault(job.experiment.removeprefix(TUNING), {})
            if job.sampler in self.entries or job.sampler in samplers:
                continue
            if not all(locate(run.hash, target, shared, job.code) for run in job.runs):
                samplers[job.sampler] = None
        return {
            experiment: [*samplers]
            for name, samplers in missing.items()
            for experiment in (name, TUNING + name)
            if samplers and f"{CROSS_MATRIX}/{experiment}" in project.plan.experiments
        }
