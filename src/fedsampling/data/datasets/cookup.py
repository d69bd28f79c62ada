"""The three unbalanced sets of Federated EMNIST's digits that Chen et al. 2022 published.

Official: the authors' files in TFF's layout, in Dataverse's archive.
Embedded: generated digits by writer, which the partition ``by_writer`` makes unbalanced.

References
----------
W. Chen, S. Horváth, P. Richtárik: Optimal client sampling for federated learning. TMLR 2022;
files at doi:10.7910/DVN/RZQIKP.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256_by_name
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.emnist_digits import emnist_like
from fedsampling.data.datasets.tff import read_digits
from fedsampling.data.federated import FederatedDataset, share_of_largest
from fedsampling.data.partitions.unbalanced import SETS, ByWriter, Number
from fedsampling.data.samples import Samples, check_contents
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.local_files import unpack
from fedsampling.data.sources.sources import SOURCES

TESTS_OF_DIGITS = 40_832
_TOLERANCE = 0.02  # of the largest clients' share, since the publisher writes "about"


class Cookup(PublishedData, name="cookup"):
    """The unbalanced sets of Federated EMNIST's digits, Chen et al. 2022."""

    official: ClassVar[tuple[str, ...]] = ("cookup",)
    published: ClassVar[int | None] = 3_383

    set: Number

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read (or generate) one of the sets; its writers are the clients."""
        if source == "official":
            samples, partition = _official(self.set, cache, mirror), ByWriter()
        else:
            samples, partition = emnist_like("cookup-like"), ByWriter(unbalance=self.set)
        return partition.share_out(samples, seed, self.importance)


def _official(number: Number, cache: Path, mirror: str | None) -> Samples:
    ((name, archive),) = fetch_dataset("cookup", cache, mirror).items()
    train, test = f"cookup_train_{number}.h5", "test.h5"
    with TemporaryDirectory(dir=cache) as folder:
        unpack(archive, Path(folder))
        files = {path.name: path for path in Path(folder).rglob("*.h5")}
        if missing := {train, test} - {*files}:
            raise InputError(f"{archive}: {min(missing)} is missing; fetch the archive again")
        samples = read_digits(f"cookup_{number}", files[train], files[test])
        inputs = sha256_by_name([files[train], files[test]])
    check_unbalanced(samples, number)
    return replace(samples, inputs=inputs, unverified=SOURCES[name].unverified)


def check_unbalanced(samples: Samples, number: Number) -> None:
    """Compare the test samples, the labels and the imbalance with the published ones."""
    assert samples.writer is not None
    sizes = np.bincount(samples.writer)
    fraction, published = SETS[number].s, SETS[number].share
    share = share_of_largest(sizes[sizes > 0], fraction)
    phrase = f"about {published:.0%} of the samples with {fraction:.0%} of the clients"
    checks = {
        "images of 28 by 28 pixels": samples.x.shape[1:] == (28, 28),
        f"{TESTS_OF_DIGITS:,} test samples": len(samples.y_test) == TESTS_OF_DIGITS,
        f"all {samples.classes} labels": len(np.unique(samples.y)) == samples.classes,
        phrase: abs(share - published) < _TOLERANCE,
    }
    check_contents(samples.name, checks)
