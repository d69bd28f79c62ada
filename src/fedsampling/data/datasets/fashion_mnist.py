"""FashionMNIST over clients."""

from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from fedsampling.base.streams import stream
from fedsampling.data.datasets.images import Images
from fedsampling.data.datasets.standins import GRAY, balanced, images
from fedsampling.data.formats import idx
from fedsampling.data.partitions.partition import LabelPartition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.fetch import fetch_dataset


class FashionMnist(Images, name="fashion_mnist"):
    """FashionMNIST."""

    official: ClassVar[tuple[str, ...]] = ("fashion_mnist",)

    partition: LabelPartition

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all images."""
        return _samples(source, cache, mirror)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        return idx.verify(idx.read_folder(dataset, folder))


@lru_cache(maxsize=1)
def _samples(source: str, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.fashion_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (60_000, 10_000))
        return images(rng, "fashion-like", GRAY, y, y_test, classes=10)
    samples = idx.read("fashion_mnist", *fetch_dataset("fashion_mnist", cache, mirror).values())
    idx.verify(samples)
    return samples
