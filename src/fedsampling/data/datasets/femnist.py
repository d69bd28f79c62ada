"""LEAF's FEMNIST as a federated dataset: each writer is a client with training and test images.

Steps: NIST's two archives -> :func:`convert`, once -> :func:`read`, or a stand-in -> LEAF's steps
in LEAF's order (:mod:`fedsampling.data.partitions.partition`): draw writers, drop those with few
images, split each writer's images at random.

References
----------
S. Caldas et al.: LEAF: a benchmark for federated settings. arXiv:1812.01097.
P. J. Grother: NIST special database 19, handprinted forms and characters database. 1995.
"""

import hashlib
import io
import string
import zipfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, sha256_by_name
from fedsampling.base.records import Part, Positive, Share
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images, PooledData, chosen_rows, with_tests
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.partitions.partition import (
    Partition,
    at_least,
    by_owner,
    sample_clients,
    split,
)
from fedsampling.data.samples import SMALLER, Samples, first_clients, gather
from fedsampling.data.shares import starts
from fedsampling.data.sources.local_files import converted
from fedsampling.data.stand_ins import GRAY, digits_like, images, unequal

WRITERS, IMAGES = 100, 20_000  # of the stand-in; NIST has 3,597 and 814,255


class Femnist(PooledData, name="femnist", title="FEMNIST (LEAF)"):
    """FEMNIST by writer, processed as by LEAF."""

    official: ClassVar[tuple[str, ...]] = ("nist_sd19",)
    published: ClassVar[int | None] = 3_597

    clients: Positive | None = Field(None, description="number of writers to use; null: all")
    fraction: Part = Field(1.0, description="fraction of all images")
    min_samples: Positive = Field(1, description="minimum images of a writer, training and test")
    train: Share = Field(0.9, description="share of a writer's images for training")
    repeat_first: bool = Field(
        False, description="repeat the first image of each writer but the first, as LEAF does"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each sampled writer a client; pixels are bytes, 255 for the background.

        LEAF seeds the draws of writers and test images with the time of day, so the papers' clients
        cannot be reproduced; here `seed` determines them. With `repeat_first`, one of two identical
        images may be in the test set.
        """
        samples = self.samples(source, cache, mirror)
        if self.repeat_first:
            samples = first_repeated(samples)
        assert samples.writer is not None
        writers = by_owner(samples.writer)
        drawn = sample_clients(writers, self.fraction, stream(seed, "data.writers"))
        large_enough = at_least(drawn, self.min_samples)
        train, test = (
            first_clients(shares, self.clients)
            for shares in split(large_enough, self.train, rng=stream(seed, "data.writers.split"))
        )
        # Rows of one pool become tests and training samples.
        pool = replace(samples, x_test=samples.x, y_test=samples.y, writer_test=samples.writer)
        return gather(pool, train, test, self.importance)

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read NIST's archives, which takes minutes, or what an earlier call has kept of them."""
        archives = folder / "by_class.zip", folder / "by_write.zip"
        inputs = sha256_by_name(archives)
        digest = "-".join(file_digest[:8] for file_digest in inputs.values())
        path = folder / f"femnist-{digest}.npz"
        samples = read(converted(path, lambda target: convert(*archives, target)))
        return replace(samples, inputs=inputs)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate images, all for training: `load` splits those of each writer."""
        rng = stream(0, "data.femnist_like")
        y, writer = rng.integers(62, size=IMAGES), unequal(rng, IMAGES, WRITERS)
        drawn = images(
            rng, "femnist-like", GRAY, y, y[:0], classes=62, writer=writer, writer_test=writer[:0]
        )
        return replace(drawn, x=255 - drawn.x, x_test=255 - drawn.x_test)


# LEAF's FEMNIST: NIST's handwritten characters by writer, from the two raw archives.
#
# ``by_class.zip`` gives each image's label, ``by_write.zip`` its writer; both contain the same
# images under different names.  LEAF matches the images by a hash of their files, reduces them from
# 128 x 128 to 28 x 28, and groups them by writer.  This takes minutes, so :func:`convert` does it
# once, and :func:`read` reads the result.
#
# LEAF includes the first image of every writer except the first one twice (its grouping starts a
# new list with the image and then appends it), which gives 817,851 samples of 814,255 images.
# :func:`first_repeated` does the same.


CLASSES = string.digits + string.ascii_uppercase + string.ascii_lowercase


def convert(by_class: Path, by_write: Path, target: Path) -> None:
    """Match, reduce and group all images, and write them as one ``.npz`` of arrays.

    The arrays are ``x`` uint8 (N, 28, 28), ``y`` uint8 (N,), ``start`` int64 (writers + 1,) and
    ``writers`` (their names).  Writers and their images are sorted by path; LEAF's order is that
    of the file system, which is undefined.

    `by_class`: zip with ``by_class/<hexadecimal ASCII code>/hsf_<part>/<image>.png``. `by_write`:
    zip with ``by_write/<part>/<writer>/<kind>/<image>.png``.
    """
    labels = _labels(by_class)
    with zipfile.ZipFile(by_write) as archive:
        names = _images(archive, "by_write", depth=5)
        x, y = np.empty((len(names), 28, 28), np.uint8), np.empty(len(names), np.uint8)
        for row, name in enumerate(names):
            content = archive.read(name)
            label = labels.get(hashlib.sha256(content).digest())
            if label is None:
                raise InputError(f"{by_write}: {name} is not in {by_class.name}; fetch both again")
            x[row], y[row] = shrink(content), label
    by_writer = groupby(PurePosixPath(name).parts[2] for name in names)
    writers, sizes = zip(*((writer, len(list(group))) for writer, group in by_writer), strict=True)
    with replacing(target) as temporary:
        np.savez(temporary, x=x, y=y, start=starts(sizes), writers=np.array(writers))


def read(path: Path) -> Samples:
    """Read the result of :func:`convert` as training data; 255 is the background."""
    with np.load(path, allow_pickle=False) as arrays:
        x, y, start = arrays["x"], arrays["y"].astype(np.int64), arrays["start"]
    writer = np.repeat(np.arange(len(start) - 1), np.diff(start))
    arrays = x, y, x[:0], y[:0], len(CLASSES), writer, writer[:0]
    return Samples("femnist", *arrays, inputs=sha256_by_name([path]))


def first_repeated(samples: Samples) -> Samples:
    """Repeat the first image of every writer except the first one, as LEAF does."""
    assert samples.writer is not None
    first = np.flatnonzero(np.diff(samples.writer)) + 1  # samples are sorted by writer
    row = np.insert(np.arange(len(samples.y)), first, first)
    return replace(samples, x=samples.x[row], y=samples.y[row], writer=samples.writer[row])


def shrink(content: bytes) -> NDArray[np.uint8]:
    """Decode an image of 128 x 128 and reduce it to 28 x 28 by Lanczos resampling.

    Pillow's ``thumbnail`` did the same when LEAF was written.  Since version 7 it first averages
    2 x 2 pixels, which is faster and gives slightly different values.
    """
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
        gray = image.convert("L")
    return np.asarray(gray.resize((28, 28), Image.Resampling.LANCZOS))


def _labels(by_class: Path) -> dict[bytes, int]:
    """Return each image's label by the hash of its file; of equal files, the first counts."""
    labels: dict[bytes, int] = {}
    with zipfile.ZipFile(by_class) as archive:
        for name in _images(archive, "by_class", depth=4):
            code, part = PurePosixPath(name).parts[1:3]
            # The folders train_<code> repeat images of the folders hsf_<number>.
            if part.startswith("hsf_"):
                digest = hashlib.sha256(archive.read(name)).digest()
                labels.setdefault(digest, CLASSES.index(chr(int(code, 16))))
    return labels


def _images(archive: zipfile.ZipFile, top: str, depth: int) -> list[str]:
    """Return the sorted names of the images at one depth below `top`."""
    names = [name for name in archive.namelist() if name.endswith(".png")]
    parts = {name: PurePosixPath(name).parts for name in names}
    return sorted(name for name in names if parts[name][0] == top and len(parts[name]) == depth)


# A public part of FEMNIST: the images of 255 complete writers, as LEAF renders them.
#
# In this part, writers with many images are missing (mean 165 images; all of FEMNIST: 227), and
# 70 % of the images are digits.


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
