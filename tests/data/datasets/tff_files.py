"""Small files of the layouts in which TensorFlow Federated serves its datasets."""

import lzma
import sqlite3
import tarfile
from dataclasses import replace

import numpy as np

from fedsampling.data.sources.sources import SOURCES


def varint(value):
    """A number as protocol buffers write it: seven bits a byte, the low ones first."""
    value &= (1 << 64) - 1
    result = b""
    while value > 0x7F:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def example(features):
    """A record with one feature for each entry, its numbers packed."""
    entries = b""
    for name, values in features.items():
        if isinstance(values, list):
            kind = message(1, b"".join(message(1, value) for value in values))
        elif values.dtype.kind == "f":
            kind = message(2, message(1, values.astype("<f4").tobytes()))
        else:
            kind = message(3, message(1, b"".join(varint(int(value)) for value in values.ravel())))
        entries += message(1, message(1, name.encode()) + message(2, kind))
    return message(1, entries)


def database(path, splits):
    """Write a database; clients of different splits lie between each other."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE examples (split_name TEXT NOT NULL, client_id TEXT NOT NULL,"
        " serialized_example_proto BLOB NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE client_metadata (client_id TEXT NOT NULL, split_name TEXT NOT NULL,"
        " num_examples INTEGER NOT NULL)"
    )
    for split, clients in splits.items():
        for client, samples in clients.items():
            connection.executemany(
                "INSERT INTO examples VALUES (?, ?, ?)",
                [(split, client, example(sample)) for sample in samples],
            )
    connection.commit()
    connection.close()
    return path


def packed(path, splits):
    """Write a database and pack it as TFF does, ``<name>.sqlite.lzma``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = database(path.with_name(f"{path.name}.plain"), splits)
    path.write_bytes(lzma.compress(plain.read_bytes(), lzma.FORMAT_ALONE))
    plain.unlink()
    return path


def hdf5(path, clients):
    """Write an HDF5 file: arrays over a client's samples, by client and feature."""
    import h5py

    with h5py.File(path, "w") as file:
        examples = file.create_group("examples")
        for client, features in clients.items():
            for feature, values in features.items():
                examples.create_dataset(f"{client}/{feature}", data=values)
    return path


def hdf5_of(path, clients):
    """Write samples, as in :func:`database`, in the layout of HDF5."""
    import h5py

    def arrays(samples):
        parts = {name: [np.asarray(sample[name]) for sample in samples] for name in samples[0]}
        joined = {
            name: np.concatenate(values) if values[0].shape == (1,) else np.stack(values)
            for name, values in parts.items()
        }
        return {
            name: values.astype(h5py.string_dtype()) if values.dtype.kind == "S" else values
            for name, values in joined.items()
        }

    return hdf5(path, {client: arrays(samples) for client, samples in clients.items()})


def archive(path, *files):
    """Pack HDF5 files as TFF did, ``<name>.tar.bz2``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:bz2") as packed:
        for file in files:
            packed.add(file, file.name)
    return path


def unchecked(monkeypatch, *names):
    """Let sources pass without size and checksum, so that small files can stand for them."""
    for name in names:
        loose = replace(SOURCES[name], size=None, checksum=None, published=None, verified="content")
        monkeypatch.setitem(SOURCES, name, loose)
