"""IDX files, in which MNIST and Fashion-MNIST are published; both have the same four files.

References
----------
Y. LeCun, C. Cortes, C. J. C. Burges: The MNIST database of handwritten digits, whose page describes
the format.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.files import sha256_by_name
from fedsampling.data.samples import Samples

# The third byte of an IDX file; numbers are big-endian.
_TYPES = {0x08: ">u1", 0x0C: ">i4"}


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
