"""NIST's handwritten characters by writer, from the two raw archives, as LEAF renders them.

``by_class.zip`` gives each image's label, ``by_write.zip`` its writer; both contain the same
images under different names.  LEAF matches the images by a hash of their files, reduces them from
128 x 128 to 28 x 28, and groups them by writer.  This takes minutes, so :func:`convert` does it
once, and :func:`read` reads the result.

LEAF includes the first image of every writer except the first one twice (its grouping starts a
new list with the image and then appends it), which gives 817,851 samples of 814,255 images.
:func:`first_repeated` does the same.

References
----------
P. J. Grother: NIST special database 19, handprinted forms and characters database. 1995.
"""

import hashlib
import io
import string
import zipfile
from dataclasses import replace
from itertools import groupby
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, sha256_by_name
from fedsampling.data.samples import Samples
from fedsampling.data.shares import starts

CONVERSION = 1  # version of :func:`convert`; increase it if other arrays are written
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
