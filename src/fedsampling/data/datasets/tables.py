"""Six tables of UCI and Statlog in R packages: numbers with a label, split into clients.

CRAN's packages mlbench and kernlab publish them as ``.rda`` files, without standard test sets.
Here, a fifth of each label's samples, the same for every seed, is the test set.  Features are
standardised with the training samples' mean and variance, and clipped at ±5, because some values in
Shuttle and Spam are a hundred standard deviations from the mean.

References
----------
Frey, Slate: Letter recognition using Holland-style adaptive classifiers. Machine Learning 1991.
King, Feng, Sutherland: StatLog: comparison of classification algorithms on large real-world
problems. Applied Artificial Intelligence 1995 (Satellite, Shuttle).
Noordewier, Towell, Shavlik: Training knowledge-based neural networks to recognize genes in DNA
sequences. NIPS 1990.
Hastie, Tibshirani, Friedman: The Elements of Statistical Learning. Springer 2001, section 9.1.2
(Spam).
Deterding: Speaker normalisation for automatic speech recognition. PhD thesis, Cambridge 1989
(Vowel).
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
from fedsampling.data.datasets.dataset import Dataset, PublishedData, blobs
from fedsampling.data.federated import SMALLER, FederatedDataset, Samples, passed_checks
from fedsampling.data.partitions.by_label import ByDigit
from fedsampling.data.partitions.partition import LabelPartition, Partition
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


class Dna(TableData, name="dna"):
    """Primate splice junctions of UCI, as Statlog coded them."""

    # Three binary attributes for each of 60 nucleotides.
    layout: ClassVar[Layout] = Layout("DNA", "Class", features=180, per_label=(767, 765, 1654))

    partition: LabelPartition


class Letter(TableData, name="letter"):
    """Letter recognition of UCI."""

    # Attributes of images of the capital letters in 20 distorted fonts.
    layout: ClassVar[Layout] = Layout(
        "LetterRecognition",
        "lettr",
        features=16,
        per_label=(
            789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792,
            783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734,
        ),
    )  # fmt: skip

    partition: LabelPartition


class Satellite(TableData, name="satellite"):
    """Statlog's Landsat data of UCI."""

    # Kinds of soil, from four spectral bands of 3 × 3 pixels.
    layout: ClassVar[Layout] = Layout(
        "Satellite", "classes", features=36, per_label=(1533, 703, 1358, 626, 707, 1508)
    )

    partition: LabelPartition


class Shuttle(TableData, name="shuttle"):
    """Statlog's shuttle data of UCI."""

    # States of a radiator; three of the seven labels have 50 samples or fewer.
    layout: ClassVar[Layout] = Layout(
        "Shuttle", "Class", features=9, per_label=(45586, 50, 171, 8903, 3267, 10, 13)
    )

    partition: LabelPartition


class Spam(TableData, name="spam"):
    """Spambase of UCI."""

    # Frequencies of words and characters in e-mails.
    layout: ClassVar[Layout] = Layout("spam", "type", features=57, per_label=(2788, 1813))

    partition: LabelPartition


class Vowel(TableData, name="vowel"):
    """Vowel recognition of UCI; owners are the speakers."""

    # 15 speakers, 11 vowels of British English, 6 recordings of each vowel.
    layout: ClassVar[Layout] = Layout(
        "Vowel", "Class", features=9, per_label=(90,) * 11, owner="V1", owners=15
    )
    published: ClassVar[int | None] = 15
