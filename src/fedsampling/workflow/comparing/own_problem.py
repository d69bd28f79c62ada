"""A user's samples and model in ``fedsampling compare``, and the settings that they imply.

They replace the data and models of the cross matrix's experiments.  No finished run matches, so all
samplers are trained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.records import check
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.cross_matrix import TUNING
from fedsampling.experiments.simulations.network import (
    OPAQUE,
    Network,
    build_learner,
    build_sampler,
    load_problem,
)
from fedsampling.experiments.simulations.simulation import Where
from fedsampling.samplers.scheme import Scheme
from fedsampling.workflow.project import Project

REPLACED_EXPERIMENT = "digit"  # whose data are replaced
CLIENTS_PER_SELECTED, MAX_SELECTED = 5, 10  # one client in five is selected, at most ten


@dataclass(frozen=True)
class OwnProblem:
    """A user's own samples and model for a comparison.

    `data`: samples in a .npz, .csv or .parquet file. `target`, `client`: columns of a table: labels
    or targets, and owners. `test`: column that marks test samples; only with `data`. `client_info`:
    Table of the clients' properties; only with `data`. `model`: ``my_model.py:Net``, or the name of
    a model of the package. `loss`: a function in the model's file. `rounds`, `seeds`: number of
    rounds, also in tuning, and number of seeds; only with `data`. `learning_rates`: the grid of
    tuning, such as ``0.1,0.3``; only with `data`.  Empty: the grid of the scale.
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
    learning_rates: str = ""

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
        """Return the settings that replace an experiment's.

        `resolved`: its ``cases`` and ``settings`` at the scale of the comparison.
        """
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
            rates = [float(word) for word in self.learning_rates.split(",") if word.strip()]
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
