"""MNIST over clients; QMNIST provides the writers."""

import gzip
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images
from fedsampling.data.partitions.partition import LabelPartition, Partition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.stand_ins import GRAY, balanced, digits_like, images

# MNIST and FashionMNIST from the publishers' IDX files, and the writers of MNIST.
#
# Both datasets have the same four files, so one reader serves them.  QMNIST traced MNIST's images
# back to NIST's Special Database 19.  Its two label files have eight numbers per image, of which
# the label and the writer are used here.
#
# References: Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten
# digits (the IDX format is described on its page). H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST.
# arXiv:1708.07747. C. Yadav, L. Bottou: Cold case: the lost MNIST digits. NeurIPS 2019.
# arXiv:1905.10498.


# The third byte of an IDX file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x0C: ">i4"}

TRAIN_WRITERS = 539

_LABEL, _WRITER = 0, 2  # columns: label, series, writer, index within writer, class code, ...


def read(name: str, folder: Path) -> Samples:
    """Read the four files: bytes, 0 for the background, and labels."""
    parts = [(part, kind) for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    paths = [folder / f"{part}-{kind}-ubyte.gz" for part, kind in parts]
    x, y, x_test, y_test = map(read_idx, paths)
    y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    return Samples(name, x, y, x_test, y_test, classes=10, inputs=sha256_by_name(paths))


def read_idx(path: Path) -> NDArray[Any]:
    """Read a gzipped IDX file: two zero bytes, type, rank, sizes as big-endian int32, numbers."""
    content = gzip.decompress(path.read_bytes())
    rank = content[3]
    values = np.frombuffer(content, _TYPES[content[2]], offset=4 + 4 * rank)
    shape = np.frombuffer(content, ">u4", rank, offset=4)
    return values.reshape(shape).astype(values.dtype.newbyteorder("="))


def add_writers(mnist: Samples, train: Path, test: Path) -> Samples:
    """Return MNIST with its writers, numbered as by NIST.

    `train` and `test` are QMNIST's label files; of its longer test set, the first 10,000 are
    MNIST's.
    """
    return replace(
        mnist,
        name="mnist_by_writer",
        writer=_writers(train, mnist.y),
        writer_test=_writers(test, mnist.y_test),
        inputs={**mnist.inputs, **sha256_by_name([train, test])},
    )


def _writers(path: Path, y: Ints) -> Ints:
    table = read_idx(path)
    if not np.array_equal(table[: len(y), _LABEL], y):
        raise ValueError(f"{path}: its labels are not those of MNIST")
    return table[: len(y), _WRITER].astype(np.int64)


class Mnist(Images, name="mnist", title="MNIST"):
    """MNIST; its writers are known from QMNIST."""

    official: ClassVar[tuple[str, ...]] = ("mnist", "qmnist")
    published: ClassVar[int | None] = TRAIN_WRITERS

    partition: Partition

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official if self.partition.needs_writers else ("mnist",)

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all images, with writers only if the partition needs them."""
        return _samples(source, self.partition.needs_writers, cache, mirror)


@lru_cache(maxsize=1)
def _samples(source: str, with_writers: bool, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.digits_like")
        drawn = digits_like(rng, train=60_000 // SMALLER, test=10_000 // SMALLER, writers=54)
        return drawn if with_writers else replace(drawn, writer=None, writer_test=None)
    fetch_dataset("mnist", cache, mirror)
    samples = read("mnist", cache / "mnist")
    if with_writers:
        return add_writers(samples, *fetch_dataset("qmnist", cache, mirror).values())
    return samples


# FashionMNIST over clients.


class FashionMnist(Images, name="fashion_mnist", title="Fashion-MNIST"):
    """FashionMNIST."""

    official: ClassVar[tuple[str, ...]] = ("fashion_mnist",)

    partition: LabelPartition

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the publisher's four files."""
        return read("fashion_mnist", folder)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the images."""
        rng = stream(0, "data.fashion_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (60_000, 10_000))
        return images(rng, "fashion-like", GRAY, y, y_test, classes=10)
