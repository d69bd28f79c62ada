"""A public part of FEMNIST: the images of 255 complete writers, as LEAF renders them.

In this part, writers with many images are missing (mean 165 images; all of FEMNIST: 227), and
70 % of the images are digits.
"""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images, chosen_rows, with_tests
from fedsampling.data.datasets.nist import CLASSES
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.stand_ins import digits_like

PART, PART_FILE = "femnist_leaf", "femnist_255_writers.npz"
PART_WRITERS, PART_IMAGES, PART_TESTS = 255, 42_002, 4_318


class Femnist255(Images, name="femnist_255", title="FEMNIST, 255 writers"):
    """FEMNIST's images of 255 writers."""

    official: ClassVar[tuple[str, ...]] = (PART,)
    published: ClassVar[int | None] = PART_WRITERS

    partition: Partition
    digits: bool = Field(False, description="only the digits, as in Federated EMNIST's digits")

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate the images; LEAF's tests, a tenth of each writer's images, are tests."""
        samples = super().samples(source, cache, mirror)
        if not self.digits:
            return samples
        digits = chosen_rows(samples, samples.y < 10, samples.y_test < 10)
        return replace(digits, classes=10)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the file; pixels stay bytes, with 255 for the background."""
        with np.load(folder / PART_FILE, allow_pickle=False) as file:
            x, y, writer = file["x"], file["y"].astype(np.int64), file["writer"].astype(np.int64)
            test = file["is_test"]
        return with_tests(test, "femnist_255", x, y, len(CLASSES), writer)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images by a tenth of the writers."""
        rng = stream(0, "data.femnist_255_like")
        train, test = (PART_IMAGES - PART_TESTS) // SMALLER, PART_TESTS // SMALLER
        drawn = digits_like(rng, train=train, test=test, writers=PART_WRITERS // SMALLER)
        inverted = replace(drawn, x=255 - drawn.x, x_test=255 - drawn.x_test)
        return replace(inverted, name="femnist_255-like", classes=len(CLASSES))
