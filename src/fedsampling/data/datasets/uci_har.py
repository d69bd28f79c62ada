"""Human activity recognition with smartphones (UCI HAR): a client for each of 30 subjects.

Steps: UCI's archive, or a copy of its raw signals -> five statistics of each of nine signals in
windows of 2.56 s -> a fifth of each subject's windows of each activity are tests -> features
standardised as in the other tables.

References
----------
Anguita, Ghio, Oneto, Parra, Reyes-Ortiz: A public domain dataset for human activity recognition
using smartphones. ESANN 2013.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.files import sha256
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images, blobs
from fedsampling.data.datasets.tables import split_by_label, standardised
from fedsampling.data.federated import SMALLER, Samples, passed_checks
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.local_files import Bounds, unpack
from fedsampling.data.sources.sources import SOURCES

FILES, ARCHIVE = "uci_har", "human+activity+recognition+using+smartphones.zip"
SUBJECTS, LENGTH = 30, 128
PER_LABEL = (1722, 1544, 1406, 1777, 1906, 1944)  # walking, upstairs, downstairs, sitting, …
SIGNALS = [f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]
FEATURES = 5 * len(SIGNALS)
_BOUNDS = Bounds(members=100, size=400 << 20)


class UciHar(Images, name="uci_har"):
    """Smartphone signals of six activities by 30 subjects, as 45 features of each window."""

    official: ClassVar[tuple[str, ...]] = (FILES,)
    published: ClassVar[int | None] = SUBJECTS

    partition: Partition

    def samples(self, source: str, cache: Path, mirror: str | None) -> Samples:
        """Read or generate all windows; owners are the subjects."""
        return _samples(source, cache, mirror)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published counts."""
        return _verify(read_copy(folder) if edition == "copy" else read_archive(folder / ARCHIVE))


@dataclass(frozen=True, eq=False)
class Windows:
    """Raw signals: `x`, shape (windows, 9, 128); labels and subjects from zero."""

    x: NDArray[np.float32]
    y: Ints
    subject: Ints


def read_copy(folder: Path) -> Windows:
    """Read the copy: the four byte planes of the signals one after the other, and the labels."""
    planes = np.fromfile(folder / "signals.f32", np.uint8).reshape(4, -1)
    x = planes.T.copy().view("<f4").reshape(-1, len(SIGNALS), LENGTH)
    with np.load(folder / "labels.npz", allow_pickle=False) as rows:
        subject = rows["subject"].astype(np.int64)
        return Windows(x, rows["y"].astype(np.int64), subject - subject.min())


def read_archive(archive: Path) -> Windows:
    """Read UCI's archive, a zip file inside a zip file, and join its training and test parts."""
    with TemporaryDirectory(dir=archive.parent) as folder:
        outer = unpack(archive, Path(folder), _BOUNDS, lambda name: name.endswith(".zip"))
        inner = unpack(next(iter(outer.values()), archive), Path(folder), _BOUNDS)
        files = {Path(name).name: path for name, path in inner.items()}

        def column(name: str) -> Ints:
            parts = [np.loadtxt(files[f"{name}_{part}.txt"], np.int64, ndmin=1) for part in _PARTS]
            return np.concatenate(parts) - 1

        def signal(name: str) -> NDArray[np.float32]:
            parts = [
                np.loadtxt(files[f"{name}_{part}.txt"], np.float32, ndmin=2) for part in _PARTS
            ]
            return np.concatenate(parts)

        return Windows(np.stack(list(map(signal, SIGNALS)), 1), column("y"), column("subject"))


_PARTS = "train", "test"


def features(x: NDArray[np.float32]) -> Array:
    """Return mean, standard deviation, least, largest and mean absolute step of each signal."""
    signals = x.astype(np.float64)
    step = np.abs(np.diff(signals, axis=2)).mean(2)
    least, largest = signals.min(2), signals.max(2)
    return np.concatenate([signals.mean(2), signals.std(2), least, largest, step], axis=1)


def _verify(windows: Windows) -> tuple[str, ...]:
    counts = np.bincount(windows.y, minlength=len(PER_LABEL)).tolist()
    return passed_checks(
        "uci_har",
        {
            f"windows of {len(SIGNALS)} signals": windows.x.shape[1:] == (len(SIGNALS), LENGTH),
            f"{sum(PER_LABEL):,} windows": len(windows.x) == len(windows.y) == sum(PER_LABEL),
            f"windows of each of {len(PER_LABEL)} activities": counts == list(PER_LABEL),
            f"{SUBJECTS} subjects": len(np.unique(windows.subject)) == SUBJECTS,
        },
    )


@lru_cache(maxsize=1)
def _samples(source: str, cache: Path, mirror: str | None) -> Samples:
    name, inputs, unverified = "uci_har-like", {}, False
    if source == "official":
        paths = fetch_dataset(FILES, cache, mirror)
        first = SOURCES[next(iter(paths))]
        path = paths[first.name]
        windows = read_copy(path.parent) if first.edition == "copy" else read_archive(path)
        _verify(windows)
        x, y, subject = features(windows.x), windows.y, windows.subject
        name, unverified = "uci_har", first.unverified
        inputs = {path.name: sha256(path) for path in paths.values()}
    else:
        rng = stream(0, "data.uci_har_like")
        y = rng.permutation(np.repeat(np.arange(len(PER_LABEL)), np.array(PER_LABEL) // SMALLER))
        x, subject = blobs(rng, y, FEATURES), np.arange(len(y)) % SUBJECTS
    test = split_by_label(len(PER_LABEL) * subject + y, stream(0, "data.tests"))
    scaled = standardised(x, ~test)
    return Samples(
        name=name,
        x=scaled[~test],
        y=y[~test],
        x_test=scaled[test],
        y_test=y[test],
        classes=len(PER_LABEL),
        writer=subject[~test],
        writer_test=subject[test],
        unverified=unverified,
        inputs=inputs,
    )
