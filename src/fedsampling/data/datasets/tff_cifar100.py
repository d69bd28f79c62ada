"""CIFAR-100 over TFF's clients, with one common test set as in chen2022optimal."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.standins import COLOURED, balanced, images, tastes
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.formats import tff
from fedsampling.data.formats.tff_files import fetch_parts, unpack_edition
from fedsampling.data.partitions.natural import by_owner
from fedsampling.data.samples import Samples, gather

# Of the stand-in; the published data have 500 clients with 100 samples.
CLIENTS, PER_CLIENT, TESTS = 50, 100, 200


class TffCifar100(PublishedData, name="tff_cifar100"):
    """CIFAR-100 over TFF's clients, chen2022optimal, appendix G."""

    official: ClassVar[tuple[str, ...]] = ("tff_cifar100",)
    published: ClassVar[int | None] = 500

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Load TFF's clients, pixels from 0 to 255; `seed` has no effect."""
        samples = _samples(source, cache, mirror)
        assert samples.writer is not None
        return gather(samples, by_owner(samples.writer), None, self.importance)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        return tff.verify(tff.read_cifar100(*unpack_edition(dataset, edition, folder)))


@lru_cache(maxsize=1)
def _samples(source: str, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.cifar100_like")
        y, y_test = tastes(rng, CLIENTS, PER_CLIENT, 100), balanced(rng, TESTS, 100)
        drawn = images(rng, "cifar100-like", COLOURED, y, y_test, classes=100)
        return replace(drawn, writer=np.repeat(np.arange(CLIENTS), PER_CLIENT))
    with fetch_parts("tff_cifar100", cache, mirror) as (train, test, unverified):
        samples = tff.read_cifar100(train, test)
    tff.verify(samples)
    return replace(samples, unverified=unverified)
