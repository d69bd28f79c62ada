"""The three unbalanced sets of Federated EMNIST's digits that Chen et al. 2022 published.

Official: the authors' files in TFF's layout, as single files or in Dataverse's archive.  Embedded:
generated digits by writer, which :mod:`fedsampling.data.partitions.partition` makes unbalanced.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.errors import InputError
from fedsampling.base.files import replacing, sha256_by_name
from fedsampling.base.streams import stream
from fedsampling.data.datasets import tff
from fedsampling.data.datasets.dataset import PublishedData, digits_like
from fedsampling.data.datasets.tff_files import Part, unpack_edition, unpack_parts
from fedsampling.data.federated import FederatedDataset, Samples
from fedsampling.data.partitions.partition import ByWriter, Number
from fedsampling.data.sources.fetch import fetch_dataset
from fedsampling.data.sources.local_files import Bounds, converted, unpack
from fedsampling.data.sources.sources import SOURCES

TEST = "test.h5"
_BOUNDS = Bounds(members=50, size=4 << 30)


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


# Federated EMNIST's digits by writer, as in TensorFlow Federated (TFF).
#
# Steps: TFF's archive in either edition, or a stand-in of a tenth of the size -> samples -> a
# client for each writer.  All clients share the test set, as in Chen et al. 2022.


# Of the stand-in; the published data have 3,383 writers with 101 samples on average.
WRITERS, PER_WRITER, TESTS = 200, 101, 1_000

_ARRAYS = ("x", "y", "x_test", "y_test", "writer", "writer_test")


class EmnistDigits(PublishedData, name="emnist_digits"):
    """Federated EMNIST's digits by writer, as published by TFF."""

    official: ClassVar[tuple[str, ...]] = ("tff_emnist",)
    published: ClassVar[int | None] = 3_383

    unbalance: Number | None = Field(
        None, description="imbalance of the sets of chen2022optimal; null: as the writers are"
    )

    def load(self, source: str, seed: int, cache: Path, mirror: str | None) -> FederatedDataset:
        """Make each writer a client, once, as reading takes minutes; pixels are as in TFF."""
        samples = _digits(source, cache, mirror)
        return ByWriter(unbalance=self.unbalance).share_out(samples, seed, self.importance)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published shapes and counts."""
        return tff.verify(tff.read_digits(dataset, *unpack_edition(dataset, edition, folder)))


@lru_cache(maxsize=1)
def emnist_like(name: str) -> Samples:
    """Generate the stand-in for EMNIST's digits by writer, with TFF's shapes and types."""
    rng = stream(0, "data.cookup_like")
    drawn = digits_like(rng, train=WRITERS * PER_WRITER, test=TESTS, writers=WRITERS)
    x, x_test = (np.float32(1) - pixels / np.float32(255) for pixels in (drawn.x, drawn.x_test))
    return replace(drawn, name=name, x=x, x_test=x_test)


@lru_cache(maxsize=1)
def _digits(source: str, cache: Path, mirror: str | None) -> Samples:
    """Read or generate the samples, once for all seeds of a job."""
    if source != "official":
        return emnist_like("emnist_digits-like")
    ((name, archive),) = fetch_dataset("tff_emnist", cache, mirror).items()
    inputs = sha256_by_name([archive])
    target = cache / "tff_emnist" / f"digits-{inputs[archive.name][:16]}.npz"

    def make(target: Path) -> None:
        with TemporaryDirectory(dir=cache) as folder:
            train, test = unpack_parts(archive, "tff_emnist", SOURCES[name].edition, Path(folder))
            samples = tff.read_digits("tff_emnist", train, test)
        tff.verify(samples)
        with replacing(target) as temporary:
            np.savez(temporary, **{array: getattr(samples, array) for array in _ARRAYS})

    with np.load(converted(target, make), allow_pickle=False) as file:
        arrays = {array: file[array] for array in _ARRAYS}
    return Samples(
        name="tff_emnist", classes=10, unverified=SOURCES[name].unverified, inputs=inputs, **arrays
    )
