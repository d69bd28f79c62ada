"""The base classes of datasets, records of settings that can load clients.

Adding a file with such a class to this folder registers the dataset.  The workflow imports all of
these files, so slow libraries must be imported inside functions, or from ``base.lazy``.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.arrays import Bools, Ints
from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.base.files import sha256_by_name
from fedsampling.base.records import Proportion, hashed_if_set
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.by_label import ByDigit
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import Samples
from fedsampling.data.shares import Importance
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES


class Dataset(Named, package="fedsampling.data.datasets"):
    """The settings of a dataset."""

    # Names of the official datasets in sources.yaml; empty if the data are always generated.
    official: ClassVar[tuple[str, ...]] = ()
    # Number of clients in the published data, if the settings do not determine it.
    published: ClassVar[int | None] = None
    # Number of labels; None if unknown before loading.
    labels: ClassVar[int | None] = None

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if unknown before loading."""
        partition = getattr(self, "partition", None)
        if isinstance(partition, ByDigit):
            return self.labels and self.labels * partition.clients_per_label
        by_settings = partition.max_clients if partition else getattr(self, "clients", None)
        return by_settings or self.published

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load the clients of one run.

        `source`: ``official`` reads the published files, otherwise a stand-in is generated; ignored
        by datasets that the paper itself simulates. `seed` is of the partition or the generated
        data.
        """
        raise NotImplementedError


class ConvexData(Dataset):
    """Datasets for convex models: feature vectors with scalar targets."""


class NetworkData(Dataset):
    """Datasets for networks."""


class PublishedData(NetworkData):
    """Datasets for networks with published samples."""

    importance: Importance = Field("samples", description="p_k: by training samples, or 1/n")


class PooledData(PublishedData):
    """Datasets whose samples are the same for every seed."""

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Return all samples, which are read or generated once per process."""
        return _samples(type(self), source, cache, mirror)

    @classmethod
    def fetched(cls, cache: Path, mirror: str | None) -> dict[str, Path]:
        """Fetch the official files of one edition."""
        (dataset,) = cls.official
        return fetch_dataset(dataset, cache, mirror)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the official files of an edition."""
        raise NotImplementedError

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate samples like the published ones."""
        raise NotImplementedError


class Images(PooledData):
    """Labelled samples, most of them images, that a partition distributes over clients."""

    fraction: Proportion = hashed_if_set(1.0, "of all images, training and test")
    partition: Partition

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Partition the images, which are the same for every seed."""
        samples = _random_fraction(self.samples(source, cache, mirror), self.fraction, seed)
        return self.partition.share_out(samples, seed, self.importance)


@lru_cache(maxsize=4)
def _samples(dataset: type[PooledData], source: str, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        return dataset.stand_in()
    paths = dataset.fetched(cache, mirror)
    first = SOURCES[next(iter(paths))]
    samples = dataset.read(first.edition, first.path_in(cache).parent)
    return replace(
        samples,
        unverified=any(SOURCES[name].unverified for name in paths),
        inputs=samples.inputs or sha256_by_name(paths.values()),
    )


def _random_fraction(samples: Samples, fraction: float, seed: int) -> Samples:
    """Return a random fraction of the images, in the order of the files."""
    if fraction == 1:
        return samples
    if round(fraction * min(len(samples.y), len(samples.y_test))) < 1:
        raise InputError(f"fraction: {fraction} of the images leaves none; give more")
    rng = stream(seed, "data.fraction")
    train, test = (
        np.sort(rng.permutation(len(y))[: round(fraction * len(y))])
        for y in (samples.y, samples.y_test)
    )
    return chosen_rows(samples, train, test)


def chosen_rows(samples: Samples, train: NDArray[Any], test: NDArray[Any]) -> Samples:
    """Return the training and test samples that row numbers or masks choose."""
    return replace(
        samples,
        x=samples.x[train],
        y=samples.y[train],
        x_test=samples.x_test[test],
        y_test=samples.y_test[test],
        writer=None if samples.writer is None else samples.writer[train],
        writer_test=None if samples.writer_test is None else samples.writer_test[test],
    )


def with_tests(
    test: Bools, name: str, x: NDArray[Any], y: Ints, classes: int, writer: Ints | None = None
) -> Samples:
    """Return samples of which those that the mask `test`, shape (N,), marks are the tests."""
    pool = Samples(name, x, y, x, y, classes, writer, writer)
    return chosen_rows(pool, ~test, test)
