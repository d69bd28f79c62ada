"""Human activity recognition with smartphones (UCI HAR): a client for each of 30 subjects.

The features are computed here from raw signals: five statistics of each of nine signals in windows
of 2.56 s.  A fifth of each subject's windows of each activity, the same for every seed, is the test
set.

References
----------
Anguita, Ghio, Oneto, Parra, Reyes-Ortiz: A public domain dataset for human activity recognition
using smartphones. ESANN 2013.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsampling.base.arrays import Array
from fedsampling.base.streams import stream
from fedsampling.data.datasets.dataset import Images
from fedsampling.data.datasets.tables import Table, as_samples
from fedsampling.data.partitions.partition import Partition
from fedsampling.data.samples import SMALLER, Samples, check_contents
from fedsampling.data.sources.local_files import unpack
from fedsampling.data.stand_ins import blobs

HAR, ARCHIVE = "uci_har", "human+activity+recognition+using+smartphones.zip"
SUBJECTS, LENGTH = 30, 128
PER_ACTIVITY = (1722, 1544, 1406, 1777, 1906, 1944)  # walking, upstairs, downstairs, sitting, …
SIGNALS = [f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"]


class UciHar(Images, name="uci_har", title="Smartphone activities (UCI HAR)"):
    """Smartphone signals of six activities by 30 subjects, as 45 features of each window."""

    official: ClassVar[tuple[str, ...]] = (HAR,)
    published: ClassVar[int | None] = SUBJECTS
    labels: ClassVar[int | None] = len(PER_ACTIVITY)

    partition: Partition

    @classmethod
    def read(cls, edition: str, folder: Path) -> Samples:
        """Read UCI's archive, or the copy; owners are the subjects."""
        windows = read_copy(folder) if edition == "copy" else read_archive(folder / ARCHIVE)
        _check_windows(windows)
        table = replace(windows, x=features(windows.x))
        return as_samples("uci_har", table, len(PER_ACTIVITY), by_owner=True)

    @classmethod
    def stand_in(cls) -> Samples:
        """Generate a tenth of the windows, normally distributed around a mean for each activity."""
        rng = stream(0, "data.uci_har_like")
        counts = np.array(PER_ACTIVITY) // SMALLER
        y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        table = Table(blobs(rng, y, 5 * len(SIGNALS)), y, np.arange(len(y)) % SUBJECTS)
        return as_samples("uci_har-like", table, len(counts), by_owner=True)


def read_copy(folder: Path) -> Table:
    """Read signals, shape (windows, 9, 128), stored as four byte planes, and their labels."""
    planes = np.fromfile(folder / "signals.f32", np.uint8).reshape(4, -1)
    x = planes.T.copy().view("<f4").reshape(-1, len(SIGNALS), LENGTH)
    with np.load(folder / "labels.npz", allow_pickle=False) as rows:
        subject = rows["subject"].astype(np.int64)
        return Table(x, rows["y"].astype(np.int64), subject - subject.min())


def read_archive(archive: Path) -> Table:
    """Read UCI's archive, a zip file inside a zip file, and join its training and test parts."""
    with TemporaryDirectory(dir=archive.parent) as folder:
        unpack(archive, Path(folder))
        for inner in [*Path(folder).rglob("*.zip")]:
            unpack(inner, Path(folder))
        files = {path.name: path for path in Path(folder).rglob("*.txt")}

        def column(name: str, kind: type[np.generic], axes: Literal[1, 2]) -> NDArray[Any]:
            parts = (files[f"{name}_{part}.txt"] for part in ("train", "test"))
            return np.concatenate([np.loadtxt(part, kind, ndmin=axes) for part in parts])

        y, subject = (column(name, np.int64, 1) - 1 for name in ("y", "subject"))
        x = np.stack([column(signal, np.float32, 2) for signal in SIGNALS], axis=1)
        return Table(x, y, subject)


def features(x: NDArray[np.float32]) -> Array:
    """Return mean, standard deviation, least, largest and mean absolute step of each signal."""
    signals = x.astype(np.float64)
    step = np.abs(np.diff(signals, axis=2)).mean(2)
    least, largest = signals.min(2), signals.max(2)
    return np.concatenate([signals.mean(2), signals.std(2), least, largest, step], axis=1)


def _check_windows(windows: Table) -> None:
    assert windows.owner is not None
    counts = np.bincount(windows.y, minlength=len(PER_ACTIVITY)).tolist()
    check_contents(
        "uci_har",
        {
            f"windows of {len(SIGNALS)} signals": windows.x.shape[1:] == (len(SIGNALS), LENGTH),
            f"{sum(PER_ACTIVITY):,} windows": len(windows.x) == len(windows.y) == sum(PER_ACTIVITY),
            f"windows of each of {len(PER_ACTIVITY)} activities": counts == list(PER_ACTIVITY),
            f"{SUBJECTS} subjects": len(np.unique(windows.owner)) == SUBJECTS,
        },
    )
