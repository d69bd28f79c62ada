"""CIFAR-10 over clients: the publisher's archive, or a mirror's lossless sheets.

The sheets (50 x 50 images each, WebP) contain 59,889 exact images and 111 that come from a JPEG.
They do not match any checksum of the publisher, so data read from them are `unverified`.

References
----------
A. Krizhevsky: Learning multiple layers of features from tiny images. 2009.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images
from fedsampling.data.partitions.partition import LabelPartition
from fedsampling.data.samples import SMALLER, Samples
from fedsampling.data.sources.local_files import unpack
from fedsampling.data.stand_ins import COLOURED, balanced, images


class Cifar10(Images, name="cifar10", title="CIFAR-10"):
    """CIFAR-10."""

    official: ClassVar[tuple[str, ...]] = ("cifar10",)
    labels: ClassVar[int | None] = 10

    partition: LabelPartition

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read the publisher's archive, or a mirror's sheets."""
        if edition == "sheets":
            return read_sheets(folder)
        with TemporaryDirectory(dir=folder) as unpacked:
            unpack(folder / "cifar-10-binary.tar.gz", Path(unpacked))
            return read_binary(Path(unpacked, "cifar-10-batches-bin"))

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the images."""
        rng = stream(0, "data.cifar_like")
        y, y_test = (balanced(rng, size // SMALLER, 10) for size in (50_000, 10_000))
        return images(rng, "cifar-like", COLOURED, y, y_test, classes=10)


TRAIN_SHEETS = tuple(f"train_{i:02d}.webp" for i in range(20))
TEST_SHEETS = tuple(f"test_{i:02d}.webp" for i in range(4))
SHEET_LABELS = "labels_u8.npy"

_SHAPE = (32, 32, 3)
_PIXELS = 32 * 32 * 3
_TILES = 50  # images along each side of a sheet


def read_binary(folder: Path) -> Samples:
    """Read the six ``.bin`` files of the binary archive, unpacked in `folder`."""
    batches = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
    *train, (x_test, y_test) = [_binary_batch(folder / f"{batch}.bin") for batch in batches]
    x, y = (np.concatenate(arrays) for arrays in zip(*train, strict=True))
    return Samples("cifar10", x, y, x_test, y_test, classes=10)


def read_sheets(folder: Path) -> Samples:
    """Read the 24 sheets and their labels from `folder`."""
    labels = np.load(folder / SHEET_LABELS, allow_pickle=False).astype(np.int64)
    x, x_test = (
        np.concatenate([_sheet(folder / name) for name in names])
        for names in (TRAIN_SHEETS, TEST_SHEETS)
    )
    names = (*TRAIN_SHEETS, *TEST_SHEETS, SHEET_LABELS)
    inputs = sha256_by_name(folder / name for name in names)
    y, y_test = np.split(labels, [len(x)])
    return Samples("cifar10", x, y, x_test, y_test, classes=10, inputs=inputs)


def _binary_batch(path: Path) -> tuple[NDArray[np.uint8], Ints]:
    records = np.fromfile(path, np.uint8).reshape(-1, 1 + _PIXELS)
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # channel last
    return np.ascontiguousarray(pixels), records[:, 0].astype(np.int64)


def _sheet(path: Path) -> NDArray[np.uint8]:
    """Cut a sheet into its images, row by row; shape (2500, 32, 32, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    return pixels.reshape(_TILES, 32, _TILES, 32, 3).swapaxes(1, 2).reshape(-1, *_SHAPE)
