"""The base classes of datasets: records of settings that can load clients.

Adding a file with such a class to this folder registers the dataset.  The workflow imports all of
these files, so slow libraries must be imported inside functions.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.families import Named
from fedsampling.base.records import Part
from fedsampling.base.streams import stream
from fedsampling.data.federated import FederatedDataset, Importance, Samples
from fedsampling.data.partitions.partition import Partition


class Dataset(Named, package="fedsampling.data.datasets"):
    """The settings of a dataset."""

    # Names of the official datasets in sources.yaml; empty if the data are always generated.
    official: ClassVar[tuple[str, ...]] = ()
    # Number of clients in the published data, if the settings do not determine it.
    published: ClassVar[int | None] = None

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients; None if unknown before loading."""
        return getattr(self, "clients", None) or self.published

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

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts; return the checks passed.

        `dataset` is one of `official`; `folder` is writable and has all files of the edition.
        """
        return ("nothing compares them",)


class ConvexData(Dataset):
    """Datasets for convex models: feature vectors with scalar targets."""


class NetworkData(Dataset):
    """Datasets for networks."""


class PublishedData(NetworkData):
    """Datasets for networks with published samples."""

    importance: Importance = Field("samples", description="p_k: by training samples, or 1/n")


class Images(PublishedData):
    """Labelled samples, most of them images, that a partition distributes over clients."""

    fraction: Part = Field(
        1.0,
        description="of all images, training and test",
        exclude_if=lambda fraction: fraction == 1,  # keeps the hashes of runs that do not name it
    )
    partition: Partition

    @property
    def max_clients(self) -> int | None:
        """Upper bound on the number of clients of the partition; None if unknown."""
        return self.partition.max_clients or self.published

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Partition the images, which are the same for every seed."""
        samples = _random_fraction(self.samples(source, cache, mirror), self.fraction, seed)
        return self.partition.share_out(samples, seed, self.importance)

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all images, once for all seeds of a job."""
        raise NotImplementedError


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
