"""CIFAR-10: the publisher's binary batches, or a mirror's lossless sheets.

The sheets (50 x 50 images each, WebP) contain 59,889 exact images and 111 that come from a JPEG.
They do not match any checksum of the publisher, so data read from them are `unverified`.

References
----------
A. Krizhevsky: Learning multiple layers of features from tiny images. 2009.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.files import sha256_by_name
from fedsampling.data.samples import Samples, check_counts

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5")
TEST_BATCH = "test_batch"
TRAIN_SHEETS = tuple(f"train_{i:02d}.webp" for i in range(20))
TEST_SHEETS = tuple(f"test_{i:02d}.webp" for i in range(4))
SHEET_LABELS = "labels_u8.npy"

_SHAPE = (32, 32, 3)
_PIXELS = 32 * 32 * 3
_TILES = 50  # images along each side of a sheet


def read_binary(folder: Path) -> Samples:
    """Read the six ``.bin`` files of the binary archive, unpacked in `folder`.

    In the result, `x` is uint8 of shape (50000, 32, 32, 3), red, green and blue last.
    """
    paths = [folder / f"{batch}.bin" for batch in (*BATCHES, TEST_BATCH)]
    *train, (x_test, y_test) = [_binary_batch(path) for path in paths]
    return Samples(
        name="cifar10",
        x=np.concatenate([x for x, _ in train]),
        y=np.concatenate([y for _, y in train]),
        x_test=x_test,
        y_test=y_test,
        classes=10,
        inputs=sha256_by_name(paths),
    )


def read_sheets(folder: Path) -> Samples:
    """Read the 24 sheets and their labels from `folder`; the result is `unverified`."""
    labels = np.load(folder / SHEET_LABELS, allow_pickle=False).astype(np.int64)
    x, x_test = (
        np.concatenate([_sheet(folder / name) for name in names])
        for names in (TRAIN_SHEETS, TEST_SHEETS)
    )
    return Samples(
        name="cifar10",
        x=x,
        y=labels[: len(x)],
        x_test=x_test,
        y_test=labels[len(x) :],
        classes=10,
        unverified=True,
        inputs=sha256_by_name(
            folder / name for name in (*TRAIN_SHEETS, *TEST_SHEETS, SHEET_LABELS)
        ),
    )


def verify(samples: Samples) -> tuple[str, ...]:
    """Compare shapes and samples per class with the published values; return the checks passed."""
    return check_counts(samples, _SHAPE, (5000,) * 10, (1000,) * 10)


def _binary_batch(path: Path) -> tuple[NDArray[np.uint8], Ints]:
    content = np.fromfile(path, np.uint8)
    if not len(content) or len(content) % (1 + _PIXELS):
        raise ValueError(f"{path}: {len(content):,} bytes are not records of {1 + _PIXELS:,}")
    records = content.reshape(-1, 1 + _PIXELS)
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # channel last
    return np.ascontiguousarray(pixels), records[:, 0].astype(np.int64)


def _sheet(path: Path) -> NDArray[np.uint8]:
    """Cut a sheet into its images, row by row; shape (2500, 32, 32, 3)."""
    from PIL import Image

    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    if pixels.shape != (_TILES * 32, _TILES * 32, 3):
        raise ValueError(f"{path}: {pixels.shape} is not {_TILES} x {_TILES} images")
    return pixels.reshape(_TILES, 32, _TILES, 32, 3).swapaxes(1, 2).reshape(-1, *_SHAPE)
