"""Base of the datasets in R packages: a table of numbers with a label, split into clients.

CRAN's packages mlbench and kernlab publish them as ``.rda`` files, without standard test sets.
Here, a fifth of each label's samples, the same for every seed, is the test set.  Features are
standardised with the training samples' mean and variance, and clipped at ±5, because some values in
Shuttle and Spam are a hundred standard deviations from the mean.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.files import sha256
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Dataset, PublishedData
from fedsampling.data.datasets.standins import blobs
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.by_digit import ByDigit
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import SMALLER, Samples, passed_checks
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import SOURCES

FILES = "r_packages"  # in sources.yaml
TESTS = 0.2  # share of each label's samples
CUT = 5.0  # standard deviations at which features are clipped
FEWEST = 10  # samples of a label in a stand-in


@dataclass(frozen=True)
class Layout:
    """Published layout of a file."""

    object: str  # name of the R object and of its file
    label: str  # column of the labels
    features: int
    per_label: tuple[int, ...]  # samples of each label, in the order of R's levels
    owner: str = ""  # column with each sample's owner; empty if there is none
    owners: int = 1

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.object}.rda"


@dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file: features, labels from zero, and owners."""

    x: Array
    y: Ints
    owner: Ints | None = None


class TableData(PublishedData):
    """A table that a partition distributes over clients."""

    official: ClassVar[tuple[str, ...]] = (FILES,)
    layout: ClassVar[Layout]

    partition: Partition

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if the settings do not determine it."""
        if isinstance(self.partition, ByDigit):
            return self.partition.clients_per_label * len(self.layout.per_label)
        return self.partition.max_clients or self.published

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Partition the samples, which are the same for every seed."""
        samples = _samples(self.named, self.layout, source, cache, mirror)
        return self.partition.share_out(samples, seed, self.importance)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published counts."""
        tables = {
            name: member.layout
            for name, member in Dataset.members().items()
            if issubclass(member, TableData)
        }
        return tuple(
            phrase
            for name, layout in tables.items()
            for phrase in verify(name, layout, read(folder / layout.file, layout))
        )


def read(path: Path, layout: Layout) -> Table:
    """Read a file of R; labels and owners are numbered in the order of their levels."""
    import rdata  # slow to import

    frame = rdata.read_rda(path, default_encoding="ascii").get(layout.object)
    special = [name for name in (layout.label, layout.owner) if name]
    if frame is None or not set(special) <= set(frame.columns):
        raise ValueError(f"{path}: has no table {layout.object} with {' and '.join(special)}")
    x = frame.drop(columns=special).astype(np.float64).to_numpy()
    label = frame[layout.label].cat.codes.to_numpy(np.int64)
    owner = frame[layout.owner].cat.codes.to_numpy(np.int64) if layout.owner else None
    return Table(x, label, owner)


def verify(name: str, layout: Layout, table: Table) -> tuple[str, ...]:
    """Compare a table with the published counts; return the checks passed."""
    counts = np.bincount(table.y, minlength=len(layout.per_label)).tolist()
    expected = {
        f"{sum(layout.per_label):,} samples of {name}": len(table.y) == sum(layout.per_label),
        f"{layout.features} features": table.x.shape[1] == layout.features,
        f"samples of each of {len(layout.per_label)} labels": counts == list(layout.per_label),
    }
    if table.owner is not None:
        owners = len(np.unique(table.owner))
        expected[f"{layout.owners} owners"] = owners == layout.owners
    return passed_checks(name, expected)


def split_by_label(y: Ints, rng: np.random.Generator) -> Bools:
    """Choose the tests: a fifth of each label's samples, rounded up.  True marks a test."""
    test = np.zeros(len(y), np.bool_)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: int(np.ceil(TESTS * len(rows)))]] = True
    return test


def standardised(x: Array, train: Bools) -> NDArray[np.float32]:
    """Standardise features with the training samples' mean and variance; clip them at ±5."""
    deviation = x[train].std(0)
    scaled = (x - x[train].mean(0)) / np.where(deviation > 0, deviation, 1.0)
    cut: NDArray[np.float32] = np.clip(scaled, -CUT, CUT).astype(np.float32)
    return cut


@lru_cache(maxsize=1)
def _samples(name: str, layout: Layout, source: str, cache: Path, mirror: str | None) -> Samples:
    inputs = {}
    if source == "official":
        origin = SOURCES[f"{FILES}/{layout.file}"]
        path = fetch(origin, cache, mirror)
        table = read(path, layout)
        verify(name, layout, table)
        inputs = {path.name: sha256(path)}
    else:
        table = _stand_in(name, layout)
        name = f"{name}-like"
    test = split_by_label(table.y, stream(0, "data.tests"))
    x = standardised(table.x, ~test)
    owner = table.owner
    return Samples(
        name=name,
        x=x[~test],
        y=table.y[~test],
        x_test=x[test],
        y_test=table.y[test],
        classes=len(layout.per_label),
        writer=None if owner is None else owner[~test],
        writer_test=None if owner is None else owner[test],
        unverified=bool(inputs) and origin.unverified,
        inputs=inputs,
    )


def _stand_in(name: str, layout: Layout) -> Table:
    """Generate a tenth of the samples, normally distributed around a mean for each label."""
    rng = stream(0, f"data.{name}_like")
    counts = np.maximum(np.array(layout.per_label) // SMALLER, FEWEST)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    owner = np.arange(len(y)) % layout.owners if layout.owner else None
    return Table(blobs(rng, y, layout.features), y, owner)
