"""Tables of UCI and Statlog: numbers with a label, split into clients.

They are in CRAN's packages mlbench and kernlab, as ``.rda`` files.

None has a standard test set for clients.  Here, a fifth of each label's samples, the same for every
seed, is the test set.  Features are standardised with the training samples' mean and variance, and
clipped at ±5, because some values in Shuttle and Spam are a hundred standard deviations from the
mean.

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
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PooledData, with_tests
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.by_label import ByDigit
from fedsampling.data.partitions.partition import LabelPartition, Partition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.fetch import fetch
from fedsampling.data.sources.sources import SOURCES
from fedsampling.data.stand_ins import blobs

FILES = "r_packages"  # in sources.yaml
TESTS = 0.2  # share of each label's samples
CUT = 5.0  # standard deviations at which features are clipped
FEWEST = 10  # samples of a label in a stand-in


@dataclass(frozen=True)
class FileLayout:
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
    """The rows of a file: features or signals, labels from zero, and owners."""

    x: NDArray[Any]
    y: Ints
    owner: Ints | None = None


class TableData(PooledData):
    """A table that a partition distributes over clients."""

    official: ClassVar[tuple[str, ...]] = (FILES,)
    layout: ClassVar[FileLayout]

    partition: Partition

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if the settings do not determine it."""
        if isinstance(self.partition, ByDigit):
            return self.partition.clients_per_label * len(self.layout.per_label)
        return super().max_clients

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Partition the samples, which are the same for every seed."""
        samples = self.samples(source, cache, mirror)
        return self.partition.share_out(samples, seed, self.importance)

    @classmethod
    def fetched(cls, cache: Path, mirror: str | None) -> dict[str, Path]:
        """Fetch the table's file."""
        source = SOURCES[f"{FILES}/{cls.layout.file}"]
        return {source.name: fetch(source, cache, mirror)}

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the table's file."""
        table = read(folder / cls.layout.file, cls.layout)
        return as_samples(cls.named, table, len(cls.layout.per_label))

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the samples, normally distributed around a mean for each label."""
        layout, rng = cls.layout, stream(0, f"data.{cls.named}_like")
        counts = np.maximum(np.array(layout.per_label) // SMALLER, FEWEST)
        y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        owner = np.arange(len(y)) % layout.owners if layout.owner else None
        table = Table(blobs(rng, y, layout.features), y, owner)
        return as_samples(f"{cls.named}-like", table, len(counts))


def read(path: Path, layout: FileLayout) -> Table:
    """Read a file of R; labels and owners are numbered in the order of their levels."""
    import rdata  # slow to import

    frame = rdata.read_rda(path, default_encoding="ascii")[layout.object]
    special = [name for name in (layout.label, layout.owner) if name]
    x = frame.drop(columns=special).astype(np.float64).to_numpy()
    label = frame[layout.label].cat.codes.to_numpy(np.int64)
    owner = frame[layout.owner].cat.codes.to_numpy(np.int64) if layout.owner else None
    return Table(x, label, owner)


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


def as_samples(name: str, table: Table, classes: int, by_owner: bool = False) -> Samples:
    """Separate a fifth of the samples of each label, or of each owner and label."""
    strata = table.y if table.owner is None or not by_owner else classes * table.owner + table.y
    test = split_by_label(strata, stream(0, "data.tests"))
    return with_tests(test, name, standardised(table.x, ~test), table.y, classes, table.owner)


class LabelledData(TableData):
    """A table whose samples have no owners."""

    partition: LabelPartition


class Dna(LabelledData, name="dna", title="DNA splice junctions"):
    """Primate splice junctions of UCI, as Statlog coded them."""

    # Three binary attributes for each of 60 nucleotides.
    layout: ClassVar[FileLayout] = FileLayout(
        "DNA", "Class", features=180, per_label=(767, 765, 1654)
    )


class Letter(LabelledData, name="letter", title="Letter recognition"):
    """Letter recognition of UCI."""

    # Attributes of images of the capital letters in 20 distorted fonts.
    layout: ClassVar[FileLayout] = FileLayout(
        "LetterRecognition",
        "lettr",
        features=16,
        per_label=(
            789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792,
            783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734,
        ),
    )  # fmt: skip


class Satellite(LabelledData, name="satellite", title="Satellite images"):
    """Statlog's Landsat data of UCI."""

    # Kinds of soil, from four spectral bands of 3 × 3 pixels.
    layout: ClassVar[FileLayout] = FileLayout(
        "Satellite", "classes", features=36, per_label=(1533, 703, 1358, 626, 707, 1508)
    )


class Shuttle(LabelledData, name="shuttle", title="Space shuttle"):
    """Statlog's shuttle data of UCI."""

    # States of a radiator; three of the seven labels have 50 samples or fewer.
    layout: ClassVar[FileLayout] = FileLayout(
        "Shuttle", "Class", features=9, per_label=(45586, 50, 171, 8903, 3267, 10, 13)
    )


class Spam(LabelledData, name="spam", title="Spam e-mails"):
    """Spambase of UCI."""

    # Frequencies of words and characters in e-mails.
    layout: ClassVar[FileLayout] = FileLayout("spam", "type", features=57, per_label=(2788, 1813))


class Vowel(TableData, name="vowel", title="Vowels"):
    """Vowel recognition of UCI; owners are the speakers."""

    # 15 speakers, 11 vowels of British English, 6 recordings of each vowel.
    layout: ClassVar[FileLayout] = FileLayout(
        "Vowel", "Class", features=9, per_label=(90,) * 11, owner="V1", owners=15
    )
    published: ClassVar[int | None] = 15
