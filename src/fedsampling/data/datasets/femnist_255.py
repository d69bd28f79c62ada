"""A public part of LEAF's FEMNIST: the images of 255 complete writers, as LEAF renders them.

The whole of FEMNIST is :mod:`fedsampling.data.datasets.femnist`.  In this part, writers with many
images are missing (mean 165 images; all of FEMNIST: 227), and 70 % of the images are digits.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.files import sha256
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images, chosen_rows, digits_like
from fedsampling.data.federated import SMALLER, Samples, passed_checks
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

FILES, FILE = "femnist_leaf", "femnist_255_writers.npz"
WRITERS, IMAGES, TESTS, DIGITS = 255, 42_002, 4_318, 29_577
CLASSES = 62  # digits, then capital and small letters


class Femnist255(Images, name="femnist_255"):
    """FEMNIST's images by 255 of its writers."""

    official: ClassVar[tuple[str, ...]] = (FILES,)
    published: ClassVar[int | None] = WRITERS

    partition: Partition
    digits: bool = Field(False, description="only the digits, as in Federated EMNIST's digits")

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate the images; LEAF's tests, a tenth of each writer's images, are tests."""
        samples = _samples(source, cache, mirror)
        if not self.digits:
            return samples
        digits = chosen_rows(samples, samples.y < 10, samples.y_test < 10)
        return replace(digits, classes=10)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare the file with the known shapes and counts."""
        return _verify(read(folder / FILE))


def read(path: Path) -> Samples:
    """Read the file; pixels stay bytes, with 255 for the background."""
    with np.load(path, allow_pickle=False) as file:
        test = file["is_test"]
        y, writer = file["y"].astype(np.int64), file["writer"].astype(np.int64)
        return Samples(
            name="femnist_255",
            x=file["x"][~test],
            y=y[~test],
            x_test=file["x"][test],
            y_test=y[test],
            classes=CLASSES,
            writer=writer[~test],
            writer_test=writer[test],
            unverified=SOURCES[f"{FILES}/{FILE}"].unverified,
            inputs={path.name: sha256(path)},
        )


def _verify(samples: Samples) -> tuple[str, ...]:
    labels = np.concatenate([samples.y, samples.y_test])
    assert samples.writer is not None
    return passed_checks(
        "femnist_255",
        {
            "images of 28 by 28 pixels": samples.x.shape[1:] == (28, 28),
            f"{IMAGES:,} images": len(labels) == IMAGES,
            f"{TESTS:,} of them tests": len(samples.y_test) == TESTS,
            f"{DIGITS:,} digits": int((labels < 10).sum()) == DIGITS,
            f"{CLASSES} classes": len(np.unique(labels)) == CLASSES,
            f"{WRITERS} writers": len(np.unique(samples.writer)) == WRITERS,
        },
    )


@lru_cache(maxsize=1)
def _samples(source: str, cache: Path, mirror: str | None) -> Samples:
    if source != "official":
        rng = stream(0, "data.femnist_255_like")
        train, test = (IMAGES - TESTS) // SMALLER, TESTS // SMALLER
        drawn = digits_like(rng, train=train, test=test, writers=WRITERS // SMALLER)
        inverted = replace(drawn, x=255 - drawn.x, x_test=255 - drawn.x_test)
        return replace(inverted, name="femnist_255-like", classes=CLASSES)
    (path,) = fetch_dataset(FILES, cache, mirror).values()
    samples = read(path)
    _verify(samples)
    return samples
