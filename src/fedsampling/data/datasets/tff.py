"""Files of TensorFlow Federated (TFF), read as arrays.

A dataset has an HDF5 file for training and one for tests, with a group per client,
``examples/<client>``, and one array per feature.  A file is read client by client into the pooled
arrays, without a second copy in memory.  Clients are numbered in the order of their names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.data.samples import Samples
from fedsampling.data.sources.local_files import unpack
from fedsampling.data.sources.sources import editions

Snippets = dict[str, tuple[bytes, ...]]


@contextmanager
def unpacked_parts(dataset: str, folder: Path) -> Iterator[list[Path]]:
    """Unpack the archive in `folder` during the ``with`` block; yield its two files."""
    (source,) = editions(dataset)[""]
    stem = source.file.split(".")[0]
    with TemporaryDirectory(dir=folder) as unpacked:
        unpack(folder / source.file, Path(unpacked))
        yield [Path(unpacked, f"{stem}_{part}.h5") for part in ("train", "test")]


def read_digits(name: str, train: Path, test: Path) -> Samples:
    """Read Federated EMNIST digits, or an unbalanced training set with the same test set.

    `train`, `test`: with ``pixels`` (n, 28, 28) and ``label`` (n,) for every client. In the result,
    `x` is float32 as stored, 1 for the background; writers have one numbering in both parts.
    """
    x, y, owners = _read(train, "pixels")
    x_test, y_test, owners_test = _read(test, "pixels")
    number = {client: k for k, client in enumerate(sorted({*owners, *owners_test}))}
    writer, writer_test = (
        np.repeat([number[client] for client in sizes], [*sizes.values()])
        for sizes in (owners, owners_test)
    )
    return Samples(name, x, y, x_test, y_test, 10, writer, writer_test)


def read_cifar100(train: Path, test: Path) -> Samples:
    """Read Federated CIFAR-100 with its fine labels.

    Its 100 test clients are not among the 500 training clients, although they share names. The test
    part therefore has no writers here.
    """
    x, y, owners = _read(train, "image")
    x_test, y_test, _ = _read(test, "image")
    writer = np.repeat(np.arange(len(owners)), [*owners.values()])
    return Samples("tff_cifar100", x, y, x_test, y_test, 100, writer)


def read_snippets(path: Path) -> Snippets:
    """Read the lines of each role of TFF's Shakespeare, sorted by the role's name."""
    import h5py

    with h5py.File(path, "r") as file:
        roles = file["examples"]
        return {role: tuple(map(bytes, roles[role]["snippets"][()])) for role in sorted(roles)}


def _read(path: Path, feature: str) -> tuple[NDArray[Any], Ints, dict[str, int]]:
    """Return samples and labels, client by client, and the number of samples of each client."""
    import h5py

    with h5py.File(path, "r") as file:
        clients = file["examples"]
        sizes = {client: len(clients[client]["label"]) for client in sorted(clients)}
        first = clients[next(iter(sizes))][feature]
        total = sum(sizes.values())
        x, y = np.empty((total, *first.shape[1:]), first.dtype), np.empty(total, np.int64)
        begin = 0
        for client, size in sizes.items():
            end = begin + size
            x[begin:end], y[begin:end] = (clients[client][name][()] for name in (feature, "label"))
            begin = end
    return x, y, sizes
