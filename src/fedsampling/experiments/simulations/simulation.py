"""The base class of run kinds, and the types of their input and output.

Each other module of this folder defines a run kind: a :class:`Simulation`, whose fields are the
run's settings and whose :meth:`~Simulation.simulate` returns one table per seed.  The workflow
imports all of them to check settings, so slow libraries must be imported inside functions, or
from :mod:`fedsampling.base.lazy` (torch, pandas).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator

from fedsampling.base.families import Named
from fedsampling.base.lazy import pd
from fedsampling.base.record_errors import short
from fedsampling.base.records import Seed as Seed
from fedsampling.base.records import Strict, distinct
from fedsampling.clients.delays import DelayModel
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.learning.training.checkpoint import NEVER, Checkpoint

MAX_SEEDS = 10_000  # if `seeds` is a number; each seed is a run
Progress = Callable[[int], None]


def _counted(seeds: Any) -> Any:
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        if not 1 <= seeds <= MAX_SEEDS:
            raise ValueError(
                f"{short(seeds)} is out of range; must be 1 to {MAX_SEEDS:,}, or a list"
            )
        return list(range(seeds))
    if not isinstance(seeds, list):
        raise ValueError(f"{short(seeds)} is invalid; must be a number of seeds, or a list of them")
    return seeds


def _distinct(seeds: list[int]) -> list[int]:
    if not seeds:
        raise ValueError("no seeds; give at least one")
    return distinct(seeds)


# A list, or a number n for 0, …, n − 1.
Seeds = Annotated[list[Seed], BeforeValidator(_counted), AfterValidator(_distinct)]


@dataclass(frozen=True)
class RunContext:
    """Folders, device and checkpoint of a job; its results do not depend on them."""

    cache: Path  # folder of verified files
    mirror: str | None  # folder that is tried before the publisher
    device: str = "cpu"  # PyTorch's name of the device that trains networks
    checkpoint: Checkpoint = NEVER  # saves and restores progress, and stops the job when necessary
    # added to the runs' metadata, such as the number of slots that trained at once
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Simulated:
    """One table per seed, and their input files."""

    tables: Sequence["pd.DataFrame"]  # columns ``at``, ``metric``, ``value``
    inputs: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of each data file read
    unverified: bool = False  # whether an input could not be compared with its publisher's checksum


class Simulation(Named, package="fedsampling.experiments.simulations", key="kind"):
    """A run kind, selected by an experiment's ``kind``; each has a field ``sampler``."""

    gpu: ClassVar[bool] = False  # whether it can use a GPU
    step_seconds: ClassVar[float] = 1.0  # typical, of a round or draw, or of a seed without them

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        context: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Compute one table for each seed, as a pure function of settings, data and seed.

        `data` is ``generated`` if no dataset is read. Runs of a job are computed together but are
        independent. `progress` gets the number of finished rounds or draws.
        """
        return Simulated([self.table(seed, progress) for seed in seeds])

    def table(self, seed: int, progress: Progress) -> "pd.DataFrame":
        """Compute the table of one seed; a run kind that reads no data needs only this method."""
        raise NotImplementedError

    @property
    def timed(self) -> bool:
        """Whether its numbers are times on this machine, which no rerun repeats."""
        return False

    def files(self) -> tuple[str, ...]:
        """Datasets whose official files are read."""
        parts = (getattr(self, name, None) for name in ("dataset", "delays"))
        read = (part.files() for part in parts if isinstance(part, Dataset | DelayModel))
        return tuple(file for files in read for file in files)


class NoSampler(Strict):
    """No sampler; the run kind selects no clients."""

    name: Literal["none"]


def at_most_all(m: int, clients: int) -> None:
    """Raise ValueError if `m` exceeds the number of clients."""
    if m > clients:
        raise ValueError(f"m: {m} exceeds the {clients} clients; give at most {clients}")


def tidy(columns: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> "pd.DataFrame":
    """Convert {metric: (at, value)} into a run table."""
    return pd.concat(
        [
            pd.DataFrame({"at": np.asarray(at, np.int64), "metric": metric, "value": value})
            for metric, (at, value) in columns.items()
        ],
        ignore_index=True,
    )
