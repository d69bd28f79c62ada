"""CIFAR-10 over clients: the publisher's archive, or a mirror's lossless sheets."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from fedsampling.base.files import sha256
from fedsampling.base.streams import stream
from fedsampling.data.datasets.images import Images
from fedsampling.data.datasets.standins import COLOURED, balanced, images
from fedsampling.data.formats import cifar
from fedsampling.data.partitions.partition import LabelPartition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.archives import Bounds, unpack
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

_ARCHIVE = Bounds(members=20, size=200 << 20)


class Cifar10(Images, name="cifar10"):
    """CIFAR-10."""

    official: ClassVar[tuple[str, ...]] = ("cifar10",)

    partition: LabelPartition

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all images; images from a mirror's sheets are `unverified`."""
        return _samples(source, cache, mirror)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        if edition == "sheets":
            return cifar.verify(cifar.read_sheets(folder))
        return cifar.verify(_unpacked(folder / "cifar-10-binary.tar.gz", folder))


@lru_cache(maxsize=1)
def _samples(source: str, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.cifar_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (50_000, 10_000))
        return images(rng, "cifar-like", COLOURED, y, y_test, classes=10)
    paths = fetch_dataset("cifar10", cache, mirror)
    first = SOURCES[next(iter(paths))]
    path = paths[first.name]
    if first.edition == "sheets":
        samples = cifar.read_sheets(path.parent)
    else:
        with TemporaryDirectory(dir=cache) as folder:
            samples = _unpacked(path, Path(folder))
        samples = replace(samples, inputs={path.name: sha256(path)})
    cifar.verify(samples)
    return samples


def _unpacked(archive: Path, folder: Path) -> Samples:
    unpack(archive, folder, _ARCHIVE)
    return cifar.read_binary(folder / "cifar-10-batches-bin")
