"""The three unbalanced sets of Federated EMNIST's digits that chen2022optimal published.

Official: the authors' files in TFF's layout, as single files or in Dataverse's archive.  Embedded:
generated digits by writer, which :mod:`fedsampling.data.partitions.unbalancing` makes unbalanced.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import ClassVar

from fedsampling.base.errors import InputError
from fedsampling.data.datasets.dataset import PublishedData
from fedsampling.data.datasets.emnist_digits import emnist_like
from fedsampling.data.federated import FederatedDataset
from fedsampling.data.formats import tff
from fedsampling.data.formats.tff_files import Part
from fedsampling.data.partitions.natural import by_owner
from fedsampling.data.partitions.unbalancing import Number, unbalanced
from fedsampling.data.samples import Samples, gather
from fedsampling.data.sources.archives import Bounds, unpack
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.sources import SOURCES

TEST = "test.h5"
_BOUNDS = Bounds(members=50, size=4 << 30)


class Cookup(PublishedData, name="cookup"):
    """The unbalanced sets of Federated EMNIST's digits, chen2022optimal."""

    official: ClassVar[tuple[str, ...]] = ("cookup",)
    published: ClassVar[int | None] = 3_383

    set: Number

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Read (or generate) one of the sets; its writers are the clients.

        Only the stand-in's imbalance is random; `seed` does not change the official files.
        """
        if source == "official":
            samples = _official(self.set, cache, mirror)
        else:
            samples = emnist_like("cookup-like")
        assert samples.writer is not None
        train = by_owner(samples.writer)
        if source != "official":
            train = unbalanced(train, self.set, seed)
        return gather(samples, train, None, self.importance)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        if edition != "files":
            return super().verify(dataset, edition, folder)
        phrases: list[str] = []
        for number in (1, 2, 3):
            samples = _read(number, {path.name: path for path in folder.iterdir()})
            phrases += [f"{phrase} in {samples.name}" for phrase in tff.verify(samples)]
        return tuple(phrases)


def _official(number: int, cache: Path, mirror: str | None) -> Samples:
    paths = fetch_dataset("cookup", cache, mirror)
    with ExitStack() as stack:
        files: Mapping[str, Path] = {path.name: path for path in paths.values()}
        if TEST not in files:
            (archive,) = files.values()
            folder = Path(stack.enter_context(TemporaryDirectory(dir=cache)))
            names = (_train(number), TEST)
            members = unpack(
                archive, folder, _BOUNDS, lambda name: PurePosixPath(name).name in names
            )
            files = {path.name: path for path in members.values()}
            if missing := [name for name in names if name not in files]:
                raise InputError(f"{archive}: {missing[0]} is missing; fetch the archive again")
        samples = _read(number, files)
    tff.verify(samples)
    return replace(samples, unverified=any(SOURCES[name].unverified for name in paths))


def _read(number: int, files: Mapping[str, Path]) -> Samples:
    return tff.read_digits(f"cookup_{number}", Part(files[_train(number)]), Part(files[TEST]))


def _train(number: int) -> str:
    return f"cookup_train_{number}.h5"
