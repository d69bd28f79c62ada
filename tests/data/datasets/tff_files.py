"""Small files of the layout in which TensorFlow Federated serves its datasets."""

from dataclasses import replace

import numpy as np
from tests.data.packing import pack

from fedsampling.data.sources.sources import SOURCES


def hdf5_of(path, clients):
    """Write samples, each a dict of features: arrays over a client's samples, by feature."""
    import h5py

    with h5py.File(path, "w") as file:
        examples = file.create_group("examples")
        for client, samples in clients.items():
            for feature in samples[0]:
                values = [np.asarray(sample[feature]) for sample in samples]
                joined = np.concatenate(values) if values[0].shape == (1,) else np.stack(values)
                if joined.dtype.kind == "S":
                    joined = joined.astype(h5py.string_dtype())
                examples.create_dataset(f"{client}/{feature}", data=joined)
    return path


def archive_of(path, files, within=""):
    """Write an archive of HDF5 files; `files` has the clients' samples by file name."""
    path.parent.mkdir(parents=True)
    written = {name: hdf5_of(path.parent / name, clients) for name, clients in files.items()}
    return pack(path, {f"{within}{name}": file.read_bytes() for name, file in written.items()})


def unchecked(monkeypatch, *names):
    """Let sources pass without size and checksum, so that small files can stand for them."""
    for name in names:
        loose = replace(SOURCES[name], size=None, checksum=None, published=None, verified="content")
        monkeypatch.setitem(SOURCES, name, loose)
