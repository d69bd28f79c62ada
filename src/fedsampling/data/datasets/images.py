"""Common base of MNIST, FashionMNIST and CIFAR-10: all or some images, split by a partition."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.records import Part
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import Samples


class Images(PublishedData):
    """Labelled images that a partition distributes over clients."""

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
    return replace(
        samples,
        x=samples.x[train],
        y=samples.y[train],
        x_test=samples.x_test[test],
        y_test=samples.y_test[test],
        writer=None if samples.writer is None else samples.writer[train],
        writer_test=None if samples.writer_test is None else samples.writer_test[test],
    )
