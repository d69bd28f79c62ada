"""Access to the files of TensorFlow Federated's datasets, client by client, in both layouts.

Since 2021 a dataset is one SQLite database, compressed with lzma.  Its table ``examples`` has a row
per sample: the name of the split, the client's name, and a record (below).  Earlier
datasets, and chen2022optimal's subsets, are one HDF5 file per part with a group per client,
``examples/<client>``, and one array per feature.  :mod:`tff` converts both to arrays.

References
----------
TensorFlow Federated, ``tff.simulation.datasets``: ``SqlClientData`` and its loaders.
"""

import lzma
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Ints
from fedsampling.base.errors import InputError
from fedsampling.data.sources.local_files import Bounds, CorruptError, copy_unpacked, unpack
from fedsampling.data.sources.sources import editions

# Reader of TensorFlow's example records that does not need TensorFlow.
#
# A record is a protocol-buffer message: a map from feature names to lists of byte strings, float32
# or int64.  Only the parts of the encoding that this format uses are implemented; anything else
# raises an error.
#
# References: tf.train.Example of TensorFlow (``example.proto``, ``feature.proto``), and
# the encoding of protocol buffers, https://protobuf.dev/programming-guides/encoding.


Feature = list[bytes] | NDArray[np.float32] | Ints

_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5  # the wire types; the others are obsolete
_WIDTHS = {_LONG: 8, _SHORT: 4}


def parse_example(content: bytes) -> dict[str, Feature]:
    """Parse one record: values by feature name, a list of bytes, float32 or int64."""
    features: dict[str, Feature] = {}
    for field, value in _fields(content):
        for inner, entry in _fields(value) if field == 1 else ():
            if inner == 1:
                parts = dict(_fields(entry))
                features[bytes(parts.get(1, b"")).decode()] = _decoded(parts.get(2, b""))
    return features


def _decoded(content: bytes | memoryview) -> Feature:
    """Read the only list in a feature."""
    for kind, value in _fields(content):
        # An unpacked entry is a single number; a packed one contains all of them.
        fields = _fields(value, numbers=kind == 3)
        entries = [bytes(entry) for field, entry in fields if field == 1]
        if kind == 1:
            return entries
        if kind == 2:
            return np.frombuffer(b"".join(entries), "<f4")
        if kind == 3:
            return _varints(b"".join(entries))
    raise ValueError("not a record of examples: a feature has no values")


def _varints(content: bytes) -> Ints:
    """Decode all numbers at once: seven bits per byte, the lowest first."""
    data = np.frombuffer(content, np.uint8)
    last = data < 0x80
    if not len(data):
        return np.empty(0, np.int64)
    start = np.flatnonzero(np.append(True, last[:-1]))
    place = np.arange(len(data)) - np.repeat(start, np.diff(np.append(start, len(data))))
    if not last[-1] or place.max() > 9:
        raise ValueError("not a record of examples: a number does not end")
    bits = (data & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, start).view(np.int64)


def _fields(content: bytes | memoryview, numbers: bool = False) -> Iterator[tuple[int, memoryview]]:
    """Yield the fields of a message, and of `numbers` the bytes as they are: number and content."""
    view, at = memoryview(content), 0
    while at < len(view):
        key, at = _varint(view, at)
        kind = key & 7
        if kind == _VARINT and numbers:
            _, end = _varint(view, at)
        elif kind == _VARINT:
            raise ValueError("not a record of examples: a number where a message is due")
        elif kind == _BYTES:
            length, at = _varint(view, at)
            end = at + length
        elif kind in _WIDTHS:
            end = at + _WIDTHS[kind]
        else:
            raise ValueError(f"not a record of examples: wire type {kind}")
        if end > len(view):
            raise ValueError("not a record of examples: it ends too early")
        yield key >> 3, view[at:end]
        at = end


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """Decode one number; return it and the position after it."""
    value = 0
    for place, byte in enumerate(view[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("not a record of examples: a number does not end")


@dataclass(frozen=True)
class Part:
    """One part of a dataset, in a file."""

    path: Path  # an HDF5 file, or an unpacked database
    split: str = ""  # split in the database; "" for HDF5, where each part is a file
    # published file that `path` was unpacked from; by default `path` itself
    origin: Path | None = None


@dataclass(frozen=True)
class FeatureType:
    """Shape and type of a feature of one sample."""

    shape: tuple[int, ...]
    dtype: type[np.generic]


@dataclass(frozen=True)
class Examples:
    """The samples of an opened part."""

    sizes: dict[str, int]  # samples of each client, in the order of their names
    # takes a client, and returns its features: arrays of shape (n, ...)
    read: Callable[[str], Mapping[str, NDArray[Any]]]


_HDF5 = Bounds(members=10, size=4 << 30)
_SQLITE = 6 << 30  # bytes; Federated EMNIST's database has 4,708,990,976, including letters
_SPLITS = {"tff_emnist": ("digits_only_train", "digits_only_test")}  # others: "train" and "test"


@contextmanager
def unpacked_parts(dataset: str, edition: str, folder: Path) -> Iterator[list[Part]]:
    """Unpack the archive in `folder` during the ``with`` block; yield its two parts."""
    (source,) = editions(dataset)[edition]
    archive, stem = folder / source.file, source.file.split(".")[0]
    with TemporaryDirectory(dir=folder) as unpacked:
        if edition == "sqlite":
            database = Path(unpacked, f"{stem}.sqlite")
            try:
                copy_unpacked(archive, lzma.open, database, _SQLITE)
            except CorruptError as error:
                raise InputError(f"{archive}: it {error}; fetch it again") from error
            splits = _SPLITS.get(dataset, ("train", "test"))
            yield [Part(database, split, archive) for split in splits]
        else:
            unpack(archive, Path(unpacked), _HDF5)
            files = (f"{stem}_{part}.h5" for part in ("train", "test"))
            yield [Part(Path(unpacked, file), origin=archive) for file in files]


_LONGEST = 1 << 20  # bytes of one value; a CIFAR image has about 12,000


@contextmanager
def sqlite_examples(
    database: Path, split: str, kinds: Mapping[str, FeatureType]
) -> Iterator[Examples]:
    """Open one split of a database, read-only; yield features of exactly these `kinds`."""
    where = f"{database}: {split}"
    try:
        with closing(_opened(database)) as connection:
            sizes = dict(
                connection.execute(
                    "SELECT client_id, COUNT(*) FROM examples WHERE split_name = ? "
                    "GROUP BY client_id ORDER BY client_id",
                    (split,),
                )
            )
            if not sizes:
                raise ValueError(f"{where} has no examples")

            def read(client: str) -> dict[str, NDArray[Any]]:
                rows = connection.execute(
                    "SELECT serialized_example_proto FROM examples "
                    "WHERE split_name = ? AND client_id = ? ORDER BY rowid",
                    (split, client),
                )
                records = [parse_example(content) for (content,) in rows]
                return {
                    name: np.stack(
                        [_values(record, name, kind, f"{where}: {client}") for record in records]
                    )
                    for name, kind in kinds.items()
                }

            yield Examples(sizes, read)
    except sqlite3.Error as error:
        raise ValueError(f"{database}: not a database of examples ({error})") from error


def _opened(database: Path) -> sqlite3.Connection:
    # Journals, and views, triggers or functions in the file, are not used.
    uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.execute("PRAGMA trusted_schema = OFF")
    table = connection.execute("SELECT type FROM sqlite_master WHERE name = 'examples'").fetchone()
    if table != ("table",):
        connection.close()
        raise ValueError(f"{database}: has no table 'examples'")
    return connection


def _values(
    record: Mapping[str, Feature], name: str, kind: FeatureType, where: str
) -> NDArray[Any]:
    """Extract a feature of one sample from its record; bytes are stored as int64."""
    if name not in record:
        raise ValueError(f"{where} has no '{name}', but {sorted(record)}")
    feature = record[name]
    if isinstance(feature, list):
        values: NDArray[Any] = np.empty(len(feature), object)
        values[:] = feature
    else:
        values = feature
    dtype = np.dtype(kind.dtype)
    fits = values.size == int(np.prod(kind.shape)) and values.dtype.kind == dtype.kind.replace(
        "u", "i"
    )
    if fits and dtype.kind == "u":
        fits = bool((values >= 0).all() and (values <= np.iinfo(dtype).max).all())
    if not fits:
        raise ValueError(
            f"{where} has {name} {values.dtype} {values.shape}, not {dtype} {kind.shape}"
        )
    return values.reshape(kind.shape).astype(dtype, copy=False)


@contextmanager
def hdf5_examples(path: Path, kinds: Mapping[str, FeatureType]) -> Iterator[Examples]:
    """Open an HDF5 file; yield features as stored, as many as the first has samples."""
    # Imported late, since only this layout needs h5py.
    import h5py

    with h5py.File(path, "r") as file:
        if "examples" not in file:
            raise ValueError(f"{path}: has no group 'examples'")
        group = file["examples"]
        first = next(iter(kinds))
        sizes = {client: len(_feature(path, group[client], first)) for client in sorted(group)}

        def read(client: str) -> dict[str, NDArray[Any]]:
            return {name: _feature(path, group[client], name)[()] for name in kinds}

        yield Examples(sizes, read)


def _feature(path: Path, client: Any, name: str) -> Any:
    if name not in client:
        raise ValueError(f"{path}: {client.name} has no '{name}', but {sorted(client)}")
    return client[name]
