"""A user's own samples and model, which replace those of the cross matrix in a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedsampling.base.errors import InputError, naming
from fedsampling.base.records import Strict, check
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.clients.availability import Availability
from fedsampling.clients.failures import Failures
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.networks.settings import OPAQUE
from fedsampling.experiments.shorthand import TUNING
from fedsampling.learning.models.settings import ModelFile
from fedsampling.samplers.protocol.base import Scheme

ABSENT = "requires every client to be available in every round"
REPLACED_EXPERIMENT = "digit"  # whose data are replaced
ONLY_WITH_DATA = (
    *("target", "client", "test", "client_info", "m", "failures", "availability"),
    *("rounds", "seeds", "learning_rates"),
)
CLIENTS_PER_SELECTED, MAX_SELECTED = 5, 10  # one client in five is selected, at most ten


@dataclass(frozen=True)
class OwnProblem:
    """A user's own samples and model for a comparison, as given by the options.

    They replace those of the cross matrix.  No finished run matches, so all samplers are trained.

    `target` (by default ``y``), `client` (``client``) and `test` are columns of the file `data`;
    `test` marks test samples. `m` is the number of clients per round, for samplers that have one.
    `failures` and `availability` are settings of an experiment, as YAML. `model` is
    ``my_model.py:Net``, or the name of one of the package's models; `loss` a function in the
    model's file. `learning_rates` is the grid of tuning, such as ``0.1,0.3``.
    """

    data: Path | None = None
    target: str | None = None
    client: str | None = None
    test: str | None = None
    client_info: Path | None = None
    m: int | None = None
    failures: str | None = None
    availability: str | None = None
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
        for option in ONLY_WITH_DATA:
            if getattr(self, option) is not None and self.data is None:
                name = f"--{option.replace('_', '-')}"
                raise InputError(f"{name}: no effect without --data; add it, or remove {name}")
        self._rates()  # refuses an invalid grid before any work

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
            if self.failures:
                changes["failures"] = parse_yaml(self.failures, "--failures")
            if self.availability:
                changes["availability"] = parse_yaml(self.availability, "--availability")
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
            changes["model"] = self._model
        return changes

    def sampler_settings(self) -> dict[str, int]:
        """Return the samplers' settings that follow from the number of clients."""
        if self.data is None:
            return {}
        n = self.clients.n_clients
        m = self.m or min(MAX_SELECTED, max(n // CLIENTS_PER_SELECTED, 1))
        if m > n:
            raise InputError(f"--m {m}: invalid; must be at most {n}, the number of clients")
        return {"m": m, "first": m, "d": 2 * m, "available": 3 * m}

    @property
    def title(self) -> str:
        """The data file, and how many of its clients are selected per round."""
        name = "" if self.data is None else self.data.name
        return f"{name} ({self.clients.n_clients} clients, m = {self.sampler_settings()['m']})"

    def check_clients(self) -> None:
        """Report an error in the settings of failures and availability."""
        kinds: tuple[tuple[str, type[Strict]], ...] = (
            ("failures", Failures),
            ("availability", Availability),
        )
        for option, kind in kinds:
            if text := getattr(self, option):
                with naming(f"--{option}"):
                    check(kind, parse_yaml(text, f"--{option}"), "")

    def untrainable(self, samplers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return the reasons why samplers, by label, cannot train a user's module or clients."""
        is_opaque = ":" in (self.model or "")
        reasons = {}
        for label, record in samplers.items():
            sampler = check(Scheme, dict(record), "")
            if is_opaque and "heterogeneity" in sampler.needs:
                reasons[label] = OPAQUE.removeprefix("model: {} ")
            if self.availability and not sampler.intermittent:
                reasons[label] = ABSENT
        return reasons

    def _rates(self) -> list[float]:
        if self.learning_rates is None:
            return []
        try:
            rates = [float(word) for word in self.learning_rates.split(",") if word.strip()]
        except ValueError:
            rates = []
        if not rates or any(not 0 < rate < np.inf for rate in rates):
            raise InputError(
                f"--learning-rates {self.learning_rates}: invalid; must be positive numbers, "
                "such as 0.1,0.3,1"
            )
        return rates

    def check_model(self) -> None:
        """Report an error in the model's file before samplers are checked."""
        if self.model is not None and ":" in self.model:
            from fedsampling.learning.models.own_files import check_file

            with naming("--model"):
                check_file(check(ModelFile, self._model, ""))

    @property
    def _model(self) -> dict[str, str]:
        file, colon, name = (self.model or "").rpartition(":")
        loss = {} if self.loss is None else {"loss": self.loss}
        return {"file": file, "name": name, **loss} if colon else {"name": name}

    @cached_property
    def clients(self) -> FederatedDataset:
        """The clients of the file."""
        with naming("--data"):
            return check(Dataset, self._dataset, "").load("official", 0, Path(), None)

    @property
    def _dataset(self) -> dict[str, Any]:
        columns = {"target": self.target or "y", "client": self.client or "client"}
        if self.test is not None:
            columns["test"] = self.test
        if self.client_info is not None:
            columns["client_info"] = str(self.client_info)
        return {"name": "files", "path": str(self.data), **columns}
