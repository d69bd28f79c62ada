"""MNIST over clients, and its writers.

QMNIST traced MNIST's images back to NIST's Special Database 19.  Its two label files have eight
numbers per image, of which the label and the writer are used here.

References
----------
Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits.
C. Yadav, L. Bottou: Cold case: the lost MNIST digits. NeurIPS 2019. arXiv:1905.10498.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images
from fedsampling.data.datasets.idx import read, read_idx
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.stand_ins import digits_like

TRAIN_WRITERS = 539
_LABEL, _WRITER = 0, 2  # columns: label, series, writer, index within writer, class code, ...


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
    labels: ClassVar[int | None] = 10

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
