"""MNIST over clients; QMNIST provides the writers."""

import gzip
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import GRAY, Images, balanced, digits_like, images
from fedsampling.data.federated import SMALLER, Samples, check_counts, passed_checks
from fedsampling.data.partitions.partition import LabelPartition, Partition
from fedsampling.data.sources.fetch import fetch_dataset

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


# Samples per class as published, training and test.
COUNTS = {
    "mnist": (
        (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    ),
    "fashion_mnist": ((6000,) * 10, (1000,) * 10),
}

# The third byte of an IDX file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

TRAIN_WRITERS, TEST_WRITERS = 539, 297

_LABEL, _WRITER = 0, 2  # columns: label, series, writer, index within writer, class code, ...


def read(name: str, folder: Path) -> Samples:
    """Read the four files, gzipped or plain: bytes, 0 for the background, and labels."""
    parts = [(part, kind) for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    paths = [folder / f"{part}-{kind}-ubyte.gz" for part, kind in parts]
    x, y, x_test, y_test = map(read_idx, paths)
    y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    return Samples(name, x, y, x_test, y_test, classes=10, inputs=sha256_by_name(paths))


def verify(samples: Samples) -> tuple[str, ...]:
    """Compare shapes and samples per class with the published values; return the checks passed."""
    return check_counts(samples, (28, 28), *COUNTS[samples.name])


def read_idx(path: Path) -> NDArray[Any]:
    """Read an IDX file of any type and rank, gzipped or plain; see :func:`parse_idx`."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    try:
        return parse_idx(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_idx(content: bytes) -> NDArray[Any]:
    """Parse the IDX format: two zero bytes, type, rank, sizes as big-endian int32, numbers."""
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        raise ValueError(f"not an IDX file: it begins with {content[:4].hex() or 'nothing'}")
    dtype, rank = np.dtype(_TYPES[content[2]]), content[3]
    begin = 4 + 4 * rank
    if len(content) < begin:
        raise ValueError(f"not an IDX file: it ends within the sizes of its {rank} dimensions")
    shape = tuple(np.frombuffer(content, ">u4", rank, 4).tolist())
    values = np.frombuffer(content, np.uint8, offset=begin)
    expected = math.prod(shape) * dtype.itemsize
    if len(values) != expected:
        raise ValueError(f"{len(values):,} bytes of numbers, but shape {shape} needs {expected:,}")
    return values.view(dtype).reshape(shape).astype(dtype.newbyteorder("="))


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


def verify_writers(samples: Samples) -> tuple[str, ...]:
    """Compare the numbers of writers with the known numbers; return the checks passed."""
    assert samples.writer is not None
    assert samples.writer_test is not None
    train, test = set(samples.writer.tolist()), set(samples.writer_test.tolist())
    findings = {
        f"{TRAIN_WRITERS} writers of the training images": len(train) == TRAIN_WRITERS,
        f"{TEST_WRITERS} writers of the test images": len(test) == TEST_WRITERS,
        "different writers in training and test": not train & test,
    }
    return passed_checks(samples.name, findings)


def _writers(path: Path, y: Ints) -> Ints:
    table = read_idx(path)
    if table.ndim != 2 or table.shape[1] != 8 or len(table) < len(y):
        raise ValueError(f"{path}: shape {table.shape} is not ({len(y)} or more, 8)")
    if not np.array_equal(table[: len(y), _LABEL], y):
        raise ValueError(f"{path}: its labels are not those of MNIST")
    return table[: len(y), _WRITER].astype(np.int64)


class Mnist(Images, name="mnist"):
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

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        digits = read("mnist", folder.parent / "mnist")
        if dataset == "mnist":
            return verify(digits)
        parts = [folder / f"qmnist-{part}-labels-idx2-int.gz" for part in ("train", "test")]
        return verify_writers(add_writers(digits, *parts))


@lru_cache(maxsize=1)
def _samples(source: str, with_writers: bool, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.digits_like")
        drawn = digits_like(rng, train=60_000 // SMALLER, test=10_000 // SMALLER, writers=54)
        return drawn if with_writers else replace(drawn, writer=None, writer_test=None)
    fetch_dataset("mnist", cache, mirror)
    samples = read("mnist", cache / "mnist")
    verify(samples)
    if with_writers:
        samples = add_writers(samples, *fetch_dataset("qmnist", cache, mirror).values())
        verify_writers(samples)
    return samples


# FashionMNIST over clients.


class FashionMnist(Images, name="fashion_mnist"):
    """FashionMNIST."""

    official: ClassVar[tuple[str, ...]] = ("fashion_mnist",)

    partition: LabelPartition

    @classmethod
    def read(cls, edition: str, folder: Path) -> tuple[Samples, tuple[str, ...]]:
        """Read the publisher's four files."""
        samples = read("fashion_mnist", folder)
        return samples, verify(samples)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the images."""
        rng = stream(0, "data.fashion_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (60_000, 10_000))
        return images(rng, "fashion-like", GRAY, y, y_test, classes=10)
