"""MNIST over clients; QMNIST provides the writers."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from fedsampling.base.streams import stream
from fedsampling.data.datasets.images import Images
from fedsampling.data.datasets.standins import digits_like
from fedsampling.data.formats import idx
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.fetch import fetch_dataset


class Mnist(Images, name="mnist"):
    """MNIST; its writers are known from QMNIST."""

    official: ClassVar[tuple[str, ...]] = ("mnist", "qmnist")
    published: ClassVar[int | None] = idx.TRAIN_WRITERS

    partition: Partition

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official if self.partition.needs_writers else ("mnist",)

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all images, with writers only if the partition needs them."""
        return _samples(source, self.partition.needs_writers, cache, mirror)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        digits = idx.read_folder("mnist", folder.parent / "mnist")
        if dataset == "mnist":
            return idx.verify(digits)
        parts = [folder / f"qmnist-{part}-labels-idx2-int.gz" for part in ("train", "test")]
        return idx.verify_writers(idx.add_writers(digits, *parts))


@lru_cache(maxsize=1)
def _samples(source: str, with_writers: bool, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.digits_like")
        drawn = digits_like(rng, train=60_000 // SMALLER, test=10_000 // SMALLER, writers=54)
        return drawn if with_writers else replace(drawn, writer=None, writer_test=None)
    samples = idx.read("mnist", *fetch_dataset("mnist", cache, mirror).values())
    idx.verify(samples)
    if with_writers:
        samples = idx.add_writers(samples, *fetch_dataset("qmnist", cache, mirror).values())
        idx.verify_writers(samples)
    return samples
